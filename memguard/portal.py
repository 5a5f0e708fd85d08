"""The sync surface: one daemon thread with one long-lived event loop, and nodes with two halves.

memguard is written once, as coroutines. A sync caller hands its coroutine to the portal and waits.
The loop lives as long as the process, so that HTTP connections outlive one call: a client that is
used from one `asyncio.run` after another fails with "Event loop is closed".

Why this is not anyio's `BlockingPortal` (tried with 4.16; it carries context variables and serves
notebooks too):

* When a waiting caller is interrupted, anyio cancels the work at every `await` until it is over.
  The cleanup of a cancelled write awaits: it releases slots and closes streams. asyncio cancels
  once, and the cleanup finishes.
* A coroutine that raises `SystemExit` ends anyio's task group, and with it the work of every other
  caller and the portal itself.
* Its context manager must be left in the process that entered it. After a fork, in the child, the
  garbage collector leaves it and waits for a thread that is not there.
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
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from typing import Any, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.runtime import get_runtime

from memguard.errors import ConfigurationError, ErrorCode

T = TypeVar("T")

_JOIN_SECONDS = 5.0
"""How long the end of the process waits for the loop to close what is open on it."""

_blocked: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()
"""Loops that wait for a portal."""

_depth: contextvars.ContextVar[int] = contextvars.ContextVar("memguard_portal_depth", default=0)
"""How many portals the running work has come through."""

_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
"""The portals' threads."""


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
            f"wait for itself for ever; await the async form there"
        )
        raise ConfigurationError(msg, code=ErrorCode.INPUT_INVALID)
    # A worker thread that was started by work on the portal gets the next portal: the first may be
    # blocked by a sync `invoke` that waits for exactly this thread.
    depth = _depth.get()
    with _blocking():
        return _portals.at(depth).run(work, depth=depth + 1)


def waits_for_portal(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether a loop is blocked by a `run_sync` in its own thread, so that it cannot serve."""
    return loop in _blocked


@contextlib.contextmanager
def _blocking() -> Generator[None]:
    """Note the loop that runs in this thread, if one does, as blocked."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        yield  # a script, or a worker thread
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
            result, end = future.result()
        except BaseException:
            # KeyboardInterrupt reaches the waiting thread only: take the work down with it.
            future.cancel()
            raise
        if end is not None:
            raise end
        return cast("T", result)

    def close(self) -> None:
        """Cancel what runs, close what is open on the loop, and join the thread."""
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
    """The result of the work, or what asks to end the process.

    asyncio lets these two end the loop, and everybody who waits for it would wait for ever. They
    are handed to the caller, in whose thread they belong.
    """
    try:
        return await work, None
    except (SystemExit, KeyboardInterrupt) as end:
        return None, end


class _Portals:
    """The portals of this process by depth; there is one, save for calls within calls."""

    def __init__(self) -> None:
        self.after_fork()

    def after_fork(self) -> None:
        """Start afresh: the threads did not come along, and one of them may hold the lock."""
        self._lock = threading.Lock()
        self._by_depth: dict[int, _Portal] = {}

    def at(self, depth: int) -> _Portal:
        """The portal of a depth, started on first use."""
        with self._lock:
            if depth not in self._by_depth:
                self._by_depth[depth] = _Portal()
            return self._by_depth[depth]

    def close(self) -> None:
        """End all of them, at the end of the process."""
        for portal in self._by_depth.values():
            portal.close()
        self._by_depth = {}


_portals = _Portals()
atexit.register(_portals.close)
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_portals.after_fork)


NodeFunction = Callable[..., Awaitable[Any]]
"""An async LangGraph node: takes the state, and `runtime` or `config` where it names them."""


def dual(
    node: NodeFunction, *, name: str | None = None, asks: Sequence[Runnable[Any, Any]] = ()
) -> Runnable[Any, Any]:
    """Make an async node usable in a graph that is invoked either way.

    LangGraph refuses an async-only node under `invoke`. The result of `dual` is awaited under
    `ainvoke`, and runs on the portal under `invoke`. Config, callbacks, custom stream events and
    interrupts come through; `get_runtime()` and `get_stream_writer()` work inside.

    Args:
        node: `async def node(state) -> dict`; parameters named `runtime` and `config` are filled
            in. A `functools.partial` of one is welcome.
        name: Shown in graphs and traces; the function's own name when left out.
        asks: Graphs that the node invokes, where LangGraph cannot see them by itself; for drawing
            and for streams of subgraphs.

    Returns:
        A runnable for `add_node`; calling it calls the function, so a test can await it directly.
    """
    return _DualNode(node, name=name, asks=asks)


class _DualNode(RunnableLambda[Any, Any]):
    """A node with both halves.

    A plain `RunnableLambda` would do, but it traces each node a second time, in addition to
    LangGraph's own trace. That costs more than the hop itself, so the entry points are overridden.
    """

    def __init__(
        self,
        node: NodeFunction,
        *,
        name: str | None = None,
        asks: Sequence[Runnable[Any, Any]] = (),
    ) -> None:
        self._asks = tuple(asks)
        function = _unwrapped(node)

        @functools.wraps(function)
        def sync_half(*args: Any, **kwargs: Any) -> Any:
            return run_sync(cast("Coroutine[Any, Any, Any]", node(*args, **kwargs)))

        super().__init__(sync_half, node, name=name or function.__name__)
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
        del call.__wrapped__
        self.__signature__ = inspect.signature(node)
        self.__call__ = types.MethodType(call, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._node(*args, **kwargs)

    @functools.cached_property
    def deps(self) -> list[Runnable[Any, Any]]:
        """Graphs that the function reaches, for drawing and for streams of subgraphs."""
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


def _unwrapped(node: Callable[..., Any]) -> Callable[..., Any]:
    function: Any = node
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    return function
