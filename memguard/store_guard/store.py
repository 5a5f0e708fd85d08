"""A guard around any LangGraph store: every write is judged before it is made.

`guard_store` wraps a store. What is admitted reaches the store unchanged; what is not stays in the
log, in quarantine or refused. With `read`, searches with a query return only what the query may
use. A write needs a source, the conversation that supports it: from `use_source`, from a setting,
or from the messages of the graph that is running.
"""

import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
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
from memguard.errors import ErrorCode, GuardError, MemguardError
from memguard.journal.commit import Backings
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.journal.receipts import ReceiptLog, origins_of
from memguard.journal.storing import NamespacedKey
from memguard.llm.models import ModelLike, resolve_stages
from memguard.methods.consistency_gate.config import ConsistencyGate
from memguard.portal import run_sync
from memguard.prompts import Prompt
from memguard.read.admission import AdmissionLike, build_admission
from memguard.read.audience import check_audience
from memguard.redaction import Screen
from memguard.schema.audience import Audience
from memguard.schema.base import Namespace
from memguard.schema.memory import Conversation
from memguard.schema.receipt import Budget, Receipt
from memguard.state_keys import check_names
from memguard.store_guard.reads import ReadGate
from memguard.store_guard.writes import Write, WriteGate, digest_of_gates
from memguard.write.deciding import OnWriteFailure
from memguard.write.gates import PROMPTS, STAGES, GateLike, Pipeline, build_gates
from memguard.write.reconciling import ReconcileLike, build_reconciler

_LOG = logging.getLogger("memguard")

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
        on_failure: OnWriteFailure,
    ) -> None:
        self.unguarded = store
        """The wrapped store, without the guard."""
        self._gate = gate
        self._reads = reads
        self._source = source
        self._source_turns = source_turns
        self._guards = guards
        self._on_refused = on_refused
        self._on_failure = on_failure

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
        changes = self._changes(operations)
        ruling = run_sync(self._begin(changes)) if changes else _Ruling()
        admitted = [op for index, op in enumerate(operations) if index not in ruling.refused]
        done = self.unguarded.batch(admitted) if admitted else []
        if ruling.is_logged:
            run_sync(self._end(ruling))
        results = _spread(done, ruling.refused, size=len(operations))
        if not any(map(self._is_judged_search, operations)):
            return results
        return run_sync(self._filter(operations, results))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`."""
        operations = list(ops)
        changes = self._changes(operations)
        ruling = await self._begin(changes) if changes else _Ruling()
        admitted = [op for index, op in enumerate(operations) if index not in ruling.refused]
        done = await self.unguarded.abatch(admitted) if admitted else []
        if ruling.is_logged:
            await self._end(ruling)
        results = _spread(done, ruling.refused, size=len(operations))
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
        changes = self._changes([_put_op(namespace, key, value, ttl=ttl)])
        ruling = run_sync(self._begin(changes)) if changes else _Ruling()
        if not ruling.refused:
            self.unguarded.put(namespace, key, {**value}, index, ttl=ttl)
        if ruling.is_logged:
            run_sync(self._end(ruling))

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
        changes = self._changes([_put_op(namespace, key, value, ttl=ttl)])
        ruling = await self._begin(changes) if changes else _Ruling()
        if not ruling.refused:
            await self.unguarded.aput(namespace, key, {**value}, index, ttl=ttl)
        if ruling.is_logged:
            await self._end(ruling)

    def delete(self, namespace: Namespace, key: str) -> None:
        """Delete an item; its receipts say so."""
        changes = self._changes([PutOp(namespace, str(key), None)])
        ruling = run_sync(self._begin(changes)) if changes else _Ruling()
        self.unguarded.delete(namespace, key)
        if ruling.is_logged:
            run_sync(self._end(ruling))

    async def adelete(self, namespace: Namespace, key: str) -> None:
        """Delete an item; its receipts say so."""
        changes = self._changes([PutOp(namespace, str(key), None)])
        ruling = await self._begin(changes) if changes else _Ruling()
        await self.unguarded.adelete(namespace, key)
        if ruling.is_logged:
            await self._end(ruling)

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

    def list_namespaces(self, **kwargs: Any) -> list[tuple[str, ...]]:
        """List the namespaces of the wrapped store."""
        return self.unguarded.list_namespaces(**kwargs)

    async def alist_namespaces(self, **kwargs: Any) -> list[tuple[str, ...]]:
        """List the namespaces of the wrapped store."""
        return await self.unguarded.alist_namespaces(**kwargs)

    # -- shared by the sync and async forms ---------------------------------------------------

    def _changes(self, ops: Sequence[Op]) -> "_Changes | None":
        """The writes to judge and the deletions to log; `None` if there are none."""
        puts = {
            index: op
            for index, op in enumerate(ops)
            if isinstance(op, PutOp) and self._is_guarded(op)
        }
        # Their sources are found here and not on the portal: they belong to the caller's run.
        writes = {
            index: Write(
                op=op, source=_find_source(op, setting=self._source, turns=self._source_turns)
            )
            for index, op in puts.items()
            if isinstance(op.value, Mapping)
        }
        # A put of `None` is a delete. Of several operations on a key, the last one counts.
        last = {(tuple(op.namespace), str(op.key)): op.value for op in puts.values()}
        deletions = [location for location, value in last.items() if value is None]
        return _Changes(writes=writes, deletions=deletions) if writes or deletions else None

    def _is_guarded(self, op: PutOp) -> bool:
        namespace = tuple(op.namespace)
        return any(namespace[: len(prefix)] == prefix for prefix in self._guards)

    async def _begin(self, changes: "_Changes") -> "_Ruling":
        """Judge writes and log deletions, before the wrapped store is called.

        Raises:
            GuardError: If a write may not be made and the guard is set to raise; none is made then.
        """
        try:
            receipts = await self._gate.decide(list(changes.writes.values()))
            allowed = [await self._gate.allows(receipt) for receipt in receipts]
            deleted = await self._gate.begin_deletions(changes.deletions)
        except MemguardError as error:
            if self._on_failure == "raise":
                raise
            _LOG.error("writes were not judged, and not made: %s", error)
            return _Ruling(refused=frozenset(changes.writes))
        refused = [
            receipt
            for receipt, is_allowed in zip(receipts, allowed, strict=True)
            if receipt is not None and not is_allowed
        ]
        if refused and self._on_refused == "raise":
            first = refused[0]
            msg = (
                f"{len(refused)} of {len(changes.writes)} writes were not admitted, so none was "
                f"made: {first.candidate.text!r} was {first.outcome}, "
                f"{first.decision.explanation}; receipt {first.id}"
            )
            raise GuardError(msg, code=ErrorCode.WRITE_REFUSED)
        ruled = list(zip(changes.writes.items(), receipts, allowed, strict=True))
        return _Ruling(
            refused=frozenset(index for (index, _), _, is_allowed in ruled if not is_allowed),
            made=tuple(
                (write, receipt)
                for (_, write), receipt, is_allowed in ruled
                if receipt is not None and is_allowed
            ),
            deleted=deleted,
        )

    async def _end(self, ruling: "_Ruling") -> None:
        """Log that the wrapped store has made the writes and deletions."""
        try:
            await self._gate.confirm(ruling.made)
            await self._gate.end_deletions(ruling.deleted)
        except MemguardError as error:
            if self._on_failure == "raise":
                raise
            _LOG.error("the log does not say yet that writes were made: %s", error)

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
    on_failure: OnWriteFailure = "raise",
    models: Mapping[str, ModelLike] | None = None,
    prompts: Mapping[str, Prompt] | None = None,
    receipts: Journal | str | Path | None = None,
    budget: Budget | None = None,
    read: "AdmissionLike | None" = None,
    screen: Screen = "secrets",
    audience: Audience = "private",
    reconcile: ReconcileLike = False,
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
        on_failure: `raise` the error of a gate or of the log, and make no write; or only `report`
            it, so that it never fails the caller's run: a write that could not be judged goes into
            quarantine, and without the log no write is made, which is logged as an error.
        models: Models by stage; one never serves another stage.
        prompts: Your own prompts by name.
        receipts: Where receipts and quarantine are stored; by default alongside a local store.
        budget: Limits of one call of the store; beyond them the write raises, or is not judged.
        read: What a search with a query has to pass: `"fc"`, `"ps"`, `"relevance"`, a spec, or a
            graph of your own. By default searches are those of the wrapped store.
        screen: What keeps a write in quarantine, unjudged: `secrets`, `personal` for personal data
            as well, or `nothing`.
        audience: Who reads what is found: `"private"` or `"group"`, unless the context of the run
            says; it has an effect with `read` only.
        reconcile: Whether an admitted write is compared with the memories near it, so that a
            correction marks what it replaces, and a repeat is not written; or the settings.

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
        on_failure=on_failure,
        screen=screen,
        reconciler=build_reconciler(
            reconcile,
            models=stages,
            prompts=prompts or {},
            store=inner,
            clock=backing.journal.now,
            # The caller's items say nothing of their source; the log does.
            origins=partial(backing.journal.aread, origins_of),
        ),
    )
    reads = None
    if read is not None:
        admission = build_admission(
            read, models=stages, prompts={}, budget=budget, deadline=None, clock=backing.journal.now
        )
        reads = ReadGate(backing=backing, admission=admission, audience=check_audience(audience))
    return GuardedStore(
        inner,
        gate=gate,
        reads=reads,
        source=source,
        source_turns=source_turns,
        guards=tuple(tuple(prefix) for prefix in guards),
        on_refused=on_refused,
        on_failure=on_failure,
    )


@dataclass(frozen=True, kw_only=True)
class _Changes:
    """What a call changes in guarded namespaces."""

    writes: dict[int, Write]
    """The writes to judge, by their index among the operations."""
    deletions: list[NamespacedKey]


@dataclass(frozen=True, kw_only=True)
class _Ruling:
    """What the guard decided about a call, for the log after it."""

    refused: frozenset[int] = frozenset()
    """Indexes of the writes that are left out."""
    made: tuple[tuple[Write, Receipt], ...] = ()
    deleted: tuple[str, ...] = ()
    """Receipts of the items that are deleted."""

    @property
    def is_logged(self) -> bool:
        """Whether the log has to be told that the store was called."""
        return bool(self.made or self.deleted)


def _put_op(
    namespace: Namespace, key: str, value: Mapping[str, Any], *, ttl: float | NotProvided | None
) -> PutOp:
    # `PutOp` has no value for a time to live that was not given; `batch` reads `None` as none.
    return PutOp(namespace, str(key), {**value}, ttl=None if isinstance(ttl, NotProvided) else ttl)


def _spread(results: Sequence[Result], refused: frozenset[int], *, size: int) -> list[Result]:
    """Results in the order of the operations, with `None` for a put that was left out."""
    remaining = iter(results)
    return [None if index in refused else next(remaining) for index in range(size)]


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
