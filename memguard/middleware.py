"""`MemguardMiddleware`: guarded memory for an agent of LangChain's `create_agent`.

It recalls before the agent runs and after its tools, adds what was admitted to the system message
of each model call, and remembers when the answer is complete. With `background=True`, writes
continue after the answer: `Background` runs those of a thread in order, and waits for them when the
process ends.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.untracked_value import UntrackedValue
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from memguard import compat
from memguard.errors import ConfigurationError, ErrorCode, GuardError
from memguard.hosts import add_memory, create_guards, failed_write
from memguard.journal.journal import Journal
from memguard.llm.models import ModelLike
from memguard.namespaces import NamespaceLike, user_settings
from memguard.portal import run_sync
from memguard.prompts import Prompt
from memguard.read.admission import AdmissionLike
from memguard.schema.audience import Audience
from memguard.schema.read import ReadReport, Recall
from memguard.uncheckpointed import Graph
from memguard.write.gates import GateLike
from memguard.write.reconciling import ReconcileLike
from memguard.write.report import WriteReport

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import OmitFromInput, PrivateStateAttr
except ImportError as _error:  # langchain is an extra
    _message = "MemguardMiddleware needs LangChain: pip install 'langgraph-memguard[langchain]'"
    raise ConfigurationError(_message, code=ErrorCode.MIDDLEWARE_EXTRA) from _error

_LOG = logging.getLogger("memguard")
_WORKERS = 4
"""Writes that run at once, of different threads; each mostly waits for models and the disk."""

Update = dict[str, Any] | None
"""What a hook changes in the agent's state."""

BackgroundWrite = Callable[[], Coroutine[Any, Any, WriteReport]]


class Background:
    """Runs writes on memguard's own loop, which outlives the event loops of callers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._under_way: set[Future[WriteReport]] = set()
        self._last: dict[str, Future[WriteReport]] = {}
        self._done: list[Future[WriteReport]] = []

    def submit(self, work: BackgroundWrite, *, thread: str) -> None:
        """Start a write after the earlier ones of its thread, so that no turn is read twice.

        Args:
            work: Creates the coroutine of the write.
            thread: Id of the conversation; writes without one run in any order.
        """
        with self._lock:
            if self._pool is None:
                # `atexit` would be too late: threads refuse the new work that a write needs.
                self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="memguard-background")
                compat.run_before_threads_end(self._finish)
            # A pool starts jobs in order: the write that this one waits for has a worker already.
            earlier = self._last.get(thread) if thread else None
            future = self._pool.submit(_run, work, earlier=earlier)
            self._under_way.add(future)
            if thread:
                self._last[thread] = future
        future.add_done_callback(lambda done: self._note(done, thread=thread))

    def drain(self, timeout: float | None = None) -> tuple[WriteReport, ...]:
        """Wait for all writes that were submitted.

        Args:
            timeout: Maximum seconds to wait; unfinished writes then continue.

        Returns:
            The reports since the last call, oldest first.

        Raises:
            MemguardError: The first failure that is on no report.
            TimeoutError: If a write is unfinished after the timeout.
        """
        with self._lock:
            pending = set(self._under_way)
        if wait(pending, timeout=timeout).not_done:
            msg = f"background writes are unfinished after {timeout} s: call drain again"
            raise TimeoutError(msg)
        with self._lock:
            done, self._done = self._done, []
        errors = [error for future in done if (error := future.exception()) is not None]
        if errors:
            raise errors[0]
        return tuple(future.result() for future in done)

    def _note(self, done: "Future[WriteReport]", *, thread: str) -> None:
        with self._lock:
            self._under_way.discard(done)
            self._done.append(done)
            if thread and self._last.get(thread) is done:
                del self._last[thread]
        error = done.exception()
        if error is not None:
            _LOG.error("a background write failed: %s", error)

    def _finish(self) -> None:
        with self._lock:
            pending = set(self._under_way)
        wait(pending)


def _run(work: BackgroundWrite, *, earlier: "Future[WriteReport] | None") -> WriteReport:
    if earlier is not None:
        # Waits, and ignores a failure: it is reported with its own write, and must not stop this.
        earlier.exception()
    return run_sync(work())


class MemguardState(AgentState[Any]):
    """What the middleware adds to an agent's state for the turn; none of it is checkpointed."""

    memguard_context: NotRequired[Annotated[dict[str, str], UntrackedValue, PrivateStateAttr]]
    """What each instance admitted, rendered, by the instance's name."""
    memguard: NotRequired[Annotated[dict[str, dict[str, Any]], UntrackedValue, OmitFromInput]]
    """`read` and `writes` reports of the turn, by the instance's name."""


class MemguardMiddleware(AgentMiddleware[MemguardState, Any, Any]):
    """Guarded memory for an agent of `create_agent`.

    Failures of memory do not prevent the answer: a failed read withholds what it could not judge;
    a failed write is on its report, and the thread's next turn repeats it. Settings that cannot
    work, such as an unknown user, raise an error.
    """

    state_schema = MemguardState

    def __init__(
        self,
        model: "ModelLike" = "local",
        *,
        gates: Sequence[GateLike] | None = None,
        reconcile: ReconcileLike | None = None,
        admission: AdmissionLike | None = None,
        recall: Recall | None = None,
        audience: Audience | None = None,
        models: Mapping[str, ModelLike] | None = None,
        prompts: Mapping[str, Prompt] | None = None,
        read: Graph | Literal[False] | None = None,
        write: Graph | Literal[False] | None = None,
        store: BaseStore | None = None,
        namespace: NamespaceLike = ("memories", "{user_id}"),
        background: bool = False,
        receipts: Journal | str | Path | None = None,
        name: str = "MemguardMiddleware",
    ) -> None:
        """Build the guards.

        Args:
            model: Model that extracts, judges and adjudicates memories. `"local"` needs no language
                model and is weaker; it is the default so that no call costs money unasked.
            gates: Gates that a candidate has to pass, in order, as in `create_write_guard`.
            reconcile: Whether corrections mark what they replace, as in `create_write_guard`; they
                do by default.
            admission: Method that admits recalled memories, as in `create_read_guard`.
            recall: Which memories are recalled; see `Recall`.
            audience: Who reads the answers: `"private"`, the default, or `"group"`; the keys
                `audience` and `participants` of the run's context decide for one run.
            models: Other models by stage, of both guards: `writer`, `judge`, `reconciler`, the
                stages of ConMem, `adjudicator` and `decomposer`.
            prompts: Your own prompts by name, of both guards.
            read: A read guard of your own; `False` recalls nothing.
            write: A write guard of your own, for example one with `review="interrupt"`; `False`
                remembers nothing.
            store: The memory store; the agent's own store by default.
            namespace: Where memories are: a template filled from the run's context, or a function.
            background: Whether writes run after the answer; see `drain`.
            receipts: Where receipts are stored; next to a local store by default.
            name: Name of this instance; an agent with two instances needs two names.

        Raises:
            ConfigurationError: If a guard cannot be built.
        """
        super().__init__()
        self._name = name
        self._store = store
        reader, writer = create_guards(
            model,
            read=read,
            write=write,
            store=store,
            namespace=namespace,
            receipts=receipts,
            gates=gates,
            reconcile=reconcile,
            admission=admission,
            recall=recall,
            audience=audience,
            models=models,
            prompts=prompts,
        )
        self._background = Background() if background and writer else None
        # Closures, because LangGraph looks for nested graphs in what a function closes over:
        # drawings and streams then show the guards with their methods inside.
        if reader:
            self._bind_read(reader)
        if writer:
            self._bind_write(writer)

    @property
    def name(self) -> str:
        """The instance's name."""
        return self._name

    def drain(self, timeout: float | None = None) -> tuple[WriteReport, ...]:
        """Wait for background writes; see `Background.drain`. The process also waits at its end."""
        return self._background.drain(timeout) if self._background else ()

    async def adrain(self, timeout: float | None = None) -> tuple[WriteReport, ...]:  # noqa: ASYNC109 - as `drain`
        """As `drain`, without blocking the event loop."""
        return await asyncio.to_thread(self.drain, timeout)

    # `create_agent` adds a node for each hook that the class overrides, so each is defined here.
    # An instance with a guard replaces them in `__init__`; without one they do nothing.

    def before_agent(self, state: MemguardState, runtime: Runtime[Any]) -> Update:
        """Recall what may be used for this request."""

    async def abefore_agent(self, state: MemguardState, runtime: Runtime[Any]) -> Update:
        """Recall what may be used for this request."""

    def before_model(self, state: MemguardState, runtime: Runtime[Any]) -> Update:
        """Recall again after tools: what they said may contradict a memory."""

    async def abefore_model(self, state: MemguardState, runtime: Runtime[Any]) -> Update:
        """Recall again after tools: what they said may contradict a memory."""

    def after_agent(self, state: MemguardState, runtime: Runtime[Any]) -> Update:
        """Remember what is new and passes the gates."""

    async def aafter_agent(self, state: MemguardState, runtime: Runtime[Any]) -> Update:
        """Remember what is new and passes the gates."""

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Put what was admitted last into the system message of this one call."""
        state = cast("MemguardState", request.state)
        # A turn that was interrupted and resumed has lost it, because it is never checkpointed.
        if self._context_of(state) is None:
            update = self.before_agent(state, request.runtime) or {}
            state = cast("MemguardState", {**state, **update})
        return handler(self._injected(request, state))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Put what was admitted last into the system message of this one call."""
        state = cast("MemguardState", request.state)
        if self._context_of(state) is None:
            update = await self.abefore_agent(state, request.runtime) or {}
            state = cast("MemguardState", {**state, **update})
        return await handler(self._injected(request, state))

    def _bind_read(self, graph: Graph) -> None:
        def before_agent(state: MemguardState, runtime: Runtime[Any]) -> dict[str, Any]:
            del runtime  # LangGraph passes it to a hook by this name
            return self._recalled(state, graph.invoke({"messages": state["messages"]}))

        async def abefore_agent(state: MemguardState, runtime: Runtime[Any]) -> dict[str, Any]:
            del runtime
            return self._recalled(state, await graph.ainvoke({"messages": state["messages"]}))

        def before_model(state: MemguardState, runtime: Runtime[Any]) -> Update:
            return before_agent(state, runtime) if has_tool_result(state["messages"]) else None

        async def abefore_model(state: MemguardState, runtime: Runtime[Any]) -> Update:
            if not has_tool_result(state["messages"]):
                return None
            return await abefore_agent(state, runtime)

        self.before_agent = before_agent  # pyright: ignore[reportAttributeAccessIssue]
        self.abefore_agent = abefore_agent  # pyright: ignore[reportAttributeAccessIssue]
        self.before_model = before_model  # pyright: ignore[reportAttributeAccessIssue]
        self.abefore_model = abefore_model  # pyright: ignore[reportAttributeAccessIssue]

    def _bind_write(self, graph: Graph) -> None:
        background = self._background

        def after_agent(state: MemguardState, runtime: Runtime[Any]) -> Update:
            if background is not None:
                return self._begin(background, graph, state, runtime)
            try:
                writes = graph.invoke({"messages": state["messages"]})["writes"]
            except GuardError as error:
                writes = failed_write(error)
            return self._reported(state, writes=writes)

        async def aafter_agent(state: MemguardState, runtime: Runtime[Any]) -> Update:
            if background is not None:
                return self._begin(background, graph, state, runtime)
            try:
                writes = (await graph.ainvoke({"messages": state["messages"]}))["writes"]
            except GuardError as error:
                writes = failed_write(error)
            return self._reported(state, writes=writes)

        self.after_agent = after_agent  # pyright: ignore[reportAttributeAccessIssue]
        self.aafter_agent = aafter_agent  # pyright: ignore[reportAttributeAccessIssue]

    def _begin(
        self, background: Background, graph: Graph, state: MemguardState, runtime: Runtime[Any]
    ) -> None:
        """Submit a write: a run of its own, with this run's user and store."""
        configurable = user_settings(get_config().get("configurable", {}))
        # The agent's store is only known now, and the write outlives the run that knows it.
        bound = graph if self._store is not None else graph.copy({"store": runtime.store})
        values = {"messages": list(state["messages"])}
        config: RunnableConfig = {"configurable": configurable}

        async def write() -> WriteReport:
            output: Any = await bound.ainvoke(values, config, context=runtime.context)
            return output["writes"]

        background.submit(write, thread=str(configurable.get("thread_id") or ""))

    def _context_of(self, state: MemguardState) -> str | None:
        return state.get("memguard_context", {}).get(self._name)

    def _injected(self, request: ModelRequest[Any], state: MemguardState) -> ModelRequest[Any]:
        memory = self._context_of(state) or ""
        return request.override(system_message=add_memory(request.system_message, memory))

    def _recalled(self, state: MemguardState, output: Mapping[str, Any]) -> dict[str, Any]:
        context = {**state.get("memguard_context", {}), self._name: output["memory_context"]}
        return {"memguard_context": context, **self._reported(state, read=output["read"])}

    def _reported(
        self, state: MemguardState, **reports: ReadReport | WriteReport
    ) -> dict[str, Any]:
        before = state.get("memguard", {})
        return {"memguard": {**before, self._name: {**before.get(self._name, {}), **reports}}}


def has_tool_result(messages: Sequence[AnyMessage]) -> bool:
    """Whether a tool has returned a result since the last message of the model or the user."""
    # From the end, because system messages may stand between a tool's result and the end.
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            return True
        if isinstance(message, AIMessage | HumanMessage):
            return False
    return False
