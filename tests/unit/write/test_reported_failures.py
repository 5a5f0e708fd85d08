"""With `on_failure="report"` no turn of a host fails because of memory, whatever the error is."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.store.base import Result
from langgraph.store.memory import InMemoryStore

from memguard import MemguardMiddleware, create_memory_agent, create_write_guard
from memguard.errors import ConfigurationError, ErrorCode, GuardError, MemguardError, StoreError
from memguard.journal.commit import commit
from memguard.journal.journal import Journal
from memguard.journal.receipts import ReceiptLog
from memguard.testing import ScriptedChatModel
from tests.unit.journal.conftest import build_receipt
from tests.unit.write.scripts import scripted

ERRORS: list[MemguardError] = [
    kind("the memory is out", code=code)
    for code in ErrorCode
    for kind in (GuardError, ConfigurationError)
]
TALK = {"messages": [("user", "I live in Porto.")]}
ANA = ("memories", "ana")


def answering() -> ScriptedChatModel:
    return ScriptedChatModel(rules=[("", "Hello.")])


class Down(InMemoryStore):
    """A store that raises an error while it has one."""

    error: MemguardError | None = None

    def batch(self, ops: Any) -> list[Result]:
        if self.error is not None:
            raise self.error
        return super().batch(ops)

    async def abatch(self, ops: Any) -> list[Result]:
        if self.error is not None:
            raise self.error
        return await super().abatch(ops)


async def _pending(store: Down) -> Journal:
    """A journal with a decision whose memory is not stored."""
    journal = Journal.memory()
    store.error = StoreError("down", code=ErrorCode.STORE_UNREACHABLE)
    with pytest.raises(StoreError):
        await commit(journal, store, [build_receipt("early", text="Ana rows.")])
    return journal


@pytest.mark.parametrize("pending", [False, True])
async def test_the_write_guard(pending: bool) -> None:
    store = Down()
    journal = await _pending(store) if pending else Journal.memory()
    settings: dict[str, Any] = {"store": store, "namespace": ANA, "receipts": journal, "gates": []}
    guard = create_write_guard(scripted(), on_failure="report", **settings)
    for error in ERRORS:
        store.error = error
        writes = (await guard.ainvoke(TALK))["writes"]
        assert [failure.code for failure in writes.failures] == [error.code], error
        assert writes.receipts == ()
    # Set to raise, it raises the error itself.
    raising = create_write_guard(scripted(), **settings)
    with pytest.raises(ConfigurationError):
        await raising.ainvoke(TALK)
    # Once the store is there again, the same guard stores both, and says what it recovered.
    store.error = None
    writes = (await guard.ainvoke(TALK))["writes"]
    assert len(store.search(ANA)) == 1 + pending
    assert ("recovery: interrupted writes completed: 1" in writes.notes) is pending


@pytest.mark.parametrize("pending", [False, True])
async def test_the_agent(pending: bool) -> None:
    store = Down()
    journal = await _pending(store) if pending else Journal.memory()
    agent = create_memory_agent(
        answering(),
        models={"writer": scripted()},
        store=store,
        namespace=ANA,
        receipts=journal,
        gates=[],
        read=False,
    )
    for error in ERRORS:
        store.error = error
        output = await agent.ainvoke(TALK)
        assert output["messages"][-1].content == "Hello."
        assert [failure.code for failure in output["writes"].failures] == [error.code]


@pytest.mark.parametrize("pending", [False, True])
async def test_the_middleware(pending: bool) -> None:
    store = Down()
    journal = await _pending(store) if pending else Journal.memory()
    memory = MemguardMiddleware(
        scripted(), store=store, namespace=ANA, receipts=journal, gates=[], read=False
    )
    agent: Any = create_agent(answering(), middleware=[memory])
    for error in ERRORS:
        store.error = error
        output: Any = await agent.ainvoke(TALK)
        assert isinstance(output["messages"][-1], AIMessage)
        (reports,) = output["memguard"].values()
        assert [failure.code for failure in reports["writes"].failures] == [error.code]


async def test_a_log_that_cannot_be_used(tmp_path: Any) -> None:
    closed = Journal.memory()
    await closed.aclose()
    (tmp_path / "file").write_text("x")
    for receipts in (closed, tmp_path / "file" / "below.sqlite3"):
        guard = create_write_guard(
            scripted(), store=InMemoryStore(), namespace=ANA, receipts=receipts, on_failure="report"
        )
        writes = (await guard.ainvoke(TALK))["writes"]
        assert len(writes.failures) == 1
        assert writes.failures[0].code in {ErrorCode.STORE_CLOSED, ErrorCode.STORE_PATH}


async def test_a_commit_that_failed_is_completed_by_the_next_run_of_the_same_guard() -> None:
    class Once(InMemoryStore):
        fails = True

        async def abatch(self, ops: Any) -> list[Result]:
            listed = list(ops)
            if self.fails and any(hasattr(op, "value") for op in listed):
                msg = "disk full"
                raise OSError(msg)
            return await super().abatch(listed)

    store, journal = Once(), Journal.memory()
    guard = create_write_guard(
        scripted(), store=store, namespace=ANA, receipts=journal, gates=[], on_failure="report"
    )
    writes = (await guard.ainvoke(TALK))["writes"]
    assert [failure.code for failure in writes.failures] == [ErrorCode.STORE_FAILED]
    store.fails = False
    writes = (await guard.ainvoke(TALK))["writes"]
    assert [item.value["content"] for item in store.search(ANA)] == ["I live in Porto."]
    (receipt,) = (await ReceiptLog(journal).alist()).receipts
    assert await ReceiptLog(journal).astate(receipt.id) == "stored"
    assert "recovery: interrupted writes completed: 1" in writes.notes
