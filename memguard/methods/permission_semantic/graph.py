"""What goes into Permission-Semantic Admission, and what comes out."""

import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from memguard.llm.budget import use_meter
from memguard.llm.models import ModelLike
from memguard.local.pieces import pieces_key
from memguard.methods.adjudication.case import distinct
from memguard.methods.adjudication.factory import create_adjudicator, create_decomposer
from memguard.methods.adjudication.state import ReadInput, ReadOutput, ReadState
from memguard.methods.adjudication.steps import Steps, compile_method
from memguard.prompts import Prompt, load_prompt, resolve_prompt
from memguard.protocols import Adjudicator, Decomposer, DecompositionCache
from memguard.schema.base import is_blank
from memguard.schema.ledger import Decomposition
from memguard.schema.read import PermissionSemantic, RecalledMemory
from memguard.schema.units import Pieces
from memguard.schema.usage import Budget, Usage
from memguard.uncheckpointed import Graph


class PermissionInput(ReadInput):
    """A query with what was recalled for it."""


class PermissionOutput(ReadOutput):
    """What may enter the prompt, unit by unit."""


class PermissionState(ReadState):
    """What passes from node to node."""


NAME = "permission_semantic"

_DECOMPOSE_SHARE = 0.5
"""Of the deadline: a memory that is not decomposed can still be judged, one that is not judged
cannot be admitted."""

# Read now, with the module: a graph may be built inside a running event loop, where reading a file
# would block.
load_prompt(NAME, "adjudicate")
load_prompt(NAME, "decompose")


class InMemoryPieces:
    """The most recently used pieces; safe to share between threads and event loops.

    Args:
        max_memories: Memories whose pieces are cached.
    """

    def __init__(self, *, max_memories: int = 10_000) -> None:
        self._max_memories = max_memories
        self._lock = threading.Lock()
        self._pieces: OrderedDict[str, Pieces] = OrderedDict()

    async def aget(self, keys: Sequence[str]) -> Sequence[Pieces | None]:
        """The cached pieces, one entry per key."""
        # A thread lock, because sync and async reads share the cache; nothing is awaited inside.
        with self._lock:
            for key in keys:
                if key in self._pieces:
                    self._pieces.move_to_end(key)
            return [self._pieces.get(key) for key in keys]

    async def aput(self, entries: Mapping[str, Pieces]) -> None:
        """Cache pieces; those unused for longest are dropped first."""
        with self._lock:
            self._pieces.update(entries)
            while len(self._pieces) > self._max_memories:
                self._pieces.popitem(last=False)


@dataclass(frozen=True, kw_only=True)
class Split:
    """The pieces of memories."""

    cached: dict[str, Pieces]
    """Pieces from the cache, by memory id."""
    new: dict[str, Pieces]
    """Pieces that this read made; a memory that could not be split is missing."""
    decomposition: Decomposition | None = None
    """The decomposer's answer; `None` where everything was cached."""
    failed: bool = False
    """Whether a memory could not be split."""

    @property
    def pieces(self) -> dict[str, Pieces]:
        """All pieces, by memory id."""
        return {**self.cached, **self.new}


async def split(
    memories: Sequence[RecalledMemory],
    *,
    decomposer: Decomposer,
    cache: DecompositionCache,
    seconds: float,
) -> Split:
    """The pieces of every memory, from the cache or from the decomposer."""
    keys = {
        memory.id: pieces_key(memory.text, fingerprint=decomposer.fingerprint)
        for memory in memories
    }
    entries = zip(keys, await cache.aget(list(keys.values())), strict=True)
    cached = {memory_id: entry for memory_id, entry in entries if entry is not None}
    missing = {memory.id: memory.text for memory in memories if memory.id not in cached}
    if not missing:
        return Split(cached=cached, new={})
    decomposition = await decomposer.decompose(list(missing.values()), seconds=seconds)
    new = {
        memory_id: entry
        for memory_id, entry in zip(missing, decomposition.pieces, strict=True)
        if isinstance(entry, Pieces)
    }
    # A failure is not cached, so that the next read tries again.
    await cache.aput({keys[memory_id]: entry for memory_id, entry in new.items()})
    return Split(
        cached=cached, new=new, decomposition=decomposition, failed=len(new) < len(missing)
    )


async def decompose(
    state: PermissionState, *, steps: Steps, decomposer: Decomposer, cache: DecompositionCache
) -> dict[str, Any]:
    """Split the memories that will be judged into units; cached ones cost nothing."""
    start = time.monotonic()
    memories, _ = distinct(state.memories)
    blank = is_blank(state.query)
    with use_meter(steps.meter(spent=Usage(), seconds=0.0)):
        result = await split(
            # Others are denied unjudged, so their units are never needed.
            [memory for memory in memories if not (memory.superseded or blank)],
            decomposer=decomposer,
            cache=cache,
            seconds=_DECOMPOSE_SHARE * steps.spec.deadline,
        )
    notes = [
        *(result.decomposition.notes if result.decomposition else ()),
        *(entry.note for entry in result.pieces.values()),
    ]
    return {
        **steps.units(state.memories, pieces=result.pieces),
        "decomposition": result.decomposition,
        "decomposed": len(result.new),
        "cached": len(result.cached),
        "seconds": time.monotonic() - start,
        "flags": ("decomposition_failed",) if result.failed else (),
        "notes": tuple(dict.fromkeys(note for note in notes if note)),
    }


def create_permission_semantic_graph(
    model: "ModelLike | None" = None,
    *,
    spec: PermissionSemantic | None = None,
    adjudicator: Adjudicator | None = None,
    decomposer: Decomposer | None = None,
    cache: DecompositionCache | None = None,
    budget: Budget | None = None,
    prompt: Prompt | None = None,
    decompose_prompt: Prompt | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
) -> Graph:
    """PS as a graph: `{"query", "memories", "dialogue", "evidence"}` in, the section out.

    Args:
        model: Who judges and decomposes: `"provider:model"`, a `BaseChatModel`, a resolved model,
            or `"local"` for rules that need no language model. Not needed with an adjudicator and
            a decomposer of your own.
        spec: Settings; the default preset when left out.
        adjudicator: Your own in place of the model.
        decomposer: Your own in place of the model.
        cache: Where units are cached between reads; in the memory of the process when left out.
        budget: The most that one read may spend; no limit when left out.
        prompt: Your own adjudication prompt, with the slots of the one that ships.
        decompose_prompt: Your own decomposition prompt, with the slot `memories`.
        clock: Gives the time, of reports and of `now`.
        new_id: Gives ids of reports.

    Raises:
        ConfigurationError: If a model or a prompt cannot be used.
    """
    spec = spec or PermissionSemantic()
    asking = resolve_prompt(NAME, "adjudicate", override=prompt)
    splitting = resolve_prompt(NAME, "decompose", override=decompose_prompt)
    steps = Steps(
        method=NAME,
        scheme="units",
        spec=spec,
        adjudicator=adjudicator
        or create_adjudicator(model, prompt=asking, scheme="units", spec=spec),
        budget=budget or Budget(),
        clock=clock,
        new_id=new_id,
    )
    first = partial(
        decompose,
        steps=steps,
        decomposer=decomposer or create_decomposer(model, prompt=splitting),
        cache=cache if cache is not None else InMemoryPieces(),
    )
    return compile_method(
        steps,
        state=PermissionState,
        takes=PermissionInput,
        gives=PermissionOutput,
        decompose=first,
    )
