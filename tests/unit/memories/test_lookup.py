"""Pages of memories, ids, and what an item of a store says about itself. Pure."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import Item

from memguard.errors import ErrorCode, InvalidInputError
from memguard.memories.lookup import entry_of, page_of, unique_id
from memguard.memories.values import MemoryEntry

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
STATES = st.sampled_from(["current", "superseded", "edited", "deleted", "undone"])


def entry(key: str, *, minutes: int = 0, **fields: Any) -> MemoryEntry:
    at = NOON + timedelta(minutes=minutes)
    return MemoryEntry(
        id=key, namespace=("m",), text=fields.pop("text", key), stored_at=at, **fields
    )


@st.composite
def entries(draw: st.DrawFn) -> list[MemoryEntry]:
    keys = draw(st.lists(st.integers(0, 99).map(str), unique=True, max_size=12))
    # Few minutes, so that several memories are of the same moment.
    return [
        entry(key, minutes=draw(st.integers(0, 3)), state=draw(STATES), text=f"text {key}")
        for key in keys
    ]


@given(entries(), st.integers(1, 5), st.booleans())
def test_pages_have_every_memory_once_newest_first(
    every: list[MemoryEntry], limit: int, with_ended: bool
) -> None:
    listed: list[MemoryEntry] = []
    before: str | None = None
    while True:
        page = page_of(every, limit=limit, include_superseded=with_ended, before=before)
        assert len(page.memories) <= limit
        listed += page.memories
        before = page.before
        if before is None:
            break
    expected = [one for one in every if with_ended or one.is_current]
    assert len(listed) == len(expected) == page.total
    assert {one.id for one in listed} == {one.id for one in expected}
    assert [one.at for one in listed] == sorted((one.at for one in listed), reverse=True)
    assert page.total + page.hidden == len(every)


def test_a_memory_that_comes_or_goes_moves_no_page() -> None:
    every = [entry(str(n), minutes=n) for n in range(6)]
    first = page_of(every, limit=2)
    assert [one.id for one in first.memories] == ["5", "4"]
    changed = [one for one in every if one.id != "4"] + [entry("9", minutes=9)]
    second = page_of(changed, limit=2, before=first.before)
    assert [one.id for one in second.memories] == ["3", "2"]


@pytest.mark.parametrize("before", ["", "x", "~", "soon~1"])
def test_a_wrong_cursor_is_refused(before: str) -> None:
    with pytest.raises(InvalidInputError, match="`before`"):
        page_of([], limit=1, before=before)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("I live in PORTO.", "porto"),
        ("Ich wohne in der Königsstraße 5.", "KÖNIGSSTRASSE"),
        ("J’habite à Nîmes.", "j'habite"),
        ("我住在上海。", "上海"),
        ("Vivo  en\nMálaga.", "en málaga"),
    ],
)
def test_a_text_is_searched_as_a_reader_sees_it(text: str, part: str) -> None:
    every = [entry("1", text=text), entry("2", text="Something else.")]
    assert [one.id for one in page_of(every, limit=5, contains=part).memories] == ["1"]


def test_times_bound_a_list_by_when_it_was_said() -> None:
    said = NOON - timedelta(days=365)
    every = [entry("old", said_at=said), entry("new")]
    assert [m.id for m in page_of(every, limit=5, since=NOON).memories] == ["new"]
    assert [m.id for m in page_of(every, limit=5, until=NOON).memories] == ["old"]


def test_only_open_conflicts_are_listed() -> None:
    every = [
        entry("a", conflicts_with=("b", "c")),
        entry("b"),
        entry("c", state="deleted"),
        entry("d", state="deleted", conflicts_with=("b",)),
    ]
    page = page_of(every, limit=9, include_superseded=True)
    assert {m.id: m.conflicts_with for m in page.memories} == {
        "a": ("b",),
        "b": (),
        "c": (),
        "d": (),
    }


IDS = st.lists(st.text(alphabet="ab", min_size=1, max_size=4), unique=True, max_size=8)


@given(IDS, st.text(alphabet="ab", max_size=4))
def test_an_id_is_exact_or_a_unique_beginning(ids: list[str], prefix: str) -> None:
    matches = [one for one in ids if prefix and one.startswith(prefix)]
    if prefix in ids or len(matches) == 1:
        result = unique_id(prefix, ids, namespace=("m",))
        assert result == (prefix if prefix in ids else matches[0])
        return
    with pytest.raises(InvalidInputError) as refused:
        unique_id(prefix, ids, namespace=("m",))
    assert refused.value.code is ErrorCode.MEMORY_NOT_FOUND


VALUES = st.dictionaries(
    st.sampled_from(["content", "memguard", "text", "kind"]),
    st.none()
    | st.text(max_size=5)
    | st.integers()
    | st.dictionaries(
        st.sampled_from(["receipt_id", "candidate_id", "ended_as", "said_at", "content"]),
        st.none() | st.text(max_size=5) | st.integers(),
    ),
)


@given(VALUES)
def test_items_of_any_program_are_listed(value: dict[str, Any]) -> None:
    item = Item(namespace=("m",), key="k", value=value, created_at=NOON, updated_at=NOON)
    memory = entry_of(item)
    assert memory.id == "k"
    assert memory.at is not None
