"""The readers of the writer: a language model with a prompt, or rules.

A model returns facts with the numbers of the turns that they are based on. Who said something, and
when, is taken from those turns, never from the model's answer. A model's answer, the results of a
pass, and the input, output and state of the writer come first.
"""

import asyncio
import json
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol, TypedDict

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from memguard.conversations.messages import AnyConversation
from memguard.llm.ask import ask
from memguard.llm.call import CallSettings
from memguard.llm.limits import current_meter
from memguard.llm.models import LOCAL, Model, ModelLike, resolve_model
from memguard.llm.parsing import parse_json
from memguard.llm.texts import without_reasoning
from memguard.local.statements import read_statements
from memguard.methods.authorship import roles_behind, speaker_behind
from memguard.methods.writer.config import Writer
from memguard.methods.writer.rules import Pass
from memguard.prompts import Prompt, load_prompt, resolve_prompt
from memguard.quoting import named_turns, quote_turns
from memguard.schema.base import Frozen, GraphInput, is_blank
from memguard.schema.decision import Inconclusive, InconclusiveReason
from memguard.schema.memory import (
    CandidateMemory,
    SourceRole,
    speaker_roles,
    turn_time,
)
from memguard.schema.receipt import Usage


class ExtractedFact(BaseModel):
    """One fact as the model wrote it."""

    # Models add fields of their own; an additional one is no reason to lose the facts.
    model_config = ConfigDict(extra="ignore")

    text: str
    about: str = ""
    # The prompt asks for numbers, but some models write them as strings.
    turns: list[int | str] = []


class Extraction(BaseModel):
    """The model's answer to one pass."""

    model_config = ConfigDict(extra="ignore")

    facts: list[ExtractedFact]


# Checkpoints of paused runs contain the following types and fields by name, so their names must not
# change.
class Unread(Frozen):
    """Turns without a usable answer; they stay unread, and a later run reads them again."""

    turn_ids: tuple[str, ...]
    """Ids of the turns."""
    reason: InconclusiveReason
    """Why the answer could not be used."""
    detail: str = ""
    """The answer or the error, shortened."""


class PassResult(Frozen):
    """The result of one pass."""

    candidates: tuple[CandidateMemory, ...] = ()
    """Candidates, in order."""
    unread: tuple[Unread, ...] = ()
    """Turns without a usable answer."""
    usage: Usage = Usage()
    """Model calls."""
    notes: tuple[str, ...] = ()
    """Facts that were left out, and deviations from the settings, each with the reason."""


class WriterInput(GraphInput):
    """A conversation to extract candidates from."""

    conversation: AnyConversation = Field(
        description="Chat messages, a text, or a conversation.",
        examples=[[{"role": "user", "content": "I moved to Porto in May."}]],
    )
    new_from: int = Field(
        default=0, ge=0, description="Index of the first new turn; those before are context."
    )
    passes: tuple[Pass, ...] | None = Field(
        default=None,
        description="Passes that were planned before; planned here by default.",
    )


class WriterOutput(BaseModel):
    """The candidates, and what could not be read."""

    candidates: tuple[CandidateMemory, ...] = ()
    unread: tuple[Unread, ...] = ()
    usage: Usage = Usage()
    notes: tuple[str, ...] = ()


class WriterResult(TypedDict):
    """The output, for type checkers."""

    candidates: tuple[CandidateMemory, ...]
    unread: tuple[Unread, ...]
    usage: Usage
    notes: tuple[str, ...]


class WriterState(WriterInput, WriterOutput):
    """The state of a run."""

    # Branches run concurrently, so each adds its result through the reducer.
    written: Annotated[list[PassResult], operator.add] = []
    """One entry per pass, in the order of the conversation."""


class WriterPassState(BaseModel):
    """The input of one branch of `read`."""

    chunk: Pass
    conversation_id: str = ""


_FACT_LIST = TypeAdapter(list[str])
_DECODER = json.JSONDecoder()

MAX_TOKENS = 4096
"""Enough for about a hundred facts, or for a reasoning model's thoughts and a few."""

WEAKER = (
    "written by the local writer: statements of the user word for word, picked by rules; what does "
    "not stand alone is in quarantine, where a language model would word it to stand alone"
)

_PROMPTS = {"memguard": "extract", "paper": "paper_extract"}
"""The prompt by the setting `prompts`."""

# Read now, with the module: a guard may be built inside a running event loop.
for _name in _PROMPTS.values():
    load_prompt("writer", _name)


class Reader(Protocol):
    """Extracts candidates from one pass."""

    @property
    def fingerprint(self) -> str:
        """Changes with everything that can change its candidates."""
        ...

    async def read(self, chunk: Pass, *, conversation_id: str) -> PassResult:
        """The candidates of one pass, or its turns as unread without a usable answer."""
        ...


def build_reader(model: ModelLike, *, spec: Writer, prompt: Prompt | None = None) -> Reader:
    """The reader for a model argument and a spec.

    Raises:
        ConfigurationError: If the model or the prompt cannot be used.
    """
    if model == LOCAL:
        return LocalReader()
    shipped = _PROMPTS["memguard" if prompt is not None else spec.prompts]
    return ModelReader(
        model=resolve_model(model),
        prompt=resolve_prompt("writer", shipped, override=prompt),
        sources=spec.sources,
    )


@dataclass(frozen=True, kw_only=True)
class ModelReader:
    """A language model with a prompt."""

    model: Model
    prompt: Prompt
    sources: tuple[SourceRole, ...] = ("user",)
    """Whose words are sources of facts; of pasted text, the prompt says whether it is one."""

    @property
    def fingerprint(self) -> str:
        """Of the model's name and the prompt."""
        return f"{self.model.name}:{self.prompt.digest}"

    async def read(self, chunk: Pass, *, conversation_id: str) -> PassResult:
        """Ask the model for the facts of one pass."""
        shown = {
            "earlier": quote_turns(chunk.earlier, sources=self.sources),
            "turns": quote_turns(chunk.new, first=len(chunk.earlier) + 1, sources=self.sources),
        }
        # The paper's prompt has no earlier turns, and asks for a list of sentences.
        cites_turns = "earlier" in self.prompt.slots
        messages = self.prompt.render(**{slot: shown[slot] for slot in self.prompt.slots})
        # Temperature 0: a repeated read should propose the same candidates.
        settings = CallSettings(temperature=0.0, max_tokens=MAX_TOKENS)
        answer = await ask(
            self.model,
            messages,
            Extraction,
            settings=settings,
            meter=current_meter(),
            parse=None if cites_turns else parse_facts,
            constrain=cites_turns,
            name="writer.extract",
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


def parse_facts(text: str) -> Extraction | Inconclusive:
    """Read a JSON array of sentences, as the paper's prompt asks for; or the object of ours."""
    answer = without_reasoning(text)
    start = answer.find("[")
    try:
        texts = _FACT_LIST.validate_python(_DECODER.raw_decode(answer[max(0, start) :])[0])
    except (ValueError, RecursionError):
        return parse_json(text, Extraction)
    return Extraction(facts=[ExtractedFact(text=fact) for fact in texts])


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
    candidate = CandidateMemory(
        text=fact.text.strip(),
        turn_ids=turn_ids,
        subject=fact.about,
        said_at=turn_time(sources),
        conversation_id=conversation_id,
    )
    # By its words: a model may cite the user's line for what a pasted mail says.
    return candidate.model_copy(
        update={
            "said_by": roles_behind(candidate, sources),
            "speaker": speaker_behind(candidate, sources),
        }
    )


@dataclass(frozen=True, kw_only=True)
class LocalReader:
    """Rules for five languages: statements of users, word for word, after the user's name.

    Those of tools and documents too, where these are permitted sources. A doubtful statement is a
    candidate as well; the local judge quarantines it with its doubt as the reason.
    """

    # The number changes with the rules, so that conversations are read again under new ones.
    fingerprint: str = "local:statements:2"

    async def read(self, chunk: Pass, *, conversation_id: str) -> PassResult:
        """The statements of one pass."""
        # In a thread, because a pass may be a book.
        statements = await asyncio.to_thread(read_statements, chunk.turns)
        candidates: list[CandidateMemory] = []
        for statement in statements:
            # Earlier turns explain the new ones; their own statements were read before.
            if statement.position < len(chunk.earlier):
                continue
            turn = chunk.turns[statement.position]
            speaker = turn.speaker or f"The {turn.role}"
            candidate = CandidateMemory(
                text=f"{speaker}: {statement.text}",
                turn_ids=(turn.id,),
                subject=speaker,
                said_by=speaker_roles((turn,)),
                said_at=turn.at,
                speaker=turn.speaker,
                conversation_id=conversation_id,
            )
            candidates.append(candidate)
        return PassResult(candidates=tuple(candidates), notes=(WEAKER,))
