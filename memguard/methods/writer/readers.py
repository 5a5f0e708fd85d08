"""Who reads: a language model, or rules that pick statements word for word."""

from dataclasses import dataclass
from typing import Protocol

from memguard.llm.ask import ask
from memguard.llm.call import CallSettings
from memguard.llm.metering import current_meter
from memguard.llm.models import Model, ModelLike, resolve_model
from memguard.llm.stages import LOCAL
from memguard.methods.writer.attribute import attribute_facts
from memguard.methods.writer.state import Extraction, Pass, PassResult, Unread
from memguard.policy.statements import find_statements
from memguard.prompts import Prompt, load_prompt, prompt_or_own
from memguard.rendering.quote import quote_turns
from memguard.schema.memory import CandidateMemory
from memguard.schema.verdict import Inconclusive

MAX_TOKENS = 4096
"""Room for about a hundred facts, or for a reasoning model's thoughts and a few."""

WEAKER = (
    "written by the local writer: statements of the user word for word, picked by English rules; "
    "a language model would word them to stand alone"
)


# Read now, with the module: a guard may be built inside a running event loop.
load_prompt("writer", "extract")


class Reader(Protocol):
    """Draws candidates from one pass."""

    @property
    def fingerprint(self) -> str:
        """Of all that can change what it draws."""
        ...

    async def read(self, chunk: Pass, *, conversation_id: str) -> PassResult:
        """The candidates of one pass, or the turns that gave no usable answer."""
        ...


@dataclass(frozen=True, kw_only=True)
class ModelReader:
    """A language model with a prompt."""

    model: Model
    prompt: Prompt

    @property
    def fingerprint(self) -> str:
        """Of the model, by name, and the prompt."""
        return f"{self.model.name}:{self.prompt.digest}"

    async def read(self, chunk: Pass, *, conversation_id: str) -> PassResult:
        """Ask the model for the facts of one pass."""
        messages = self.prompt.render(
            earlier=quote_turns(chunk.earlier),
            turns=quote_turns(chunk.new, first=len(chunk.earlier) + 1),
        )
        settings = CallSettings(temperature=0.0, max_tokens=MAX_TOKENS)
        answer = await ask(
            self.model, messages, Extraction, settings=settings, meter=current_meter()
        )
        if isinstance(answer.value, Inconclusive):
            turn_ids = tuple(dict.fromkeys(turn.id for turn in chunk.new))
            unread = Unread(
                turn_ids=turn_ids, reason=answer.value.reason, detail=answer.value.detail
            )
            return PassResult(unread=(unread,), usage=answer.usage)
        candidates, notes = attribute_facts(
            answer.value.facts, chunk=chunk, conversation_id=conversation_id
        )
        return PassResult(candidates=candidates, usage=answer.usage, notes=(*answer.notes, *notes))


@dataclass(frozen=True, kw_only=True)
class LocalReader:
    """Rules: what a user states as so, under the user's name, not reworded."""

    @property
    def fingerprint(self) -> str:
        """Of the rules."""
        return "local:statements:1"

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


def make_reader(model: ModelLike, *, prompt: Prompt | None = None) -> Reader:
    """The reader that a model argument asks for.

    Raises:
        ConfigurationError: If the model or the prompt cannot be used.
    """
    if model == LOCAL:
        return LocalReader()
    return ModelReader(
        model=resolve_model(model), prompt=prompt_or_own("writer", "extract", override=prompt)
    )
