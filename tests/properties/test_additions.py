"""What a new version of a text adds."""

from hypothesis import given
from hypothesis import strategies as st

from memguard.store_guard.values import added_text

LINES = st.lists(st.sampled_from(["# A", "# B", "- tea", "- beef", "", "plain"]), max_size=12)


@given(LINES, LINES)
def test_it_holds_every_line_that_is_new_and_no_other_text(new: list[str], old: list[str]) -> None:
    added = added_text("\n".join(new), old="\n".join(old)).splitlines()
    assert set(added) >= {line for line in new if line and line not in old}
    rest = iter(new)
    assert all(line in rest for line in added), "in the order of the text"


@given(LINES)
def test_nothing_new_is_empty(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert added_text(text, old=text) == ""
    assert added_text("", old=text) == ""
    assert added_text(text, old="").splitlines() == [line for line in lines if line]


@given(LINES, LINES, st.integers(0, 12))
def test_taking_lines_out_adds_nothing(old: list[str], more: list[str], at: int) -> None:
    kept = old[:at]
    assert added_text("\n".join(kept), old="\n".join([*kept, *more])) == ""


def test_a_line_comes_with_the_heading_it_stands_under() -> None:
    old = "# Ana\n- lives in Porto\n\n# Ben\n- rows\n"
    new = "# Ana\n- lives in Porto\n\n# Ben\n- rows\n- is allergic to nuts\n"
    assert added_text(new, old=old) == "# Ben\n- is allergic to nuts"


def test_a_line_that_was_moved_is_new() -> None:
    old = "# Likes\n- tea\n# Dislikes\n- beef"
    new = "# Likes\n- tea\n- beef\n# Dislikes"
    assert "# Likes\n- beef" in added_text(new, old=old)


def test_of_two_long_texts_all_between_the_changes_is_new() -> None:
    old = ["same"] + ["x"] * 3000 + ["end"]
    new = ["same"] + ["y", "x"] * 1500 + ["end"]
    assert added_text("\n".join(new), old="\n".join(old)).splitlines() == new[1:-2]
