"""The read guard: a request goes in, what memory may add to its answer comes out.

```text
START -> recall -> permission_semantic -> report -> END
```

The node in the middle is the admission method, under its own name and with its own steps inside.

A read never delays an answer beyond its deadline. What is late or fails is left out, except that a
safety constraint or a preference that can be recognized by its words stays as context. A flag on
the receipt says so.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from pydantic import BaseModel, Field, JsonValue

from memguard.conversations import read_conversation
from memguard.conversations.messages import AnyConversation
from memguard.errors import ConfigurationError, ErrorCode, MemguardError
from memguard.journal.commit import Backings
from memguard.journal.journal import Journal
from memguard.journal.reads import ReadLog
from memguard.llm.call import call_metadata
from memguard.llm.models import LOCAL, ModelLike, resolve_stages
from memguard.local.look_ups import asks_about_past
from memguard.methods.adjudication.state import Evidences
from memguard.namespaces import (
    NamespaceLike,
    owned_by_user,
    resolve_namespace,
    run_values,
    templates_of,
)
from memguard.portal import dual
from memguard.prompts import Prompt
from memguard.read.admission import (
    PROMPTS,
    STAGES,
    Admission,
    AdmissionLike,
    AdmissionResult,
    build_admission,
)
from memguard.read.audience import (
    Room,
    check_audience,
    room_of,
    with_withheld,
    withhold_in_room,
)
from memguard.read.recall import Recalled, recall, with_safety_k
from memguard.schema.audience import Audience
from memguard.schema.base import Frozen, GraphInput, Namespace, Text, is_blank
from memguard.schema.failures import Failure, error_of, failure_of
from memguard.schema.memory import Conversation, Turn
from memguard.schema.read import Evidence, Flag, ReadReport, Recall, UnitVerdict
from memguard.schema.receipt import Budget
from memguard.schema.results import ReadResult
from memguard.state_keys import check_names, node_name, rename_keys
from memguard.uncheckpointed import UncheckpointedGraph, uncheckpointed

logger = logging.getLogger(__name__)

NAME = "read_guard"
OnFailure = Literal["report", "raise"]

IN_MEMORY_NOTE = (
    "the receipt of this read is kept in memory and ends with the process: pass `receipts=PATH`"
)
_MIN_RECEIPT_SECONDS = 0.05
"""Seconds that writing the receipt may take even when the deadline has passed: a read without a
receipt cannot be explained afterwards."""
_EVIDENCE_TURNS = 30
"""Turns before the query among which a tool's results still count as evidence."""


class ReadGuardInput(GraphInput):
    """A request to find memories for: `messages`, or a `query` with its `dialogue`."""

    messages: list[Any] = Field(
        default=[],
        description="Chat messages; the last one of the user is the query, tools give evidence.",
        examples=[[{"role": "user", "content": "A restaurant for my birthday, please."}]],
    )
    query: Text | None = Field(
        default=None, description="What is asked now, instead of the last message of the user."
    )
    dialogue: AnyConversation | None = Field(
        default=None, description="The turns before the query, instead of the messages."
    )
    evidence: Evidences = Field(
        default=(),
        description="Text that came with the query: tool output, search results, documents.",
    )
    audience: Any = Field(
        default=None,
        description="Who reads the answer: `private` or `group`; as the run says when left out.",
        examples=["group"],
    )
    participants: Any = Field(
        default=(),
        description="Names or ids of those who read the answer, or a mapping of ids to names.",
        examples=[["ana", "rui"]],
    )


class ReadGuardOutput(BaseModel):
    """What may enter the prompt, and why the rest may not."""

    memory_context: str = Field(description="The section for the prompt; empty for nothing.")
    admitted: tuple[UnitVerdict, ...] = Field(description="The units in it, in their order.")
    withheld: tuple[UnitVerdict, ...] = Field(description="The units left out, with the reason.")
    read: ReadReport = Field(description="The receipt of the read.")


class Request(Frozen):
    """The query of a request, with its dialogue and evidence."""

    query: Text = ""
    """The input's `query`, or the last message of the user; empty when the user said nothing."""
    dialogue: Conversation = Conversation()
    """The turns before it, without the results of tools."""
    evidence: tuple[Evidence, ...] = ()
    """The input's evidence, then the results of tools."""
    speaker: Text = ""
    """The name of who asks, if the message has one."""


class ReadGuardState(ReadGuardInput):
    """What passes from node to node."""

    # The input's keys stay as the caller set them, because a host may read them again; what the
    # guard makes of them has names of its own.
    run_id: str = ""
    request: Request = Request()
    recalled: Recalled = Recalled()
    namespaces: tuple[Namespace, ...] = ()
    """The namespaces that were searched, or would have been."""
    user_namespaces: tuple[Namespace, ...] = ()
    """Those of them that the id of the run's user is a part of."""
    seconds: float = 0.0
    """How long the read has taken so far."""
    flags: tuple[Flag, ...] = ()
    failures: tuple[Failure, ...] = ()
    memory_context: str = ""
    admitted: tuple[UnitVerdict, ...] = ()
    withheld: tuple[UnitVerdict, ...] = ()
    # From the method, and completed by `report`.
    read: ReadReport | None = None


@dataclass(frozen=True, kw_only=True)
class ReadGuard:
    """What the nodes share: built once, bound to no event loop."""

    backings: Backings
    namespaces: tuple[NamespaceLike, ...]
    spec: Recall
    admission: Admission
    clock: Callable[[], datetime]
    on_failure: OnFailure
    audience: Audience = "private"

    def remaining(self, state: ReadGuardState) -> float | None:
        """Seconds that are left of the deadline; `None` if there is none."""
        deadline = self.admission.deadline
        return None if deadline is None else deadline - state.seconds


async def recall_memories(state: ReadGuardState, *, guard: ReadGuard) -> dict[str, Any]:
    """Read the request, resolve the namespaces, fetch the memories that may matter to it."""
    start = time.monotonic()
    # Outside the `try`: an unknown user or unreadable messages are the caller's mistake, and no
    # reason to answer without memory.
    request = read_request(state)
    store = guard.backings.current().store
    namespaces = tuple(resolve_namespace(template, store=store) for template in guard.namespaces)
    flags: tuple[Flag, ...] = ()
    failures: tuple[Failure, ...] = ()
    recalled = Recalled(namespaces=namespaces)
    # Before the search, so that a group that is misspelled fails before anything is read.
    _room(state, guard=guard)
    try:
        async with asyncio.timeout(guard.admission.deadline):
            recalled = await recall(
                store,
                query=request.query,
                namespaces=namespaces,
                spec=guard.spec,
                k=guard.admission.k,
                now=guard.clock(),
                past=guard.admission.lookups and asks_about_past(request.query),
            )
    except TimeoutError:
        flags = ("recall_late",)
    except MemguardError as error:
        flags, failures = ("recall_failed",), (failure_of(error, step="recall"),)
    # Counts only: a stream of custom events must not carry memories that are withheld later.
    _emit("recalled", memories=len(recalled.memories))
    return {
        "run_id": uuid.uuid4().hex,
        "request": request,
        "recalled": recalled,
        "namespaces": namespaces,
        "user_namespaces": tuple(
            namespace
            for namespace, template in zip(namespaces, guard.namespaces, strict=True)
            if owned_by_user(template)
        ),
        "seconds": time.monotonic() - start,
        "flags": flags,
        "failures": failures,
    }


async def admit(state: ReadGuardState, *, guard: ReadGuard) -> dict[str, Any]:
    """Run the method, or its fallback where it fails or is late."""
    start = time.monotonic()
    memories, room = state.recalled.memories, _room(state, guard=guard)
    # Before the method, so that no prompt has what a group may not see.
    withholding = await withhold_in_room(memories, room=room)
    values = {
        "query": state.request.query,
        "memories": withholding.permitted,
        "dialogue": state.request.dialogue,
        "evidence": state.request.evidence,
        "now": guard.clock(),
        "run_id": state.run_id,
    }
    if state.flags:
        # Recall failed or was late: there is nothing to judge, and perhaps no time to.
        result = AdmissionResult(output=await guard.admission.fallback(values))
    else:
        with call_metadata(run_id=state.run_id):
            result = await guard.admission.judge(
                values,
                journal=guard.backings.current().journal,
                seconds=guard.remaining(state),
            )
    output = with_withheld(result.output, memories=memories, withholding=withholding, room=room)
    _emit("admitted", admitted=len(output["admitted"]), withheld=len(output["withheld"]))
    return {
        "memory_context": output["memory_context"],
        "admitted": output["admitted"],
        "withheld": output["withheld"],
        "read": output["report"],
        "seconds": state.seconds + time.monotonic() - start,
        "flags": (*state.flags, *result.flags),
        "failures": (*state.failures, *result.failures),
    }


def _room(state: ReadGuardState, *, guard: ReadGuard) -> Room:
    """Who reads the answer, and who asks."""
    return room_of(
        default=guard.audience,
        audience=state.audience,
        participants=state.participants,
        speaker=state.request.speaker,
        run=run_values(),
        user_namespaces=state.user_namespaces,
    )


async def report(state: ReadGuardState, *, guard: ReadGuard) -> dict[str, Any]:
    """Make the receipt durable, then raise or log what it names."""
    journal = guard.backings.current().journal
    read = _complete(state, guard=guard, in_memory=journal.path is None)
    seconds = guard.remaining(state)
    try:
        async with asyncio.timeout(seconds and max(_MIN_RECEIPT_SECONDS, seconds)):
            await ReadLog(journal).aappend(read)
    except TimeoutError:
        # The log's own thread still writes it; the answer does not wait for that.
        note = "the receipt was not on disk within the deadline"
        read = read.model_copy(update={"notes": (*read.notes, note)})
    except MemguardError as error:
        failures = (*read.failures, failure_of(error, step="log"))
        read = read.model_copy(update={"failures": failures})
    _emit("reported", flags=list(read.flags))
    # Last, so that the receipt of a run that raises is in the log.
    for failure in read.failures:
        error = error_of(failure)
        if guard.on_failure == "raise":
            raise error
        if isinstance(error, ConfigurationError):
            # It does not heal by itself, and the answer that follows does not show it.
            logger.warning("the read guard answers without memory: %s", error)
    return {"read": read}


def _complete(state: ReadGuardState, *, guard: ReadGuard, in_memory: bool) -> ReadReport:
    """The method's receipt, completed by recall and by the run around the method."""
    # The node before this one always writes it.
    read = cast("ReadReport", state.read)
    # The method was given a share of the deadline; the receipt names the whole.
    spec = {**read.spec, "deadline": guard.admission.deadline}
    notes = (
        *state.request.dialogue.notes,
        *_recall_notes(state.recalled),
        *read.notes,
        *((IN_MEMORY_NOTE,) * in_memory),
    )
    return read.model_copy(
        update={
            "spec": spec,
            "namespaces": state.namespaces,
            "flags": tuple(dict.fromkeys((*state.flags, *read.flags))),
            "failures": (*read.failures, *state.failures),
            "notes": tuple(dict.fromkeys(notes)),
        }
    )


def _recall_notes(recalled: Recalled) -> tuple[str, ...]:
    counts = (
        (recalled.additional, "safety constraints found in addition to the nearest"),
        (recalled.past, "superseded memories found, because the query may be about the past"),
        (recalled.superseded, "left out because they are marked as superseded"),
        (recalled.outside, "left out because they were said outside the time window"),
        (recalled.below, "left out because they scored below `min_score`"),
        (recalled.textless, "left out because they have no text"),
    )
    return (*recalled.notes, *(f"{what}: {count}" for count, what in counts if count))


def _emit(step: str, **details: JsonValue) -> None:
    """Send `{"memguard": "read", "step": ..., ...}` to whoever streams custom events."""
    get_stream_writer()({"memguard": "read", "step": step, **details})


def read_request(state: ReadGuardState) -> Request:
    """The request that the input states.

    The last message of the user is the query, unless the input has one. What a tool returned is
    evidence, never dialogue: the adjudicator sees the two separately.

    Raises:
        InvalidInputError: If the messages cannot be read.
    """
    conversation = state.dialogue or read_conversation(state.messages)
    turns = conversation.turns
    last = _last_of_user(turns)
    if state.query is None:
        if last is None:
            return Request(dialogue=conversation, evidence=state.evidence)
        query, before, after = turns[last].content, turns[:last], turns[last + 1 :]
        speaker = turns[last].speaker
    else:
        # A host may pass the query and also the messages that end with it.
        repeated = last is not None and turns[last].content.strip() == state.query.strip()
        end = last if repeated and last is not None else len(turns)
        query, before, after = state.query, turns[:end], turns[end + 1 :]
        speaker = turns[end].speaker if repeated else ""
    # What a memory tool returned is rendered: a memory is no evidence against another.
    tools = [
        turn
        for turn in (*before[-_EVIDENCE_TURNS:], *after)
        if turn.role == "tool" and not turn.rendered
    ]
    results = tuple(
        Evidence(text=turn.content, source=turn.speaker or "tool", at=turn.at)
        for turn in tools
        if not is_blank(turn.content)
    )
    dialogue = tuple(turn for turn in before if turn.role != "tool")
    return Request(
        query=query,
        dialogue=conversation.model_copy(update={"turns": dialogue}),
        evidence=(*state.evidence, *results),
        speaker=speaker,
    )


def _last_of_user(turns: tuple[Turn, ...]) -> int | None:
    # A turn that memguard rendered repeats memories; nobody said it.
    of_user = (
        index
        for index in reversed(range(len(turns)))
        if turns[index].role == "user" and not turns[index].rendered
    )
    return next(of_user, None)


def create_read_guard(
    model: "ModelLike | None" = None,
    *,
    store: BaseStore | None = None,
    namespace: NamespaceLike | list[NamespaceLike] = ("memories", "{user_id}"),
    admission: AdmissionLike = "ps",
    recall: Recall | None = None,
    models: Mapping[str, ModelLike] | None = None,
    prompts: Mapping[str, Prompt] | None = None,
    receipts: Journal | str | Path | None = None,
    budget: Budget | None = None,
    deadline: float | None = None,
    keys: Mapping[str, str] | None = None,
    on_failure: OnFailure = "report",
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    audience: Audience = "private",
) -> UncheckpointedGraph[ReadResult]:
    """A graph that recalls, and admits what may be used for this request; a node of any host graph.

    Args:
        model: Who adjudicates and decomposes memories: `"provider:model"`, a chat model, a resolved
            model, or `"local"`, which needs no language model and is weaker. The local one when
            left out: a model costs money only where you pass one.
        store: The memory store; the host graph's store when left out.
        namespace: Template with placeholders, or a function of the run's `Runtime`; a list of
            them searches several namespaces. Namespaces above and below them are not searched.
        admission: `"ps"`, `"fc"`, `"relevance"`, a spec, or a graph of your own.
        recall: Which memories are looked at; see `Recall`.
        models: Other models by stage: `adjudicator`, `decomposer`.
        prompts: Your own prompts by name, for example `permission_semantic/adjudicate`.
        receipts: Where receipts and the pieces of memories are stored; next to a local store when
            left out.
        budget: The most one read may spend.
        deadline: Seconds that a whole read may take; the admission's own when left out, 20.
        keys: The host's state key for each of the guard's, for example `{"messages": "chat"}`.
            Of the keys that are not named, only `messages` is then read from the host's state.
        on_failure: What to do when the store, the log or the model fails: `report` it in
            `read.failures` and answer without memory, or `raise` it. A mistake in the settings,
            such as a wrong API key, is logged as a warning in addition.
        clock: Gives the time of the read.
        audience: Who reads the answers: `"private"`, or `"group"` for a channel. The input's
            `audience` and `participants`, or these keys of the run's context, decide for one run.

    Returns:
        A graph that takes `messages`, or `query` with `dialogue`, and `evidence`, and returns
        `memory_context`, `admitted`, `withheld` and `read`, a `ReadReport`.

    Raises:
        ConfigurationError: If a model, admission, prompt or deadline cannot be used.
    """
    check_names(models or {}, allowed=STAGES, what="models")
    check_names(prompts or {}, allowed=PROMPTS, what="prompts")
    if deadline is not None and not deadline > 0:
        msg = f"the deadline {deadline!r} leaves no time to read: pass seconds above 0"
        raise ConfigurationError(msg, code=ErrorCode.SPEC_INVALID)
    method = build_admission(
        admission,
        models=resolve_stages(model, models, default=LOCAL),
        prompts=prompts or {},
        budget=budget or Budget(),
        deadline=deadline,
        clock=clock,
    )
    guard = ReadGuard(
        backings=Backings(store, receipts),
        namespaces=templates_of(namespace),
        spec=with_safety_k(recall or Recall(), method.safety_k),
        admission=method,
        clock=clock,
        on_failure=on_failure,
        audience=check_audience(audience),
    )
    graph = _compile(guard)
    if keys is not None:
        graph = rename_keys(graph, keys=keys, takes=ReadGuardInput, gives=ReadGuardOutput)
    # After the renaming, which wraps the graph in another one.
    return uncheckpointed(graph)


def _compile(guard: ReadGuard) -> CompiledStateGraph[Any, Any, Any, Any]:
    builder = StateGraph(ReadGuardState, input_schema=ReadGuardInput, output_schema=ReadGuardOutput)
    builder.add_node("recall", dual(partial(recall_memories, guard=guard), name="recall"))
    builder.add_node("report", dual(partial(report, guard=guard)))
    # LangGraph refuses a second node of a name, and a node with the name of a state key.
    reserved = {"recall", "report", START, END, *ReadGuardState.model_fields}
    method = node_name(guard.admission.name, reserved=reserved, suffix="admission")
    # A node that runs the graph rather than the graph itself: it has to keep the deadline, and to
    # fall back. LangGraph shows both alike, in drawings, streams and `get_subgraphs`.
    node = dual(partial(admit, guard=guard), name=method, asks=[guard.admission.graph])
    builder.add_node(method, node)
    builder.add_edge(START, "recall")
    builder.add_edge("recall", method)
    builder.add_edge(method, "report")
    builder.add_edge("report", END)
    return builder.compile(name=NAME)
