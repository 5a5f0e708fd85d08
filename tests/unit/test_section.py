"""What memguard renders is recognised when it comes back."""

from hypothesis import given
from hypothesis import strategies as st

from memguard.methods.adjudication.rendering import frame
from memguard.quoting import SECTION_CLOSE, SECTION_OPEN, cut_sections, quote


@given(st.lists(st.text(), min_size=1, max_size=4), st.text(), st.text())
def test_a_rendered_section_is_cut_whole(texts: list[str], before: str, after: str) -> None:
    section = frame(f"- {quote(text)}" for text in texts)
    assert section.count(SECTION_OPEN) == section.count(SECTION_CLOSE) == 1
    around = f"{before}|{section}|{after}"
    if SECTION_OPEN not in before + after and SECTION_CLOSE not in before + after:
        assert cut_sections(around) == f"{before}||{after}"


def test_a_lone_tag_hides_nothing() -> None:
    text = f"I like chess. {SECTION_OPEN} and go"
    assert cut_sections(text) == text
