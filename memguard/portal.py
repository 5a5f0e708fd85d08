"""The sync surface: one daemon thread with one long-lived event loop, and nodes with two halves.

memguard is written once, as coroutines. A sync caller hands its coroutine to the portal and waits.
The loop lives as long as the process, so that HTTP connections outlive one call: a client that is
used from one `asyncio.run` after another fails with "Event loop is closed".
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
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.runtime import get_runtime

from memguard.errors import ConfigurationError, ErrorCode

T = TypeVar("T")

_JOIN_SECONDS = 5.0
"""How long the end of the process waits for the loop to close what is open on it."""


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the portal's loop and wait for its result.

    Context variables of the caller are seen inside. Works in a script, in worker threads and
    inside a running loop (a notebook), where it blocks that loop until the result is there.

    Args:
        work: The coroutine; closed unrun if it cannot be run here.

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
    # A worker thread that was begun by work on the portal gets the next one: the first may be
    # blocked by a sync `invoke` that waits for exactly this thread.
    with _blocking():
        return _portal_at(_depth.get()).run(work, depth=_depth.get() + 1)


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


_blocked: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()
"""Loops that wait for a portal."""


_depth: contextvars.ContextVar[int] = contextvars.ContextVar("memguard_portal_depth", default=0)
"""How many portals the running work has come through."""

_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
"""The portals' threads."""


class _Portal:
    """One thread, one loop, from first use to the end of the process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._serve, name="memguard-portal", daemon=True)
        _threads.add(self._thread)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], *, depth: int) -> T:
        done: Future[T] = Future()
        context = contextvars.copy_context()
        context.run(_depth.set, depth)
        self._loop.call_soon_threadsafe(self._start, work, done, context)
        try:
            return done.result()
        except BaseException:
            # KeyboardInterrupt reaches the waiting thread only: take the work down with it.
            if not done.done():
                done.cancel()
            raise

    def close(self) -> None:
        """Cancel what runs, close what is open on the loop, and join the thread."""
        if self.pid != os.getpid() or not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_JOIN_SECONDS)

    def _start(
        self, work: Coroutine[Any, Any, T], done: Future[T], context: contextvars.Context
    ) -> None:
        task = self._loop.create_task(work, context=context)
        self._tasks.add(task)  # the loop itself keeps only a weak reference
        task.add_done_callback(functools.partial(self._finish, done))
        done.add_done_callback(
            lambda future: (
                self._loop.call_soon_threadsafe(task.cancel) if future.cancelled() else None
            )
        )

    def _finish(self, done: "Future[T]", task: "asyncio.Task[T]") -> None:
        self._tasks.discard(task)
        if done.cancelled():
            if not task.cancelled():
                task.exception()  # retrieved, so that asyncio does not log it as lost
        elif task.cancelled():
            done.set_exception(CancelledError())
        elif (error := task.exception()) is not None:
            done.set_exception(error)
        else:
            done.set_result(task.result())

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
        # Closes the HTTP clients that hang on this loop; see `memguard.llm.clients`.
        await self._loop.shutdown_asyncgens()


class _Slot:
    """Where this process keeps its portals."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.portals: dict[int, _Portal] = {}

    def clear(self) -> None:
        """After a fork: the threads did not come along, and the lock may be held by nobody."""
        self.lock = threading.Lock()
        self.portals = {}

    def close(self) -> None:
        """At the end of the process."""
        for portal in self.portals.values():
            portal.close()
        self.portals = {}


_slot = _Slot()
atexit.register(_slot.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_slot.clear)


def _portal_at(depth: int) -> _Portal:
    """The portal of a depth, begun on first use; there is one, save for calls within calls."""
    portal = _slot.portals.get(depth)
    if portal is not None and portal.pid == os.getpid():
        return portal
    with _slot.lock:
        portal = _slot.portals.get(depth)
        if portal is None or portal.pid != os.getpid():
            portal = _slot.portals[depth] = _Portal()
        return portal


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

    A plain `RunnableLambda` would do; it traces each node a second time, beside LangGraph's own
    trace, which costs more than the hop itself. So the two entry points are written here.
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
        named = inspect.signature(node).parameters
        self._wants_runtime = "runtime" in named
        self._wants_config = "config" in named
        self._node = node
        self._show_types(function, node)

    def _show_types(self, function: Callable[..., Any], node: NodeFunction) -> None:
        """Let LangGraph infer the input schema and the destinations from the annotations."""

        @functools.wraps(function)
        def call(_self: Any, *args: Any, **kwargs: Any) -> Any:
            return node(*args, **kwargs)

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
        return (
            [*self._asks]
            + [
                found
                for value in inspect.getclosurevars(_unwrapped(self._node)).nonlocals.values()
                if isinstance(found := getattr(value, "__self__", value), Runnable)
            ]
            + [
                value
                for value in getattr(self._node, "keywords", {}).values()
                if isinstance(value, Runnable)
            ]
        )

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
        given: dict[str, Any] = dict(kwargs)
        if self._wants_runtime:
            given.setdefault("runtime", get_runtime())
        if self._wants_config:
            given.setdefault("config", config or {})
        return await self._node(state, **given)


def _unwrapped(node: Callable[..., Any]) -> Callable[..., Any]:
    function: Any = node
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    return function
