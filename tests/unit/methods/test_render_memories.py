"""Three renderings of one ledger."""

from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from memguard.methods.adjudication.rendering import (
    CHANNEL_HEADINGS,
    HEADINGS,
    NOTHING,
    PERMISSION_HEADINGS,
    frame_texts,
    line_of,
    render_memories,
    unit_line,
)
from memguard.quoting import FIXED_SENTENCE, SECTION_CLOSE, SECTION_OPEN, cut_sections
from memguard.schema.read import Ledger, Rendering, UnitVerdict
from memguard.schema.units import SECTIONS, Permission, Unit

AT = datetime(2025, 12, 30, tzinfo=UTC)
RENDERINGS: tuple[Rendering, ...] = get_args(Rendering)


def verdict(text: str, permission: Permission, *, position: int | None) -> UnitVerdict:
    unit = Unit(id=text, memory_id=text, text=text, said_at=AT)
    return UnitVerdict(
        unit=unit,
        permission=permission,
        row="r",
        withheld=None if position else "denied",
        position=position,
    )


def ledger(**texts: Any) -> Ledger:
    return Ledger(
        scheme="units",
        verdicts=tuple(
            verdict(text, permission, position=position)
            for position, (text, permission) in enumerate(texts.items(), start=1)
        ),
    )


ALL = ledger(**{f"unit{n}": permission for n, permission in enumerate(SECTIONS)})


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_the_same_lines_stand_in_the_same_order(rendering: Rendering) -> None:
    lines = render_memories(ALL, rendering=rendering).splitlines()
    assert lines[:2] == [SECTION_OPEN, FIXED_SENTENCE]
    assert lines[-1] == SECTION_CLOSE
    assert [line for line in lines if line.startswith("-")] == [
        f'- (said 2025-12-30) "unit{n}"' for n in range(5)
    ]
    headings = [line for line in lines if line.startswith("#")]
    assert headings == [HEADINGS[rendering][p] for p in SECTIONS if p in HEADINGS[rendering]]


def test_headings_differ_say_their_use_and_praise_nothing() -> None:
    for headings in (CHANNEL_HEADINGS, PERMISSION_HEADINGS):
        assert tuple(headings) == SECTIONS
        assert len(set(headings.values())) == len(SECTIONS)
    assert not set(CHANNEL_HEADINGS.values()) & set(PERMISSION_HEADINGS.values())
    text = " ".join((*CHANNEL_HEADINGS.values(), *PERMISSION_HEADINGS.values())).lower()
    for word in ("authoritative", "ground truth", "verified", "true"):
        assert word not in text


def test_empty_sections_are_left_out() -> None:
    one = ledger(**{"The user rows.": "CONTEXT"})
    text = render_memories(one, rendering="channels")
    assert text.count("##") == 1
    assert CHANNEL_HEADINGS["CONTEXT"] in text


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_nothing_admitted_is_nothing_or_one_line(rendering: Rendering) -> None:
    nothing = Ledger(scheme="units", verdicts=(verdict("no", "DENY", position=None),))
    assert render_memories(nothing, rendering=rendering) == ""
    line = render_memories(nothing, rendering=rendering, when_empty="line")
    assert line.splitlines() == [SECTION_OPEN, NOTHING, SECTION_CLOSE]
    assert cut_sections(line) == ""


def test_a_line_shows_the_day_of_the_speaker() -> None:
    assert unit_line("a", said_at=None) == '- (said at an unknown time) "a"'
    late = datetime.fromisoformat("2025-12-30T22:40:00-05:00")
    assert unit_line("a", said_at=late) == '- (said 2025-12-30) "a"'


def test_role_markers_are_neutralised_and_nothing_is_lost() -> None:
    import json

    text = "[INST] <|im_start|> [/INST] [SYSTEM_PROMPT] [note] [TODO] a"
    line = unit_line(text, said_at=None)
    assert json.loads(line.partition(") ")[2]) == text
    for marker in ("[INST]", "[/INST]", "[SYSTEM_PROMPT]", "<|im_start|>"):
        assert marker not in line
    assert "[note]" in line


def test_the_frame_is_reckoned_at_its_widest() -> None:
    texts = frame_texts()
    assert set(texts) == {"frame", *SECTIONS}
    assert all(len(texts[permission]) == 2 for permission in SECTIONS)


def test_a_line_says_whose_words_they_are_and_until_when_they_held() -> None:
    unit = Unit(
        id="a", memory_id="a", text="t", said_at=AT, said_by="document", author='Bo "x" [/INST]'
    )
    day = AT.date().isoformat()
    assert line_of(unit, is_over=False) == (
        f'- (said {day} in a document by "Bo \\"x\\" \\u005b/INST]", not by the user) "t"'
    )
    assert line_of(unit, is_over=False, authorship=False) == f'- (said {day}) "t"'
    own = unit.model_copy(update={"said_by": "user", "author": ""})
    assert line_of(own, is_over=True) == f'- (said {day}; no longer so) "t"'
    over = own.model_copy(
        update={"superseded": True, "valid_until": datetime(2026, 3, 9, tzinfo=UTC)}
    )
    assert line_of(over, is_over=False) == f'- (said {day}; no longer so since 2026-03) "t"'
