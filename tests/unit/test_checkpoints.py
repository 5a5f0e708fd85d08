"""A checkpointer that knows memguard's types says nothing about them."""

import logging
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from memguard import ConMem, ConsistencyGate, checkpoint_types, create_write_guard
from memguard.journal.journal import Journal
from memguard.testing import ScriptedChatModel


class State(MessagesState):
    writes: Any


def test_types_of_all_kinds_are_named() -> None:
    types = checkpoint_types()
    assert types == sorted(set(types))
    assert ("memguard.schema.receipt", "Receipt") in types
    assert ("memguard.schema.read", "ReadReport") in types
    assert ("memguard.methods.conmem.log", "ProbeRound") in types


def test_a_review_resumes_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    facts = [{"text": "The user moves to Lisbon.", "about": "the user", "turns": [1]}]
    model = ScriptedChatModel(rules=[("<new_turns>", {"facts": facts}), ("", "Hard to say.")])
    with Journal.memory() as journal:
        guard = create_write_guard(
            model,
            store=InMemoryStore(),
            namespace=("memories",),
            gates=[ConsistencyGate(k=1), ConMem()],
            receipts=journal,
            review="interrupt",
        )
        builder = StateGraph(State)
        builder.add_node("remember", guard)
        builder.add_edge(START, "remember")
        builder.add_edge("remember", END)
        serde = JsonPlusSerializer(allowed_msgpack_modules=checkpoint_types())
        host: Any = builder.compile(checkpointer=InMemorySaver(serde=serde))
        thread = {"configurable": {"thread_id": "1"}}
        with caplog.at_level(logging.WARNING, logger="langgraph"):
            stopped = host.invoke({"messages": [("user", "Lisbon might be next.")]}, thread)
            assert stopped["__interrupt__"]
            done = host.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
    assert done["writes"].counts["stored"] == 1
    assert caplog.messages == []
