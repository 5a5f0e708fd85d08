"""Recall of what a later record superseded, where the query may be about the past."""

from datetime import UTC, datetime
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from memguard.read.graph import create_read_guard
from memguard.read.recall import Recalled, recall
from memguard.schema.read import FactorCompiled, Recall
from memguard.testing.embeddings import HashEmbeddings

NAMESPACE = ("memories", "ana")
NOW = datetime(2026, 3, 15, tzinfo=UTC)
PAST = "Where did I live before?"


def store_of(**entries: dict[str, Any]) -> InMemoryStore:
    store = InMemoryStore(index={"embed": HashEmbeddings(), "dims": 64})
    for key, fields in entries.items():
        marks = {name: value for name, value in fields.items() if name != "text"}
        store.put(NAMESPACE, key, {"content": fields["text"], "memguard": marks})
    return store


@pytest.fixture
def store() -> InMemoryStore:
    return store_of(
        lyon={"text": "The user lives in Lyon."},
        porto={
            "text": "The user lives in Porto.",
            "superseded_by": "lyon",
            "ended_as": "superseded",
            "valid_until": "2026-03-01T00:00:00Z",
        },
        nice={"text": "The user lives in Nice.", "ended_as": "undone"},
        caen={"text": "The user lives in Caen.", "ended_as": "edited", "superseded_by": "lyon"},
    )


async def recalled(store: InMemoryStore, *, past: bool, **spec: Any) -> Recalled:
    return await recall(
        store, query=PAST, namespaces=[NAMESPACE], spec=Recall(**spec), k=5, now=NOW, past=past
    )


async def test_what_was_superseded_comes_in_addition_and_marked(store: InMemoryStore) -> None:
    result = await recalled(store, past=True, k=1)
    assert [memory.key for memory in result.memories] == ["lyon", "porto"]
    assert (result.past, result.superseded) == (1, 2)
    old = result.memories[1]
    assert old.superseded
    assert old.lifecycle.valid_until == datetime(2026, 3, 1, tzinfo=UTC)


async def test_without_the_past_nothing_superseded_is_recalled(store: InMemoryStore) -> None:
    result = await recalled(store, past=False)
    assert [memory.key for memory in result.memories] == ["lyon"]
    assert result.superseded == 3


async def test_an_unreadable_field_does_not_hide_that_a_record_ended() -> None:
    store = store_of(odd={"text": "The user rows.", "ended_as": "undone", "confirmed_at": "soon"})
    result = await recalled(store, past=True)
    assert result.memories == ()
    assert result.superseded == 1


@pytest.mark.parametrize(
    ("query", "admission", "keys"),
    [
        (PAST, FactorCompiled(), ["lyon", "porto"]),
        ("Where do I live?", FactorCompiled(), ["lyon"]),
        (PAST, FactorCompiled(lookups=False), ["lyon"]),
        (PAST, "relevance", ["lyon"]),
    ],
    ids=["past", "present", "switched off", "relevance"],
)
async def test_the_guard_recalls_the_past_for_admissions_that_tell_it(
    store: InMemoryStore, query: str, admission: Any, keys: list[str]
) -> None:
    guard = create_read_guard(store=store, namespace=NAMESPACE, admission=admission)
    out = await guard.ainvoke({"query": query})
    assert [memory.key for memory in out["read"].memories] == keys
