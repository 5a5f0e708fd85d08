"""Splitting memories into typed units, once per text, and checking the words of the units."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from memguard.llm.budget import current_meter, use_meter
from memguard.llm.models import Model
from memguard.local.pieces import problem_of, whole, with_span
from memguard.methods.adjudication.case import estimate_tokens, split_parts
from memguard.methods.adjudication.model import AskResult, Deadline, ask_until, gather_all
from memguard.methods.adjudication.rendering import quote_marked
from memguard.prompts import Prompt
from memguard.schema.decision import Inconclusive
from memguard.schema.ledger import Decomposition
from memguard.schema.units import Kind, Piece, Pieces

MAX_CHARS = 4000
"""A longer memory stays one unit: splitting it would cost more than its admission is worth."""

_PART_TOKENS = 4000
_PART_MEMORIES = 40
_KINDS: tuple[str, ...] = get_args(Kind)


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
    """A model with the prompt that decomposes."""

    model: Model
    prompt: Prompt

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

        A text whose units add words to it, or lose some, stays one unit, with a note.

        Raises:
            ModelConfigurationError: If the model cannot be used.
        """
        deadline = Deadline.after(seconds)
        numbered = list(enumerate(texts, start=1))
        short = [(number, text) for number, text in numbered if len(text) <= MAX_CHARS]
        # Twice, because the answer repeats the text.
        costs = [2 * estimate_tokens(text) for _, text in short]
        parts = split_parts(short, costs=costs, max_tokens=_PART_TOKENS, max_items=_PART_MEMORIES)
        with use_meter(current_meter().scope()) as meter:
            answers = await gather_all([self._ask(part, deadline=deadline) for part in parts])
        entries = {number: pieces for answer in answers for number, pieces in answer.items()}
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

    async def _ask(
        self, part: Sequence[tuple[int, str]], *, deadline: Deadline
    ) -> dict[int, Pieces | Inconclusive]:
        lines = "\n".join(f"[m{number}] {quote_marked(text)}" for number, text in part)
        result = await ask_until(
            self.model,
            self.prompt.render(memories=lines),
            DecomposeAnswer,
            deadline=deadline,
            name="memguard.decompose",
            repair=True,
        )
        return {number: self._checked(number, text, result) for number, text in part}

    def _checked(
        self, number: int, text: str, result: AskResult[DecomposeAnswer]
    ) -> Pieces | Inconclusive:
        value = result.answer.value
        if isinstance(value, Inconclusive):
            return value
        entries = [entry for entry in value.memories if _is_named(entry, number)]
        # Two entries for one memory contradict each other, so neither is used.
        pieces = _pieces_of(entries[0]) if len(entries) == 1 else ()
        if len(pieces) == 1:
            # Not split: the memory's own words are used, with the kind that the model gave them.
            pieces = (Piece(text=text, kind=pieces[0].kind),)
        problem = problem_of(pieces, source=text)
        if problem:
            note = f"not split, because {problem}"
            return whole(text, fingerprint=self.fingerprint, note=note)
        spans = tuple(with_span(piece, source=text) for piece in pieces)
        return Pieces(pieces=spans, fingerprint=self.fingerprint)

    def _too_long(self, text: str) -> Pieces:
        note = f"not split, because it has more than {MAX_CHARS} characters"
        return whole(text, fingerprint=self.fingerprint, note=note)


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
