"""Files in a guarded store: what a write adds to one is judged, not what it said before."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from memguard import ConsistencyGate, guard_store, use_source
from memguard.journal.audit import audit
from memguard.journal.journal import Journal
from tests.unit.write.scripts import scripted

ANA = ("memories", "ana")
PORTO, ROWS = "# The user\n- lives in Porto\n", "# The user\n- lives in Porto\n- rows\n"


def file_of(content: str | list[str], encoding: str = "utf-8") -> dict[str, Any]:
    return {"content": content, "encoding": encoding, "modified_at": "2026-11-30T00:00:00Z"}


def guarded(inner: Any, **more: Any) -> tuple[Any, list[str]]:
    seen: list[str] = []

    def score(memory: str) -> str:
        seen.append(memory)
        return "0.1" if "meat" in memory else "0.9"

    given: dict[str, Any] = {"gates": [ConsistencyGate(k=1)], "source": "I row.", **more}
    return guard_store(inner, model=scripted(scores=score), **given), seen


@pytest.mark.parametrize("lines", [False, True], ids=["text", "lines"])
def test_an_edit_is_judged_by_what_it_adds(lines: bool) -> None:
    def version(text: str) -> dict[str, Any]:
        return file_of(text.split("\n") if lines else text)

    inner = InMemoryStore()
    inner.put(ANA, "/user.md", version(PORTO))
    store, seen = guarded(inner)
    store.put(ANA, "/user.md", version(ROWS))
    store.put(ANA, "/user.md", version(ROWS + "- eats no meat\n"))
    assert seen == ["# The user\n- rows", "# The user\n- eats no meat"]
    assert inner.get(ANA, "/user.md").value == version(ROWS)  # pyright: ignore[reportOptionalMemberAccess]


async def test_taking_lines_out_is_no_claim() -> None:
    inner = InMemoryStore()
    inner.put(ANA, "/user.md", file_of(ROWS))
    store, seen = guarded(inner)
    await store.aput(ANA, "/user.md", file_of(PORTO))
    await store.aput(ANA, "/user.md", file_of("# The user\n\n- lives in Porto\n"))
    assert (await inner.aget(ANA, "/user.md")).value["content"].count("\n\n") == 1  # pyright: ignore[reportOptionalMemberAccess]
    assert seen == []


def test_a_new_file_is_judged_whole_and_so_is_a_line() -> None:
    store, seen = guarded(InMemoryStore())
    store.put(ANA, "/user.md", file_of(ROWS))
    store.put(ANA, "tea", {"content": "Likes green tea."})
    store.put(ANA, "tea", {"content": "Likes black tea."})
    assert seen == [ROWS, "Likes green tea.", "Likes black tea."]


async def test_a_file_that_is_no_text_is_held_and_asks_nobody() -> None:
    journal = Journal.memory()
    inner = InMemoryStore()
    store, seen = guarded(inner, receipts=journal)
    await store.aput(ANA, "/cat.png", file_of("iVBORw0KGgo=", "base64"))
    assert await inner.aget(ANA, "/cat.png") is None
    (held,) = (await store.quarantine.alist()).receipts
    assert "base64" in held.decision.explanation
    assert "iVBORw0KGgo=" not in held.candidate.text
    await store.quarantine.arelease(held.id, actor="ana", store=inner)
    assert (await inner.aget(ANA, "/cat.png")).value == file_of("iVBORw0KGgo=", "base64")  # pyright: ignore[reportOptionalMemberAccess]
    # Another picture under its name is another candidate.
    await store.aput(ANA, "/cat.png", file_of("AAAA", "base64"))
    assert len((await store.quarantine.alist()).receipts) == 1
    assert seen == []
    found = await audit(journal, inner)
    assert found.altered == ()


def test_without_a_source_an_edit_is_held_and_released_whole() -> None:
    inner = InMemoryStore()
    inner.put(ANA, "/user.md", file_of(PORTO))
    store, _ = guarded(inner, source=None)
    store.put(ANA, "/user.md", file_of(ROWS))
    (held,) = store.quarantine.list().receipts
    assert held.candidate.text == "# The user\n- rows"
    store.quarantine.release(held.id, actor="ana", store=inner)
    assert inner.get(ANA, "/user.md").value == file_of(ROWS)  # pyright: ignore[reportOptionalMemberAccess]
    with use_source("I row."):
        store.put(ANA, "/other.md", file_of(ROWS))
    assert inner.get(ANA, "/other.md") is not None
