"""Cutting memories into typed units, once per text: the model writes, the words are checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from memguard.adjudication.asking import Asked, Deadline, ask_until, together
from memguard.llm.metering import current_meter, use_meter
from memguard.llm.models import Model
from memguard.policy.parts import estimate_tokens, split_parts
from memguard.policy.pieces import problem_of, whole, with_span
from memguard.prompts import Prompt
from memguard.rendering.memories import quote_marked
from memguard.schema.ledger import Decomposition
from memguard.schema.units import Kind, Piece, Pieces
from memguard.schema.verdict import Inconclusive

MOST_CHARS = 4000
"""A longer memory is one unit as it is: cutting it would cost more than its admission is worth."""

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
    return [dict(each) for each in value if isinstance(each, Mapping)]


def _schema() -> dict[str, Any]:
    piece = _PieceForm.model_json_schema()
    memory = _MemoryForm.model_json_schema()
    memory.pop("$defs", None)
    memory["properties"]["units"] = {"type": "array", "items": piece}
    return {"type": "array", "items": memory}


class DecomposeAnswer(BaseModel):
    """The units of some memories, not yet checked."""

    model_config = ConfigDict(extra="ignore")

    memories: Annotated[
        list[dict[str, Any]], BeforeValidator(_as_entries), WithJsonSchema(_schema())
    ]


@dataclass(frozen=True, kw_only=True)
class ModelDecomposer:
    """A model with the prompt that cuts."""

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
        """Cut each text; see `memguard.protocols.Decomposer`.

        A text whose units are not its own words, or lose some, is one unit with a note.

        Raises:
            ModelConfigurationError: If the model cannot be used.
        """
        deadline = Deadline.after(seconds)
        numbered = list(enumerate(texts, start=1))
        short = [(number, text) for number, text in numbered if len(text) <= MOST_CHARS]
        costs = [2 * estimate_tokens(text) for _, text in short]
        parts = split_parts(short, costs=costs, max_tokens=_PART_TOKENS, max_items=_PART_MEMORIES)
        with use_meter(current_meter().scope()) as meter:
            answers = await together([self._ask(part, deadline=deadline) for part in parts])
        found = {number: pieces for answer in answers for number, pieces in answer.items()}
        notes = [
            f"not cut ({each.reason}): {each.detail}"
            for each in found.values()
            if isinstance(each, Inconclusive)
        ]
        return Decomposition(
            pieces=tuple(found.get(number) or self._too_long(text) for number, text in numbered),
            usage=meter.usage,
            prompts=(self.prompt.stamp,) if short else (),
            notes=tuple(dict.fromkeys(notes)),
        )

    async def _ask(
        self, part: Sequence[tuple[int, str]], *, deadline: Deadline
    ) -> dict[int, Pieces | Inconclusive]:
        lines = "\n".join(f"[m{number}] {quote_marked(text)}" for number, text in part)
        asked = await ask_until(
            self.model,
            self.prompt.render(memories=lines),
            DecomposeAnswer,
            deadline=deadline,
            name="memguard.decompose",
            repair=True,
        )
        return {number: self._checked(number, text, asked) for number, text in part}

    def _checked(
        self, number: int, text: str, asked: Asked[DecomposeAnswer]
    ) -> Pieces | Inconclusive:
        value = asked.answer.value
        if isinstance(value, Inconclusive):
            return value
        entries = [each for each in value.memories if _is_named(each, number)]
        pieces = _pieces_of(entries[0]) if len(entries) == 1 else ()
        if len(pieces) == 1:
            # Not cut at all: the memory's own words stand, and what the model called them.
            pieces = (Piece(text=text, kind=pieces[0].kind),)
        problem = problem_of(pieces, source=text)
        if problem:
            note = f"not cut, because {problem}"
            return whole(text, fingerprint=self.fingerprint, note=note)
        spans = tuple(with_span(piece, source=text) for piece in pieces)
        return Pieces(pieces=spans, fingerprint=self.fingerprint)

    def _too_long(self, text: str) -> Pieces:
        note = f"not cut, because it has more than {MOST_CHARS} characters"
        return whole(text, fingerprint=self.fingerprint, note=note)


def _is_named(entry: Mapping[str, Any], number: int) -> bool:
    name = str(entry.get("memory", entry.get("id", ""))).strip(" []\"'").casefold()
    return name in {f"m{number}", str(number)}


def _pieces_of(entry: Mapping[str, Any]) -> tuple[Piece, ...]:
    """The pieces as they were written; a kind that is not on the list is no kind."""
    written = _as_entries(entry.get("units"))
    pieces: list[Piece] = []
    for each in written:
        kind = str(each.get("kind", "")).strip().casefold()
        text = str(each.get("text") or "").strip()
        pieces.append(
            Piece.model_validate({"text": text, "kind": kind if kind in _KINDS else None})
        )
    return tuple(pieces)
