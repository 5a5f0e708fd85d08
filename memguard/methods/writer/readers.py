"""The readers of the writer: a language model with a prompt, or rules for English.

A model returns facts with the numbers of the turns that they are based on. Who said something, and
when, is taken from those turns, never from the model's answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memguard.llm.ask import ask
from memguard.llm.budget import current_meter
from memguard.llm.call import CallSettings
from memguard.llm.models import LOCAL, Model, ModelLike, resolve_model
from memguard.local.statements import find_statements
from memguard.methods.writer.rules import Pass
from memguard.methods.writer.state import ExtractedFact, Extraction, PassResult, Unread
from memguard.prompts import Prompt, load_prompt, resolve_prompt
from memguard.quoting import named_turns, quote_turns
from memguard.schema.base import is_blank
from memguard.schema.decision import Inconclusive
from memguard.schema.memory import CandidateMemory, speaker_roles, turn_time

MAX_TOKENS = 4096
"""Enough for about a hundred facts, or for a reasoning model's thoughts and a few."""

WEAKER = (
    "written by the local writer: statements of the user word for word, picked by English rules; "
    "a language model would word them to stand alone"
)

# Read now, with the module: a guard may be built inside a running event loop.
load_prompt("writer", "extract")


class Reader(Protocol):
    """Extracts candidates from one pass."""

    @property
    def fingerprint(self) -> str:
        """Changes with everything that can change its candidates."""
        ...

    async def read(self, chunk: Pass, *, conversation_id: str) -> PassResult:
        """The candidates of one pass, or its turns as unread without a usable answer."""
        ...


def build_reader(model: ModelLike, *, prompt: Prompt | None = None) -> Reader:
    """The reader for a model argument.

    Raises:
        ConfigurationError: If the model or the prompt cannot be used.
    """
    if model == LOCAL:
        return LocalReader()
    return ModelReader(
        model=resolve_model(model), prompt=resolve_prompt("writer", "extract", override=prompt)
    )


@dataclass(frozen=True, kw_only=True)
class ModelReader:
    """A language model with a prompt."""

    model: Model
    prompt: Prompt

    @property
    def fingerprint(self) -> str:
        """Of the model's name and the prompt."""
        return f"{self.model.name}:{self.prompt.digest}"

    async def read(self, chunk: Pass, *, conversation_id: str) -> PassResult:
        """Ask the model for the facts of one pass."""
        messages = self.prompt.render(
            earlier=quote_turns(chunk.earlier),
            turns=quote_turns(chunk.new, first=len(chunk.earlier) + 1),
        )
        # Temperature 0: a repeated read should propose the same candidates.
        settings = CallSettings(temperature=0.0, max_tokens=MAX_TOKENS)
        answer = await ask(
            self.model, messages, Extraction, settings=settings, meter=current_meter()
        )
        if isinstance(answer.value, Inconclusive):
            # No partial result: the whole pass is read again, or facts would be lost silently.
            turn_ids = tuple(dict.fromkeys(turn.id for turn in chunk.new))
            unread = Unread(
                turn_ids=turn_ids, reason=answer.value.reason, detail=answer.value.detail
            )
            return PassResult(unread=(unread,), usage=answer.usage)
        candidates, notes = _attribute_facts(
            answer.value.facts, chunk=chunk, conversation_id=conversation_id
        )
        return PassResult(candidates=candidates, usage=answer.usage, notes=(*answer.notes, *notes))


def _attribute_facts(
    facts: Sequence[ExtractedFact], *, chunk: Pass, conversation_id: str
) -> tuple[tuple[CandidateMemory, ...], tuple[str, ...]]:
    """The candidates of one pass, in order, and notes on facts that were left out.

    Left out are blank facts, and those that rest on earlier turns alone, which an earlier pass has
    read.
    """
    candidates: list[CandidateMemory] = []
    new_ids = {turn.id for turn in chunk.new}
    blank = stale = 0
    for fact in facts:
        candidate = _candidate(fact, chunk=chunk, conversation_id=conversation_id)
        if is_blank(candidate.text):
            blank += 1
        # A fact without valid turns stays: the gates decide, on the source of the whole pass.
        elif candidate.turn_ids and new_ids.isdisjoint(candidate.turn_ids):
            stale += 1
        else:
            candidates.append(candidate)
    notes = (
        f"{blank} blank facts left out" if blank else "",
        f"{stale} facts left out that rest on earlier turns alone" if stale else "",
    )
    return tuple(candidates), tuple(note for note in notes if note)


def _candidate(fact: ExtractedFact, *, chunk: Pass, conversation_id: str) -> CandidateMemory:
    turns = (*chunk.earlier, *chunk.new)
    # The prompt shows the numbers in brackets, and some models copy these.
    turn_ids = named_turns([str(number).strip("[] ") for number in fact.turns], turns)
    sources = tuple(turn for turn in turns if turn.id in turn_ids)
    return CandidateMemory(
        text=fact.text.strip(),
        turn_ids=turn_ids,
        subject=fact.about,
        said_by=speaker_roles(sources),
        said_at=turn_time(sources),
        conversation_id=conversation_id,
    )


@dataclass(frozen=True, kw_only=True)
class LocalReader:
    """Rules for English: statements of users, word for word, after the user's name."""

    # The number changes with the rules, so that conversations are read again under new ones.
    fingerprint: str = "local:statements:1"

    async def read(self, chunk: Pass, *, conversation_id: str) -> PassResult:
        """The statements of one pass."""
        candidates = tuple(
            CandidateMemory(
                text=f"{turn.speaker or 'The user'}: {statement}",
                turn_ids=(turn.id,),
                subject=turn.speaker or "The user",
                said_by="user",
                said_at=turn.at,
                conversation_id=conversation_id,
            )
            for turn in chunk.new
            if turn.role == "user"
            for statement in find_statements(turn.content)
        )
        return PassResult(candidates=candidates, notes=(WEAKER,))
