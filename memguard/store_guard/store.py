"""A guard around any LangGraph store: every write is judged before it is made.

`guard_store` wraps a store. What is admitted reaches the store unchanged; what is not stays in the
log, in quarantine or refused. With `read`, searches with a query return only what the query may
use. A write needs a source, the conversation that supports it: from `use_source`, from a setting,
or from the messages of the graph that is running.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, cast

from langgraph.config import get_config
from langgraph.store.base import (
    NOT_PROVIDED,
    BaseStore,
    Item,
    NotProvided,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from memguard import compat
from memguard.conversations import read_conversation
from memguard.conversations.messages import ConversationLike
from memguard.errors import ErrorCode, GuardError
from memguard.journal.commit import Backings
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.journal.receipts import ReceiptLog
from memguard.llm.models import ModelLike, resolve_stages
from memguard.methods.consistency_gate.config import ConsistencyGate
from memguard.portal import run_sync
from memguard.prompts import Prompt
from memguard.read.admission import AdmissionLike, build_admission
from memguard.redaction import Screen
from memguard.schema.base import Namespace
from memguard.schema.memory import Conversation
from memguard.schema.receipt import Budget
from memguard.state_keys import check_names
from memguard.store_guard.reads import ReadGate
from memguard.store_guard.writes import Write, WriteGate, digest_of_gates
from memguard.write.gates import PROMPTS, STAGES, GateLike, Pipeline, build_gates

SourceLike = Callable[[PutOp], ConversationLike | None] | ConversationLike
"""A conversation, or a function that returns the one of a write; `None` if there is none."""

OnRefused = Literal["hold", "raise"]
"""What a writer sees of a write that is not admitted: nothing, or `GuardError`."""

_SOURCE: ContextVar[Conversation | None] = ContextVar("memguard_source", default=None)
_DIALOGUE_TURNS = 10
"""Turns before a search that its judge sees."""


class GuardedStore(BaseStore):
    """A store whose writes are judged first; created by `guard_store`.

    What is admitted reaches the wrapped store unchanged: key, value, index and time to live. All
    other operations are those of the wrapped store, and so are attributes that `BaseStore` does not
    have.
    """

    def __init__(
        self,
        store: BaseStore,
        *,
        gate: WriteGate,
        reads: ReadGate | None,
        source: SourceLike | None,
        source_turns: int,
        guards: tuple[Namespace, ...],
        on_refused: OnRefused,
    ) -> None:
        self.unguarded = store
        """The wrapped store, without the guard."""
        self._gate = gate
        self._reads = reads
        self._source = source
        self._source_turns = source_turns
        self._guards = guards
        self._on_refused = on_refused

    def __getattr__(self, name: str) -> Any:
        # `copy` and `pickle` look for methods before `__init__` has set the attribute.
        if name == "unguarded":
            raise AttributeError(name)
        return getattr(self.unguarded, name)

    @property
    def supports_ttl(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the wrapped store deletes by time to live."""
        return self.unguarded.supports_ttl

    @property
    def ttl_config(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The time-to-live settings of the wrapped store."""
        return self.unguarded.ttl_config

    @property
    def receipts(self) -> ReceiptLog:
        """The decisions on all writes."""
        return self._gate.backing.receipts

    @property
    def quarantine(self) -> Quarantine:
        """The writes in quarantine; a released one is stored as it was put."""
        return Quarantine(self._gate.backing.journal)

    # -- writes -------------------------------------------------------------------------------

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations; a put that is not admitted is left out, and its result is `None`."""
        operations = list(ops)
        writes = self._writes(operations)
        allowed = run_sync(self._allow(writes)) if writes else {}
        admitted = [op for index, op in enumerate(operations) if allowed.get(index, True)]
        done = self.unguarded.batch(admitted) if admitted else []
        results = _spread(done, allowed, size=len(operations))
        if not any(map(self._is_judged_search, operations)):
            return results
        return run_sync(self._filter(operations, results))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`."""
        operations = list(ops)
        writes = self._writes(operations)
        allowed = await self._allow(writes) if writes else {}
        admitted = [op for index, op in enumerate(operations) if allowed.get(index, True)]
        done = await self.unguarded.abatch(admitted) if admitted else []
        results = _spread(done, allowed, size=len(operations))
        return await self._filter(operations, results)

    def put(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """Store an item, if it is admitted."""
        writes = self._writes([PutOp(namespace, str(key), {**value})])
        if not writes or all(run_sync(self._allow(writes)).values()):
            self.unguarded.put(namespace, key, {**value}, index, ttl=ttl)

    async def aput(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """Store an item, if it is admitted."""
        writes = self._writes([PutOp(namespace, str(key), {**value})])
        if not writes or all((await self._allow(writes)).values()):
            await self.unguarded.aput(namespace, key, {**value}, index, ttl=ttl)

    # -- reads by a query ---------------------------------------------------------------------

    def search(self, *args: Any, query: str | None = None, **kwargs: Any) -> list[SearchItem]:
        """Search the wrapped store; with `read` and a query, only for what the query may use."""
        items = self.unguarded.search(*args, query=query, **kwargs)
        if self._reads is None or not query:
            return items
        return run_sync(self._reads.filter(query, items, dialogue=_find_dialogue()))

    async def asearch(
        self, *args: Any, query: str | None = None, **kwargs: Any
    ) -> list[SearchItem]:
        """As `search`."""
        items = await self.unguarded.asearch(*args, query=query, **kwargs)
        if self._reads is None or not query:
            return items
        return await self._reads.filter(query, items, dialogue=_find_dialogue())

    # -- operations of the wrapped store ------------------------------------------------------
    # `BaseStore` would send them through `batch`, and lose parameters that a store adds.

    def get(self, *args: Any, **kwargs: Any) -> Item | None:
        """Get an item from the wrapped store."""
        return self.unguarded.get(*args, **kwargs)

    async def aget(self, *args: Any, **kwargs: Any) -> Item | None:
        """Get an item from the wrapped store."""
        return await self.unguarded.aget(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> None:
        """Delete an item from the wrapped store."""
        self.unguarded.delete(*args, **kwargs)

    async def adelete(self, *args: Any, **kwargs: Any) -> None:
        """Delete an item from the wrapped store."""
        await self.unguarded.adelete(*args, **kwargs)

    def list_namespaces(self, **kwargs: Any) -> list[tuple[str, ...]]:
        """List the namespaces of the wrapped store."""
        return self.unguarded.list_namespaces(**kwargs)

    async def alist_namespaces(self, **kwargs: Any) -> list[tuple[str, ...]]:
        """List the namespaces of the wrapped store."""
        return await self.unguarded.alist_namespaces(**kwargs)

    # -- shared by the sync and async forms ---------------------------------------------------

    def _writes(self, ops: Sequence[Op]) -> dict[int, Write]:
        """The writes to judge, by index."""
        # Their sources are found here and not on the portal: they belong to the caller's run.
        return {
            index: Write(
                op=op, source=_find_source(op, setting=self._source, turns=self._source_turns)
            )
            for index, op in enumerate(ops)
            # A put of `None` is a delete.
            if isinstance(op, PutOp) and isinstance(op.value, Mapping) and self._is_guarded(op)
        }

    def _is_guarded(self, op: PutOp) -> bool:
        namespace = tuple(op.namespace)
        return any(namespace[: len(prefix)] == prefix for prefix in self._guards)

    async def _allow(self, writes: Mapping[int, Write]) -> dict[int, bool]:
        """Whether each write may be made, by index.

        Raises:
            GuardError: If one may not and the guard is set to raise; none is made then.
        """
        receipts = await self._gate.decide(list(writes.values()))
        allowed = [await self._gate.allows(receipt) for receipt in receipts]
        refused = [
            receipt
            for receipt, is_allowed in zip(receipts, allowed, strict=True)
            if receipt is not None and not is_allowed
        ]
        if refused and self._on_refused == "raise":
            first = refused[0]
            msg = (
                f"{len(refused)} of {len(writes)} writes were not admitted, so none was made: "
                f"{first.candidate.text!r} was {first.outcome}, {first.decision.explanation}; "
                f"receipt {first.id}"
            )
            raise GuardError(msg, code=ErrorCode.WRITE_REFUSED)
        return dict(zip(writes, allowed, strict=True))

    def _is_judged_search(self, op: Op) -> bool:
        return self._reads is not None and isinstance(op, SearchOp) and bool(op.query)

    async def _filter(self, ops: Sequence[Op], results: Sequence[Result]) -> list[Result]:
        """The results, those of searches with a query without what it may not use."""
        filtered = list(results)
        for index, op in enumerate(ops):
            if self._reads is not None and isinstance(op, SearchOp) and op.query:
                items = cast("list[SearchItem]", results[index])
                filtered[index] = await self._reads.filter(
                    op.query, items, dialogue=_find_dialogue()
                )
        return filtered


def guard_store(
    store: BaseStore,
    *,
    model: "ModelLike | None" = None,
    gates: Sequence[GateLike] = (ConsistencyGate(),),
    source: "SourceLike | None" = None,
    source_turns: int = 20,
    needs_source: bool = True,
    guards: Sequence[Namespace] = ((),),
    shadow: bool = False,
    on_refused: OnRefused = "hold",
    models: Mapping[str, ModelLike] | None = None,
    prompts: Mapping[str, Prompt] | None = None,
    receipts: Journal | str | Path | None = None,
    budget: Budget | None = None,
    read: "AdmissionLike | None" = None,
    screen: Screen = "secrets",
) -> GuardedStore:
    """A store that judges every write before it makes it.

    Args:
        store: Any LangGraph store.
        model: Serves every stage that `models` does not name: `"provider:model"`, a chat model, a
            resolved model, or `"local"`. Not needed without gates.
        gates: What a write has to pass, in order; without gates every write is made and logged.
        source: The conversation that supports writes, or a function of the `PutOp`; by default the
            `messages` of the graph that is running. `use_source(...)` takes precedence over both.
        source_turns: Number of most recent turns of the source that a judge sees.
        needs_source: Whether a write without a source goes into quarantine; switch it off for gates
            that need none.
        guards: Prefixes of the namespaces whose writes are judged; all namespaces by default.
        shadow: Only record the decisions; every write is made.
        on_refused: What the writer sees of a write that is not admitted: nothing, or `GuardError`.
        models: Models by stage; one never serves another stage.
        prompts: Your own prompts by name.
        receipts: Where receipts and quarantine are stored; by default alongside a local store.
        budget: Limits of one call of the store; beyond them the write raises.
        read: What a search with a query has to pass: `"fc"`, `"ps"`, `"relevance"`, a spec, or a
            graph of your own. By default searches are those of the wrapped store.
        screen: What keeps a write in quarantine, unjudged: `secrets`, `personal` for personal data
            as well, or `nothing`.

    Raises:
        ConfigurationError: If a model, gate or prompt cannot be used, or a stage has no model.
    """
    check_names(models or {}, allowed=STAGES, what="models")
    check_names(prompts or {}, allowed=PROMPTS, what="prompts")
    budget = budget or Budget()
    stages = resolve_stages(model, models)
    # A second guard replaces the first one; both would judge and log every write twice.
    inner = store.unguarded if isinstance(store, GuardedStore) else store
    pipeline = Pipeline(build_gates(gates, models=stages, store=inner, prompts=prompts or {}))
    backing = Backings(inner, receipts).current()
    gate = WriteGate(
        backing=backing,
        pipeline=pipeline,
        policy_digest=digest_of_gates(
            pipeline.gates, needs_source=needs_source, shadow=shadow, screen=screen
        ),
        needs_source=needs_source,
        shadow=shadow,
        budget=budget,
        screen=screen,
    )
    reads = None
    if read is not None:
        admission = build_admission(
            read, models=stages, prompts={}, budget=budget, deadline=None, clock=backing.journal.now
        )
        reads = ReadGate(backing=backing, admission=admission)
    return GuardedStore(
        inner,
        gate=gate,
        reads=reads,
        source=source,
        source_turns=source_turns,
        guards=tuple(tuple(prefix) for prefix in guards),
        on_refused=on_refused,
    )


def _spread(results: Sequence[Result], allowed: Mapping[int, bool], *, size: int) -> list[Result]:
    """Results in the order of the operations, with `None` for a put that was left out."""
    remaining = iter(results)
    return [next(remaining) if allowed.get(index, True) else None for index in range(size)]


@contextmanager
def use_source(source: ConversationLike, *, conversation_id: str = "") -> Generator[Conversation]:
    """Set the source of the writes to guarded stores inside the block.

    Args:
        source: A conversation, chat messages, or a text that the user said.
        conversation_id: Id of the conversation on receipts.

    Raises:
        InvalidInputError: If the source cannot be read.
    """
    conversation = read_conversation(source, conversation_id=conversation_id)
    token = _SOURCE.set(conversation)
    try:
        yield conversation
    finally:
        _SOURCE.reset(token)


def _find_source(op: PutOp, *, setting: "SourceLike | None", turns: int) -> Conversation | None:
    """The last turns of the conversation that supports a write; `None` if there is none.

    `use_source` takes precedence over the setting. Only without a setting, the messages of the
    running graph are used.

    Raises:
        InvalidInputError: If the source cannot be read.
    """
    source = _SOURCE.get()
    if source is None and setting is not None:
        conversation = setting(op) if callable(setting) else setting
        source = None if conversation is None else read_conversation(conversation)
    if source is None and setting is None:
        source = _conversation_of_run()
    if source is None or not source.evidence:
        return None
    return Conversation(turns=source.evidence[-turns:], id=source.id)


def _find_dialogue() -> Conversation:
    """The last turns of the conversation before a search; empty if there is none."""
    source = _SOURCE.get() or _conversation_of_run() or Conversation()
    return Conversation(turns=source.evidence[-_DIALOGUE_TURNS:], id=source.id)


def _conversation_of_run() -> Conversation | None:
    """The messages in the state of the graph that runs here; `None` without a graph."""
    try:
        configurable = get_config().get("configurable", {})
    except RuntimeError:
        return None  # no graph runs here
    read = compat.state_reader(configurable)
    if read is None:
        return None
    try:
        messages = read("messages")
    except KeyError:
        return None  # a graph whose state has no messages
    thread = str(configurable.get("thread_id") or "")
    return read_conversation(messages, conversation_id=thread) if messages else None
