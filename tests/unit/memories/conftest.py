"""Stores with a journal, for a person's hand on memory."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from memguard import Memories
from memguard.journal.journal import Journal
from memguard.stores import ChromaStore
from memguard.testing import HashEmbeddings

ANA = ("memories", "ana")
BOB = ("memories", "bob")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Clock:
    """A clock that goes on by a minute at each look."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


def new_store(kind: str) -> Any:
    if kind == "chroma":
        return ChromaStore.memory(embed=HashEmbeddings(dims=64))
    index: Any = {"dims": 64, "embed": HashEmbeddings(dims=64), "fields": ["content"]}
    return InMemoryStore(index=index)


@pytest.fixture(params=["chroma", "memory"])
def store(request: pytest.FixtureRequest) -> Iterator[Any]:
    opened = new_store(request.param)
    yield opened
    if request.param == "chroma":
        opened.close()


@pytest.fixture
def journal() -> Iterator[Journal]:
    with Journal.memory(clock=Clock()) as opened:
        yield opened


@pytest.fixture
def memories(store: Any, journal: Journal) -> Memories:
    return Memories(store, namespace=ANA, receipts=journal)


def texts(memories: Memories, **conditions: Any) -> list[str]:
    return [entry.text for entry in memories.list(**conditions).memories]
