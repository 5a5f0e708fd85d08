"""A trace of a model call names the method, the stage and the receipt."""

from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.store.memory import InMemoryStore

from memguard import ConsistencyGate, create_read_guard, create_write_guard
from memguard.journal.journal import Journal
from memguard.testing import ConMemScript, ScriptedChatModel
from memguard.testing.embeddings import HashEmbeddings
from tests.unit.read.read_scripts import reader

SAID = "I own a blue boat."
FACT = {"text": SAID, "about": "the user", "turns": [1]}


class Traces(BaseCallbackHandler):
    """What a tracer such as LangSmith is told of each model call."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def on_chat_model_start(self, *args: Any, metadata: Any = None, **kwargs: Any) -> None:
        del args, kwargs
        ours = {name: value for name, value in metadata.items() if name.startswith("memguard_")}
        self.calls.append({name.removeprefix("memguard_"): v for name, v in ours.items()})


def test_calls_of_a_write_name_the_receipt() -> None:
    model = ScriptedChatModel(rules=[("<new_turns>", {"facts": [FACT]}), ("", "0.9")])
    store, traces = InMemoryStore(), Traces()
    with Journal.memory() as journal:
        guard = create_write_guard(
            model,
            models={"arms": (conmem := ConMemScript({"relevant": "helpful"}).model())}
            | dict.fromkeys(("probe", "validation", "quality", "audit"), conmem),
            gates=[ConsistencyGate(k=1), "conmem"],
            store=store,
            namespace=("memories",),
            receipts=journal,
        )
        writes = guard.invoke({"messages": [("user", SAID)]}, {"callbacks": [traces]})["writes"]
    (receipt,) = writes.receipts
    of_writer, *of_gates = traces.calls
    assert of_writer == {"method": "writer", "stage": "extract", "run_id": writes.run_id}
    assert {call["receipt_id"] for call in of_gates} == {receipt.id}
    assert {call["run_id"] for call in of_gates} == {receipt.run_id}
    named = {(call["method"], call["stage"]) for call in of_gates}
    assert ("consistency_gate", "sample") in named
    assert {("conmem", stage) for stage in ("probe", "validation", "arms", "audit")} <= named


def test_calls_of_a_read_name_the_run() -> None:
    index: Any = {"dims": 64, "embed": HashEmbeddings(dims=64)}
    store, traces = InMemoryStore(index=index), Traces()
    store.put(("memories",), "k", {"content": SAID})
    with Journal.memory() as journal:
        guard = create_read_guard(
            reader({SAID: {}}), store=store, namespace=("memories",), receipts=journal
        )
        read = guard.invoke({"query": "What do I own?"}, {"callbacks": [traces]})["read"]
    assert [call["stage"] for call in traces.calls] == ["decompose", "adjudicate"]
    assert {call["method"] for call in traces.calls} == {"permission_semantic"}
    assert {call["run_id"] for call in traces.calls} == {read.run_id}
