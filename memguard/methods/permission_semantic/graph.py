"""Permission-Semantic Admission: what may each unit of a memory be used for in this answer?

```text
START -> decompose -> [local_first ->] adjudicate -> compile -> render -> END
```

The first step is here: memories are split into typed units, once per text, and the words of the
units are checked against the memory. The other steps are those of `memguard.methods.adjudication`.
"""

import asyncio
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from memguard.errors import ConfigurationError
from memguard.llm.call import call_metadata
from memguard.llm.limits import current_meter, use_meter
from memguard.llm.models import LOCAL, Model, ModelLike, resolve_model
from memguard.local.adjudicator import LocalDecomposer
from memguard.local.pieces import REFUSED, pieces_key, problem_of, whole, with_span
from memguard.local.relevance.leave_out import OtherTopics
from memguard.methods.adjudication.asking import PartialParser, ask_until, gather_all
from memguard.methods.adjudication.marks import may_be_about_past
from memguard.methods.adjudication.model import create_adjudicator
from memguard.methods.adjudication.parts import split_parts
from memguard.methods.adjudication.recalled_units import (
    instructions_in,
    once_each,
    units_in_read,
    units_of,
    units_to_judge,
)
from memguard.methods.adjudication.rendering import estimate_tokens, quote_marked
from memguard.methods.adjudication.state import ReadState
from memguard.methods.adjudication.steps import Steps, compile_method, seconds_of
from memguard.prompts import Prompt, load_prompt, resolve_prompt
from memguard.protocols import Adjudicator, Decomposer, DecompositionCache
from memguard.schema.base import is_blank
from memguard.schema.decision import Inconclusive
from memguard.schema.read import Decomposition, LocalFirst, PermissionSemantic, ReadSpec
from memguard.schema.read_flags import Flag
from memguard.schema.receipt import Budget, Usage
from memguard.schema.results import AdmissionResults
from memguard.schema.units import Kind, Piece, Pieces
from memguard.uncheckpointed import UncheckpointedGraph

NAME = "permission_semantic"

MAX_CHARS = 4000
"""A longer memory stays one unit: splitting it would cost more than its admission is worth."""

_DECOMPOSE_SHARE = 0.5
"""Of the deadline: a memory that is not decomposed can still be judged, one that is not judged
cannot be admitted."""
_PART_TOKENS = 4000
_PART_MEMORIES = 40
_FULL_PART_TOKENS = 7000
"""Tokens of a part where smaller ones would be too many; its answer still fits in one reply."""
_NO_CALL = Inconclusive(reason="truncated", detail="more memories than the calls of a read take")
_NO_ENTRY = Inconclusive(reason="truncated", detail="the answer ended before this memory")
_KINDS: tuple[str, ...] = get_args(Kind)

# Read now, with the module: a graph may be built inside a running event loop, where reading a file
# would block.
load_prompt(NAME, "adjudicate")
load_prompt(NAME, "decompose")


async def decompose(
    state: ReadState, *, steps: Steps, decomposer: Decomposer, cache: DecompositionCache
) -> dict[str, Any]:
    """Split the memories that will be judged into units; cached ones cost nothing."""
    start = time.monotonic()
    paraphrases = steps.spec.merge_paraphrases
    memories = await once_each(state.memories, paraphrases=paraphrases)
    instructions = await instructions_in(state.memories, spec=steps.spec)
    # Others are denied unjudged, so their units are never needed.
    past = may_be_about_past(state.query, spec=steps.spec)
    units = [unit for memory in memories for unit in units_of(memory)]
    judged = {unit.memory_id for unit in units_to_judge(units, past=past)}
    texts = {
        memory.id: memory.text
        for memory in memories
        if memory.id in judged and not is_blank(state.query) and memory.text not in instructions
    }
    keys = {
        name: pieces_key(text, fingerprint=decomposer.fingerprint) for name, text in texts.items()
    }
    entries = zip(keys, await cache.aget(list(keys.values())), strict=True)
    cached = {memory_id: entry for memory_id, entry in entries if entry is not None}
    missing = {memory_id: text for memory_id, text in texts.items() if memory_id not in cached}
    decomposition: Decomposition | None = None
    new: dict[str, Pieces] = {}
    if missing:
        meter = steps.meter(spent=Usage(), seconds=0.0)
        with use_meter(meter), call_metadata(method=steps.method):
            decomposition = await decomposer.decompose(
                list(missing.values()), seconds=_DECOMPOSE_SHARE * seconds_of(steps.spec)
            )
        answers = zip(missing, decomposition.pieces, strict=True)
        new = {memory_id: entry for memory_id, entry in answers if isinstance(entry, Pieces)}
        # A failure is not cached, so that the next read tries again.
        await cache.aput({keys[memory_id]: entry for memory_id, entry in new.items()})
    pieces = {**cached, **new}
    notes = [
        *(decomposition.notes if decomposition else ()),
        *(entry.note for entry in pieces.values()),
    ]
    return {
        **await units_in_read(
            state.memories,
            instructions=instructions,
            pieces=pieces,
            paraphrases=paraphrases,
        ),
        "decomposition": decomposition,
        "decomposed": len(new),
        "cached": len(cached),
        "seconds": time.monotonic() - start,
        "flags": _flags(pieces.values(), is_complete=len(new) == len(missing)),
        "notes": tuple(dict.fromkeys(note for note in notes if note)),
    }


def _flags(pieces: Iterable[Pieces], *, is_complete: bool) -> tuple[Flag, ...]:
    # On every read, not only on the one that asked: a memory that is judged whole is judged by FC's
    # question, and whoever reads the receipt must know.
    is_refused = any(entry.note.startswith(REFUSED) for entry in pieces)
    return (
        *(() if is_complete else ("decomposition_failed",)),
        *(("decomposition_refused",) if is_refused else ()),
    )


async def leave_out(state: ReadState, *, steps: Steps, topics: OtherTopics) -> dict[str, Any]:
    """Leave units out that are clearly of another topic, and count what that saves."""
    start = time.monotonic()
    past = may_be_about_past(state.query, spec=steps.spec)
    units = units_to_judge(state.units, past=past)
    turns = state.dialogue.evidence[-steps.spec.dialogue_turns :]
    chosen: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    if units and not is_blank(state.query):
        try:
            # In a thread: to encode new memories takes a hundred milliseconds.
            chosen = await asyncio.to_thread(topics.find, state.query, units, dialogue=turns)
        except ConfigurationError as error:
            # Without the local model's weights the language model is asked about everything.
            notes = (f"nothing was left out before the model was asked: {error.message}",)
    tokens = sum(estimate_tokens(unit.text) for unit in units if unit.id in chosen)
    if chosen:
        share = f"{len(chosen)} of {len(units)} units, about {tokens} tokens"
        notes = (f"left out as clearly of another topic, before the model was asked: {share}",)
    return {
        "local_first": LocalFirst(unit_ids=chosen, units=len(chosen), tokens=tokens),
        "seconds": state.seconds + time.monotonic() - start,
        "notes": (*state.notes, *notes),
    }


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


class _PieceForm(BaseModel):
    text: str
    kind: Kind


class _MemoryForm(BaseModel):
    memory: str
    units: list[_PieceForm]


def _as_entries(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [dict(entry) for entry in value if isinstance(entry, Mapping)]


# Written by hand: pydantic would put the inner form into `$defs`, which not every server resolves.
def _schema() -> dict[str, Any]:
    piece = _PieceForm.model_json_schema()
    memory = _MemoryForm.model_json_schema()
    memory.pop("$defs", None)
    memory["properties"]["units"] = {"type": "array", "items": piece}
    return {"type": "array", "items": memory}


class DecomposeAnswer(BaseModel):
    """The units of some memories, before they are checked."""

    model_config = ConfigDict(extra="ignore")

    memories: Annotated[
        list[dict[str, Any]], BeforeValidator(_as_entries), WithJsonSchema(_schema())
    ]


@dataclass(frozen=True, kw_only=True)
class ModelDecomposer:
    """A decomposer that asks a model."""

    model: Model
    prompt: Prompt
    spec: ReadSpec = field(default_factory=ReadSpec)
    """Limits the calls of a read and the length of a prompt."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    @property
    def fingerprint(self) -> str:
        """Of the model, by name, and the prompt."""
        return f"{self.model.name}:{self.prompt.version}:{self.prompt.digest}"

    async def decompose(self, texts: Sequence[str], *, seconds: float) -> Decomposition:
        """Split each text; see `memguard.protocols.Decomposer`.

        A text whose units add words to it, or lose some, is asked about once more, with the reason.
        If that does not help, it stays one unit, with a note. The calls of one read are limited; a
        text beyond them is inconclusive, and the next read goes on with it.

        Raises:
            ModelConfigurationError: If the model cannot be used.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        numbered = list(enumerate(texts, start=1))
        # Numbered over all texts, so that the answers on the parts can be joined.
        short = [(number, text) for number, text in numbered if len(text) <= MAX_CHARS]
        with use_meter(current_meter().scope()) as meter:
            parts = self._parts(short, max_calls=self.spec.max_calls)
            entries = await self._ask_all(short, parts=parts, deadline=deadline)
            refused = {
                number: entry.note
                for number, entry in entries.items()
                if isinstance(entry, Pieces) and entry.note
            }
            again = [(number, text) for number, text in short if number in refused]
            parts = self._parts(again, max_calls=self.spec.max_calls - len(parts))
            second = await self._ask_all(again, parts=parts, deadline=deadline, refused=refused)
        # A second answer counts only where it can be used.
        entries |= {
            number: entry
            for number, entry in second.items()
            if isinstance(entry, Pieces) and not entry.note
        }
        notes = [
            f"not split ({entry.reason}): {entry.detail}"
            for entry in entries.values()
            if isinstance(entry, Inconclusive)
        ]
        return Decomposition(
            pieces=tuple(entries.get(number) or self._too_long(text) for number, text in numbered),
            usage=meter.usage,
            prompts=(self.prompt.stamp,) if short else (),
            notes=tuple(dict.fromkeys(notes)),
        )

    def _parts(
        self, numbered: Sequence[tuple[int, str]], *, max_calls: int
    ) -> tuple[tuple[tuple[int, str], ...], ...]:
        """The memories of each call, in at most that many calls."""
        # Twice, because the answer repeats the text.
        costs = [2 * estimate_tokens(text) for _, text in numbered]
        lines = [_line(number, text) for number, text in numbered]
        instructions = len(self.prompt.system) + len(self.prompt.user)
        parts: tuple[tuple[tuple[int, str], ...], ...] = ()
        for max_tokens in (_PART_TOKENS, _FULL_PART_TOKENS):
            parts = split_parts(
                numbered,
                costs=costs,
                max_tokens=max_tokens,
                max_items=_PART_MEMORIES,
                chars=[len(line) + 1 for line in lines],
                max_chars=self.spec.prompt_chars - instructions,
            )
            if len(parts) <= max_calls:
                break
        return parts[: max(0, max_calls)]

    async def _ask_all(
        self,
        numbered: Sequence[tuple[int, str]],
        *,
        parts: Sequence[Sequence[tuple[int, str]]],
        deadline: float,
        refused: Mapping[int, str] = MappingProxyType({}),
    ) -> dict[int, Pieces | Inconclusive]:
        """Split numbered texts; `refused` says by number why an earlier answer was refused."""
        entries: dict[int, Pieces | Inconclusive] = dict.fromkeys(
            (number for number, _ in numbered), _NO_CALL
        )
        for answer in await gather_all([self._ask(part, deadline, refused) for part in parts]):
            entries |= answer
        return entries

    async def _ask(
        self, part: Sequence[tuple[int, str]], deadline: float, refused: Mapping[int, str]
    ) -> dict[int, Pieces | Inconclusive]:
        parser = PartialParser(DecomposeAnswer, name="memories")
        lines = [_line(number, text, refusal=refused.get(number, "")) for number, text in part]
        result = await ask_until(
            self.model,
            self.prompt.render(memories="\n".join(lines)),
            DecomposeAnswer,
            deadline=deadline,
            name="memguard.decompose",
            repair=True,
            parse=parser,
        )
        value = result.answer.value
        rest = parser.before_end if isinstance(value, Inconclusive) else None
        if rest is not None:
            # What the answer has before it was truncated is complete; the next read asks for more.
            named = {number for number, _ in part if _entries_of(rest, number)}
            return {
                number: self._checked(number, text, rest) if number in named else _NO_ENTRY
                for number, text in part
            }
        return {number: self._checked(number, text, value) for number, text in part}

    def _checked(
        self, number: int, text: str, value: DecomposeAnswer | Inconclusive
    ) -> Pieces | Inconclusive:
        if isinstance(value, Inconclusive):
            return value
        entries = _entries_of(value, number)
        # Two entries for one memory contradict each other, so neither is used.
        pieces = _pieces_of(entries[0]) if len(entries) == 1 else ()
        if len(pieces) == 1:
            # Not split: the memory's own words are used, with the kind that the model gave them.
            pieces = (Piece(text=text, kind=pieces[0].kind),)
        problem = problem_of(pieces, source=text)
        # A unit that says something else than its memory would be shown as if it were remembered.
        if problem:
            note = f"{REFUSED}{problem}"
            return whole(text, fingerprint=self.fingerprint, note=note)
        spans = tuple(with_span(piece, source=text) for piece in pieces)
        return Pieces(pieces=spans, fingerprint=self.fingerprint)

    def _too_long(self, text: str) -> Pieces:
        note = f"{REFUSED}it has more than {MAX_CHARS} characters"
        return whole(text, fingerprint=self.fingerprint, note=note)


def _line(number: int, text: str, *, refusal: str = "") -> str:
    # The reason repeats a word of an answer, so it is quoted like a text.
    reason = f"\n(cut before: {quote_marked(refusal)})" if refusal else ""
    return f"[m{number}] {quote_marked(text)}{reason}"


def _entries_of(answer: DecomposeAnswer, number: int) -> list[dict[str, Any]]:
    return [entry for entry in answer.memories if _is_named(entry, number)]


def _is_named(entry: Mapping[str, Any], number: int) -> bool:
    name = str(entry.get("memory", entry.get("id", ""))).strip(" []\"'").casefold()
    return name in {f"m{number}", str(number)}


def _pieces_of(entry: Mapping[str, Any]) -> tuple[Piece, ...]:
    """The pieces of an answer; a kind outside the list counts as none."""
    pieces: list[Piece] = []
    for unit in _as_entries(entry.get("units")):
        kind = str(unit.get("kind", "")).strip().casefold()
        text = str(unit.get("text") or "").strip()
        pieces.append(
            Piece.model_validate({"text": text, "kind": kind if kind in _KINDS else None})
        )
    return tuple(pieces)


def create_decomposer(
    model: "ModelLike | None", *, prompt: Prompt, spec: ReadSpec | None = None
) -> Decomposer:
    """The decomposer that a model argument asks for; the spec limits its calls.

    Raises:
        ConfigurationError: If the model cannot be used.
    """
    if model == LOCAL:
        return LocalDecomposer()
    return ModelDecomposer(model=resolve_model(model), prompt=prompt, spec=spec or ReadSpec())


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
) -> UncheckpointedGraph[AdmissionResults]:
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
        decomposer=decomposer or create_decomposer(model, prompt=splitting, spec=spec),
        cache=cache if cache is not None else InMemoryPieces(),
    )
    second = partial(leave_out, steps=steps, topics=OtherTopics()) if spec.local_first else None
    return compile_method(steps, decompose=first, local_first=second)
