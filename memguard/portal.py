"""The sync surface: one daemon thread with one long-lived event loop.

memguard is written once, as coroutines. `run_sync` hands a coroutine to the loop of the portal and
waits. `dual` makes a graph node of a coroutine function that runs under `invoke` and `ainvoke`. The
loop lives as long as the process, so that HTTP connections outlive one call: a client that is used
from one `asyncio.run` after another fails with "Event loop is closed".

Why this is not anyio's `BlockingPortal` (tried with 4.16, which carries context variables and works
in notebooks too):

* When a waiting caller is interrupted, anyio cancels the work at every `await` until it is over.
  The cleanup of a cancelled write awaits: it releases slots and closes streams. asyncio cancels
  once, and the cleanup finishes.
* A coroutine that raises `SystemExit` ends anyio's task group. The work of all other callers and
  the portal itself end with it.
* Its context manager must be exited in the process that entered it. In a forked child the garbage
  collector exits it, and waits for a thread that does not exist there.

`call_store` calls any LangGraph store, sync or async, from any event loop.
"""

import asyncio
import atexit
import contextlib
import contextvars
import functools
import inspect
import os
import threading
import types
import typing
import weakref
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Sequence,
)
from typing import Any, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore, GetOp, Op, SearchOp

from memguard import compat
from memguard.errors import ConfigurationError, ErrorCode, StoreConfigurationError, StoreError

T = TypeVar("T")

_JOIN_SECONDS = 5.0
"""How long the end of the process waits for the loop to close its connections."""

# Loops whose thread waits in `run_sync`. Weak, or every loop of the process would stay alive.
_blocked: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()

# How many portals the running work was handed through. A context variable, because it has to reach
# the worker threads that the work starts with `asyncio.to_thread`.
_depth: contextvars.ContextVar[int] = contextvars.ContextVar("memguard_portal_depth", default=0)

# The threads of the portals.
_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the portal's loop and wait for its result.

    The coroutine sees the caller's context variables. `run_sync` works in a script, in worker
    threads and inside a running loop (a notebook), which it blocks until the result is there.

    Args:
        work: The coroutine; closed without being run if it cannot be run here.

    Raises:
        ConfigurationError: If called from the portal's own loop, which would wait for itself.
    """
    if threading.current_thread() in _threads:
        name = getattr(work, "__qualname__", repr(work))
        work.close()
        msg = (
            f"the sync form of {name!r} was called from memguard's own event loop, which would "
            f"wait for itself forever; await the async form there"
        )
        raise ConfigurationError(msg, code=ErrorCode.INPUT_INVALID)
    # A worker thread that was started by work on the portal gets the next portal: the first may be
    # blocked by a sync `invoke` that waits for exactly this thread.
    depth = _depth.get()
    with _blocking():
        return _portals.at(depth).run(work, depth=depth + 1)


def waits_for_portal(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether `run_sync` blocks the thread of this loop, so that no task on it can proceed."""
    return loop in _blocked


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs in this thread; `None` in a script or a worker thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@contextlib.contextmanager
def _blocking() -> Generator[None]:
    """Record the loop of this thread, if there is one, as blocked."""
    loop = running_loop()
    if loop is None:
        yield
        return
    _blocked.add(loop)
    try:
        yield
    finally:
        _blocked.discard(loop)


class _Portal:
    """One thread, one loop, from first use to the end of the process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="memguard-portal", daemon=True)
        _threads.add(self._thread)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], *, depth: int) -> T:
        context = contextvars.copy_context()
        context.run(_depth.set, depth)
        # The task is created in the context that is current here, hence `context.run`.
        future = context.run(asyncio.run_coroutine_threadsafe, _outcome(work), self._loop)
        try:
            result, exit_request = future.result()
        except BaseException:
            # KeyboardInterrupt reaches the waiting thread only, so the work is cancelled from here.
            future.cancel()
            raise
        if exit_request is not None:
            raise exit_request
        return cast("T", result)

    def close(self) -> None:
        """Cancel the running work, close what is open on the loop, and join the thread."""
        # A stopped loop accepts callbacks without an error and never runs them.
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_JOIN_SECONDS)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._drain())
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()

    async def _drain(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        # Closes the HTTP clients that hang on this loop; see `memguard.llm.call`.
        await self._loop.shutdown_asyncgens()


async def _outcome(
    work: Coroutine[Any, Any, T],
) -> tuple[T | None, SystemExit | KeyboardInterrupt | None]:
    """The result of the work, or its request to end the process."""
    # A sync host saves its own steps with the sync methods of its checkpointer, which may have no
    # others. Graphs that the work starts on this loop would call the async ones.
    compat.replace_checkpointer(ThreadedSaver.around)
    # In asyncio these two end the loop, and every other caller of the portal would wait forever.
    # They are raised in the thread of the caller instead.
    try:
        return await work, None
    except (SystemExit, KeyboardInterrupt) as exit_request:
        return None, exit_request


class _Portals:
    """The portals of this process by depth; there is one unless sync calls are nested."""

    def __init__(self) -> None:
        self.after_fork()

    def after_fork(self) -> None:
        """Start without portals: a child has no copy of their threads."""
        # A new lock, because a thread of the parent may have held the old one during the fork.
        self._lock = threading.Lock()
        self._by_depth: dict[int, _Portal] = {}

    def at(self, depth: int) -> _Portal:
        """The portal of a depth, started on first use."""
        with self._lock:
            if depth not in self._by_depth:
                self._by_depth[depth] = _Portal()
            return self._by_depth[depth]

    def close(self) -> None:
        """Close all portals, at the end of the process."""
        for portal in self._by_depth.values():
            portal.close()
        self._by_depth = {}


_portals = _Portals()
atexit.register(_portals.close)
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_portals.after_fork)


NodeFunction = Callable[..., Awaitable[Any]]
"""An async LangGraph node: takes the state, and `runtime` and `config` if it names them."""


def dual(
    node: NodeFunction, *, name: str | None = None, asks: Sequence[Runnable[Any, Any]] = ()
) -> Runnable[Any, Any]:
    """Make an async node usable under both `invoke` and `ainvoke`.

    LangGraph refuses an async-only node under `invoke`. The result of `dual` is awaited under
    `ainvoke`, and runs on the portal under `invoke`. Config, callbacks, custom stream events and
    interrupts are passed on; `get_runtime()` and `get_stream_writer()` work inside.

    Args:
        node: `async def node(state) -> dict`, or a `functools.partial` of one; parameters named
            `runtime` and `config` are filled in.
        name: Shown in graphs and traces; the name of the function when left out.
        asks: Graphs that the node invokes, where LangGraph cannot find them by itself; for drawing
            and for streams of subgraphs.

    Returns:
        A runnable for `add_node`; calling it calls the function, so a test can await it directly.
    """
    return _DualNode(node, name=name, asks=asks)


class _DualNode(RunnableLambda[Any, Any]):
    """A node with a sync and an async form."""

    # A plain `RunnableLambda` would do, but it traces each node a second time, in addition to
    # LangGraph's own trace. That takes longer than the switch of threads, so `invoke` and `ainvoke`
    # are overridden.

    def __init__(
        self, node: NodeFunction, *, name: str | None, asks: Sequence[Runnable[Any, Any]]
    ) -> None:
        self._asks = tuple(asks)
        function = _unwrapped(node)

        @functools.wraps(function)
        def sync_node(*args: Any, **kwargs: Any) -> Any:
            return run_sync(cast("Coroutine[Any, Any, Any]", node(*args, **kwargs)))

        super().__init__(sync_node, node, name=name or function.__name__)
        parameters = inspect.signature(node).parameters
        self._wants_runtime = "runtime" in parameters
        self._wants_config = "config" in parameters
        self._node = node
        self._show_types(function, node)

    def _show_types(self, function: Callable[..., Any], node: NodeFunction) -> None:
        """Let LangGraph infer the input schema and the destinations from the annotations."""

        @functools.wraps(function)
        def call(_self: Any, *args: Any, **kwargs: Any) -> Any:
            return node(*args, **kwargs)

        # LangGraph reads the type hints of `node.__call__`. They are resolved here: a hint that is
        # a string names something in the module of the function, and `call` lives in this one.
        try:
            call.__annotations__ = typing.get_type_hints(function)
        except (NameError, TypeError):
            call.__annotations__ = {}
        # `inspect` would follow it to the function, whose parameters have no `_self`.
        del call.__wrapped__
        self.__signature__ = inspect.signature(node)
        self.__call__ = types.MethodType(call, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._node(*args, **kwargs)

    @functools.cached_property
    def deps(self) -> list[Runnable[Any, Any]]:
        """Graphs that the node uses: LangGraph reads this for drawings and subgraph streams."""
        variables = inspect.getclosurevars(_unwrapped(self._node)).nonlocals.values()
        # A bound method, such as `graph.ainvoke`, stands for its graph.
        owners = [getattr(value, "__self__", value) for value in variables]
        arguments = getattr(self._node, "keywords", {}).values()
        return [
            *self._asks,
            *(value for value in (*owners, *arguments) if isinstance(value, Runnable)),
        ]

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        """Run the node on the portal and wait."""
        return run_sync(self._call(input, config, kwargs))

    async def ainvoke(
        self,
        input: Any,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run the node on the caller's loop."""
        return await self._call(input, config, kwargs)

    async def _call(self, state: Any, config: RunnableConfig | None, kwargs: Any) -> Any:
        arguments: dict[str, Any] = dict(kwargs)
        if self._wants_runtime:
            arguments.setdefault("runtime", get_runtime())
        if self._wants_config:
            arguments.setdefault("config", config or {})
        return await self._node(state, **arguments)


class ThreadedSaver(BaseCheckpointSaver[Any]):
    """A checkpointer whose async methods run its sync methods in a worker thread.

    LangGraph's `SqliteSaver` and `PostgresSaver` have sync methods only. The async savers answer
    them too, on the event loop that they were opened on; they refuse any other loop.
    """

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        super().__init__(serde=saver.serde)
        self._saver = saver

    @classmethod
    def around(cls, saver: BaseCheckpointSaver[Any]) -> "ThreadedSaver":
        """The saver with async methods that call its sync ones."""
        return saver if isinstance(saver, cls) else cls(saver)

    def get_next_version(self, current: Any, channel: None) -> Any:
        """As the saver's."""
        return self._saver.get_next_version(current, channel)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As the saver's."""
        return self._saver.get_tuple(config)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As the saver's `get_tuple`."""
        return await asyncio.to_thread(self._saver.get_tuple, config)

    def list(self, config: RunnableConfig | None, **options: Any) -> Iterator[CheckpointTuple]:
        """As the saver's."""
        return self._saver.list(config, **options)

    async def alist(
        self, config: RunnableConfig | None, **options: Any
    ) -> AsyncIterator[CheckpointTuple]:
        """As the saver's `list`."""
        for found in await asyncio.to_thread(lambda: [*self._saver.list(config, **options)]):
            yield found

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As the saver's."""
        return self._saver.put(config, checkpoint, metadata, new_versions)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As the saver's `put`."""
        values = (checkpoint, metadata, new_versions)
        return await asyncio.to_thread(self._saver.put, config, *values)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[Any], task_id: str, task_path: str = ""
    ) -> None:
        """As the saver's."""
        self._saver.put_writes(config, writes, task_id, task_path)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[Any], task_id: str, task_path: str = ""
    ) -> None:
        """As the saver's `put_writes`."""
        await asyncio.to_thread(self._saver.put_writes, config, writes, task_id, task_path)


def _unwrapped(node: Callable[..., Any]) -> Callable[..., Any]:
    function: Any = node
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    return function


async def call_store(store: BaseStore, ops: Sequence[Op]) -> list[Any]:
    """Run operations on a store and return their results, in order.

    A store that has only `batch` (LangGraph's `SqliteStore`) is called in a worker thread. So is a
    store that is bound to an event loop other than the running one, as `AsyncSqliteStore` and
    `AsyncPostgresStore` are under a sync `invoke`.

    Raises:
        StoreConfigurationError: If the store is bound to a loop that is blocked until this ends.
        StoreError: If a result belongs to another namespace or key than its operation asks for.
    """
    results = await _results_of(store, ops)
    _check_results(store, ops, results)
    return results


async def _results_of(store: BaseStore, ops: Sequence[Op]) -> list[Any]:
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


def _check_results(store: BaseStore, ops: Sequence[Op], results: Sequence[Any]) -> None:
    """Refuse the answer of a store that confuses namespaces: it may have a memory of another user.

    A search also returns items below its namespace; who wants the namespace alone leaves them out.
    """
    for op, result in zip(ops, results, strict=False):
        if isinstance(op, SearchOp):
            asked = _labels(op.namespace_prefix)
            is_own = all(_labels(item.namespace)[: len(asked)] == asked for item in result)
        elif isinstance(op, GetOp) and result is not None:
            asked = _labels(op.namespace)
            is_own = (_labels(result.namespace), result.key) == (asked, op.key)
        else:
            continue
        if not is_own:
            # Without the other namespace, which may name another user.
            msg = (
                f"the store {type(store).__name__} was asked for {asked!r} and returned an item of "
                "another namespace or key; nothing of its answer was used: do not use this store"
            )
            raise StoreError(msg, code=ErrorCode.STORE_FAILED)


def _labels(namespace: Sequence[object]) -> tuple[str, ...]:
    # Some stores take integers as labels and return texts, or return a list.
    return tuple(map(str, namespace))
