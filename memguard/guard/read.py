"""The read guard: a request goes in, what memory may add to its answer comes out.

```text
START -> recall -> admit (a method, with its own steps) -> report -> END
```

A read never blocks an answer longer than its deadline: what is late or fails is left out, what its
words tell to be a safety constraint or a preference stays as context, and a flag says so.
"""

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from pydantic import JsonValue

from memguard.adjudication.unsaved import unsaved
from memguard.errors import ConfigurationError, ErrorCode, GuardError, MemguardError
from memguard.guard.admission import (
    LOCAL,
    PROMPTS,
    STAGES,
    Admission,
    AdmissionLike,
    build_admission,
)
from memguard.guard.backing import Backings
from memguard.guard.failures import error_of
from memguard.guard.gates import check_names
from memguard.guard.keys import rename_keys
from memguard.guard.namespaces import NamespaceLike, resolve_namespace, templates_of
from memguard.guard.read_state import ReadGuardInput, ReadGuardOutput, ReadGuardState
from memguard.guard.recall import recall
from memguard.guard.request import read_request
from memguard.llm.models import ModelLike, resolve_model
from memguard.portal import dual
from memguard.prompts import Prompt
from memguard.schema.ledger import Flag, ReadReport
from memguard.schema.recall import Recall, Recalled
from memguard.schema.usage import Budget
from memguard.schema.write import Failure
from memguard.stores.journal import Journal
from memguard.stores.reads import ReadLog

NAME = "read_guard"
OnFailure = Literal["report", "raise"]

IN_MEMORY_NOTE = (
    "the receipt of this read is kept in memory and ends with the process: pass `receipts=PATH`"
)
_LEAST_WAIT = 0.05
"""Seconds that writing the receipt may take in any case."""


@dataclass(frozen=True, kw_only=True)
class ReadGuard:
    """What the nodes share: built once, bound to no event loop."""

    backings: Backings
    namespaces: tuple[NamespaceLike, ...]
    spec: Recall
    admission: Admission
    clock: Callable[[], datetime]
    on_failure: OnFailure


async def recall_memories(state: ReadGuardState, *, guard: ReadGuard) -> dict[str, Any]:
    """Read the request, find the namespaces, fetch what may bear on it."""
    began = time.monotonic()
    request = read_request(state)
    store = guard.backings.current().store
    places = tuple(resolve_namespace(each, store=store) for each in guard.namespaces)
    flags: tuple[Flag, ...] = ()
    failures: tuple[Failure, ...] = ()
    recalled = Recalled(namespaces=places)
    try:
        async with asyncio.timeout(guard.admission.deadline):
            recalled = await recall(
                store,
                query=request.query,
                namespaces=places,
                spec=guard.spec,
                k=guard.admission.k,
                now=guard.clock(),
            )
    except TimeoutError:
        flags = ("recall_late",)
    except MemguardError as error:
        flags, failures = ("recall_failed",), (_failure(error, "recall"),)
    _emit("recalled", memories=len(recalled.memories))
    return {
        "run_id": uuid.uuid4().hex,
        "asked": request.query,
        "before": request.dialogue,
        "beside": request.evidence,
        "recalled": recalled,
        "places": places,
        "seconds": time.monotonic() - began,
        "flags": flags,
        "failures": failures,
    }


async def admit(state: ReadGuardState, *, guard: ReadGuard) -> dict[str, Any]:
    """Ask the method, and do without its judgement where that fails or is late."""
    began = time.monotonic()
    given = {
        "query": state.asked,
        "memories": state.recalled.memories,
        "dialogue": state.before,
        "evidence": state.beside,
        "now": guard.clock(),
        "run_id": state.run_id,
    }
    if state.flags:
        # Recall failed or was late: there is nothing to judge, and perhaps no time to.
        judged = await guard.admission.without(given)
    else:
        judged = await guard.admission.judge(
            given,
            journal=guard.backings.current().journal,
            seconds=guard.admission.deadline - state.seconds,
        )
    found = judged.found
    _emit("admitted", admitted=len(found["admitted"]), withheld=len(found["withheld"]))
    return {
        "memory_context": found["memory_context"],
        "admitted": found["admitted"],
        "withheld": found["withheld"],
        "read": found["report"],
        "seconds": state.seconds + time.monotonic() - began,
        "flags": (*state.flags, *judged.flags),
        "failures": (*state.failures, *judged.failures),
    }


async def report(state: ReadGuardState, *, guard: ReadGuard) -> dict[str, Any]:
    """Make the receipt durable; raise what is your mistake, now that it is written down."""
    journal = guard.backings.current().journal
    read = _finished(state, guard=guard, in_memory=journal.path is None)
    left = max(_LEAST_WAIT, guard.admission.deadline - state.seconds)
    try:
        async with asyncio.timeout(left):
            await ReadLog(journal).aappend(read)
    except TimeoutError:
        # The log's own thread goes on with it; the answer does not wait for that.
        note = "the receipt was not on disk within the deadline"
        read = read.model_copy(update={"notes": (*read.notes, note)})
    except MemguardError as error:
        failures = (*read.failures, _failure(error, "log"))
        read = read.model_copy(update={"failures": failures})
    _emit("reported", flags=list(read.flags))
    for failure in read.failures:
        error = error_of(failure)
        if guard.on_failure == "raise" or isinstance(error, ConfigurationError):
            raise error
    return {"read": read}


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
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """A graph that recalls, and admits what may be used for this request; a node of any host graph.

    Args:
        model: Who adjudicates and cuts memories: `"provider:model"`, a chat model, a resolved
            model, or `"local"`, which needs no language model and is weaker. The local one when
            left out: no model spends money unasked.
        store: Where memories are; the host graph's store when left out.
        namespace: Template with placeholders, or a function of the run's `Runtime`; a list of
            them looks in several namespaces. Each is looked in exactly, never above or below.
        admission: `"ps"`, `"fc"`, `"relevance"`, a spec, or a graph of your own.
        recall: Which memories are looked at; see `Recall`.
        models: Other models by stage: `adjudicator`, `decomposer`.
        prompts: Your own prompts by name, for example `permission_semantic/adjudicate`.
        receipts: Where receipts and the pieces of memories are kept; beside a local store when
            left out.
        budget: The most one read may spend.
        deadline: Seconds that a whole read may take; the admission's own when left out, 20.
        keys: The host's state keys for the guard's, for example `{"messages": "chat"}`; what is
            not named, `messages` aside, is then not read from the host's state.
        on_failure: What to do when the store or the log fails: `report` it in `read.failures` and
            answer without, or `raise` it. Your mistakes, such as a wrong key, are raised always.
        clock: Gives the time of the read.

    Returns:
        A graph that takes `messages`, or `query` with `dialogue`, and `evidence`, and returns
        `memory_context`, `admitted`, `withheld` and `read`, a `ReadReport`.

    Raises:
        ConfigurationError: If a model, admission, prompt or deadline cannot be used.
    """
    check_names(models or {}, known=STAGES, what="models")
    check_names(prompts or {}, known=PROMPTS, what="prompts")
    _check_deadline(deadline)
    guard = ReadGuard(
        backings=Backings(store, receipts),
        namespaces=templates_of(namespace),
        spec=recall or Recall(),
        admission=build_admission(
            admission,
            models=_staged(model, models),
            prompts=prompts or {},
            budget=budget or Budget(),
            deadline=deadline,
            clock=clock,
        ),
        clock=clock,
        on_failure=on_failure,
    )
    graph = _compile(guard)
    if keys is not None:
        graph = rename_keys(graph, keys=keys, takes=ReadGuardInput, gives=ReadGuardOutput)
    return unsaved(graph)


def _compile(guard: ReadGuard) -> CompiledStateGraph[Any, Any, Any, Any]:
    builder = StateGraph(ReadGuardState, input_schema=ReadGuardInput, output_schema=ReadGuardOutput)
    builder.add_node("recall", dual(partial(recall_memories, guard=guard), name="recall"))
    builder.add_node("admit", dual(partial(admit, guard=guard), asks=[guard.admission.graph]))
    builder.add_node("report", dual(partial(report, guard=guard)))
    builder.add_edge(START, "recall")
    builder.add_edge("recall", "admit")
    builder.add_edge("admit", "report")
    builder.add_edge("report", END)
    return builder.compile(name=NAME)


def _staged(
    model: "ModelLike | None", models: Mapping[str, ModelLike] | None
) -> dict[str, ModelLike]:
    """The models by stage, each resolved once; the local one where none is named."""
    staged: dict[str, ModelLike] = dict(models or {})
    staged.setdefault("default", LOCAL if model is None else model)
    return {stage: each if each == LOCAL else resolve_model(each) for stage, each in staged.items()}


def _check_deadline(deadline: float | None) -> None:
    if deadline is not None and not deadline > 0:
        msg = f"the deadline {deadline!r} leaves no time to read: pass seconds above 0"
        raise ConfigurationError(msg, code=ErrorCode.SPEC_INVALID)


def _finished(state: ReadGuardState, *, guard: ReadGuard, in_memory: bool) -> ReadReport:
    """The receipt with what recall, and the run around the method, have to say."""
    if state.read is None:
        msg = "the admission returned no report"
        raise GuardError(msg, code=ErrorCode.SPEC_INVALID)
    read = state.read
    # The method was given a part of it; what was asked for is the whole.
    spec = {**read.spec, "deadline": guard.admission.deadline}
    notes = (*_left_out(state.recalled), *read.notes, *((IN_MEMORY_NOTE,) if in_memory else ()))
    return read.model_copy(
        update={
            "spec": spec,
            "namespaces": state.places,
            "flags": tuple(dict.fromkeys((*state.flags, *read.flags))),
            "failures": (*read.failures, *state.failures),
            "notes": tuple(dict.fromkeys(notes)),
        }
    )


def _left_out(recalled: Recalled) -> tuple[str, ...]:
    said = (
        (recalled.beside, "safety constraints found beside the nearest"),
        (recalled.superseded, "left out because they are marked as superseded"),
        (recalled.outside, "left out because they were said outside the time window"),
        (recalled.below, "left out because they scored below the least score"),
        (recalled.textless, "left out because they hold no text"),
    )
    return (*recalled.notes, *(f"{what}: {count}" for count, what in said if count))


def _failure(error: MemguardError, step: str) -> Failure:
    return Failure(code=error.code, message=error.message, step=step)


def _emit(step: str, **details: JsonValue) -> None:
    """Send `{"memguard": "read", "step": ..., ...}` to whoever streams custom events."""
    get_stream_writer()({"memguard": "read", "step": step, **details})
