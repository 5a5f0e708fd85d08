"""Guards under other state keys, in a state that has none of them."""

import asyncio
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from memguard import WriteReport, create_read_guard, create_write_guard
from memguard.errors import ErrorCode, InvalidInputError
from memguard.state_keys import node_name
from tests.unit.write.scripts import scripted

ANA = ("memories", "ana")


class Host(TypedDict, total=False):
    chat: list[tuple[str, str]]
    writes: WriteReport
    memory_context: str


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("make", [create_write_guard, create_read_guard], ids=["write", "read"])
async def test_a_state_without_the_key_that_is_mapped_is_refused(make: Any, how: str) -> None:
    store = InMemoryStore()
    guard = make(scripted(), store=store, namespace=ANA, keys={"messages": "dialog"})
    builder = StateGraph(Host)
    builder.add_node("guard", guard)
    builder.add_edge(START, "guard")
    graph: Any = builder.compile()
    values: Any = {"chat": [("user", "I row.")]}
    run = asyncio.to_thread(graph.invoke, values) if how == "sync" else graph.ainvoke(values)
    with pytest.raises(InvalidInputError, match=r"nothing under \['dialog'\]") as caught:
        await run
    assert caught.value.code == ErrorCode.INPUT_INVALID


async def test_one_of_the_keys_is_enough_and_it_may_be_empty() -> None:
    keys = {"messages": "chat", "candidates": "drafts"}
    guard = create_write_guard(scripted(), store=InMemoryStore(), namespace=ANA, keys=keys)
    empty: Any = {"chat": []}
    assert (await guard.ainvoke(empty))["writes"].counts["stored"] == 0
    spoken: Any = {"chat": [("user", "I row.")]}
    assert (await guard.ainvoke(spoken))["writes"].counts["stored"] == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [("mine", "mine"), ("a:b|c", "a_b_c"), ("report", "report_gate"), ("", "gate")],
)
def test_a_graphs_name_becomes_a_name_that_a_node_may_have(name: str, expected: str) -> None:
    assert node_name(name, reserved={"report"}, suffix="gate") == expected
