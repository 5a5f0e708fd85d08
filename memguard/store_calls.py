"""Calls to any LangGraph store, sync or async, from any event loop."""

import asyncio
from collections.abc import Sequence
from typing import Any

from langgraph.store.base import BaseStore, Op

from memguard import compat
from memguard.errors import ErrorCode, StoreConfigurationError
from memguard.portal import waits_for_portal


async def call_store(store: BaseStore, ops: Sequence[Op]) -> list[Any]:
    """Run operations on a store and return their results, in order.

    A store that has only `batch` (LangGraph's `SqliteStore`) is called in a worker thread. So is a
    store that is bound to an event loop other than the running one, as `AsyncSqliteStore` and
    `AsyncPostgresStore` are under a sync `invoke`.

    Raises:
        StoreConfigurationError: If the store is bound to a loop that is blocked until this ends.
    """
    # A guard around a store has no loop; the store inside it may have one.
    backend = getattr(store, "unguarded", store)
    loop = compat.loop_of_store(backend)
    if loop is None or loop is asyncio.get_running_loop():
        try:
            return await store.abatch(ops)
        except NotImplementedError:
            pass  # the only way to find out: the base class defines `abatch` for every store
    elif waits_for_portal(loop):
        name = type(backend).__name__
        msg = (
            f"the store {name} belongs to an event loop that was blocked by a sync call, and "
            "could never answer: use the async form (`ainvoke`, `aput`) there, or call the sync "
            "form from a worker thread"
        )
        raise StoreConfigurationError(msg, code=ErrorCode.STORE_LOOP)
    return await asyncio.to_thread(store.batch, ops)
