"""The input, the output and the state of a read-time method, as its graph takes and gives them."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from memguard.conversations.messages import AnyConversation
from memguard.schema.base import GraphInput, Text
from memguard.schema.memory import Conversation, Moment
from memguard.schema.read import (
    Adjudication,
    Decomposition,
    Evidence,
    Flag,
    Ledger,
    LocalFirst,
    ReadCase,
    ReadReport,
    RecalledMemory,
    UnitVerdict,
)
from memguard.schema.units import Unit


def _evidence(value: Any) -> Any:
    """Accept plain texts and LangChain documents too, and a single entry as a list of one."""
    if value is None:
        return ()
    # By attribute, so that a document of any library that imitates LangChain's is accepted.
    if isinstance(value, str | Mapping | Evidence) or hasattr(value, "page_content"):
        return (_one_evidence(value),)
    return tuple(_one_evidence(entry) for entry in value)


def _one_evidence(entry: Any) -> Any:
    if isinstance(entry, str):
        return {"text": entry}
    if hasattr(entry, "page_content"):
        metadata: Mapping[str, Any] = getattr(entry, "metadata", None) or {}
        return {"text": entry.page_content, "source": str(metadata.get("source", ""))}
    return entry


Evidences = Annotated[tuple[Evidence, ...], BeforeValidator(_evidence)]
"""Accepts evidence, plain texts, LangChain documents, the JSON of evidence, or one of these."""


class ReadInput(GraphInput):
    """A query, and the memories recalled for it."""

    query: Text = Field(
        description="What is asked now.", examples=["A restaurant for my birthday, please."]
    )
    memories: tuple[RecalledMemory, ...] = Field(
        default=(),
        description="The recalled memories, nearest first; plain texts are accepted.",
        examples=[["The user is vegetarian.", "The user lives in Porto."]],
    )
    dialogue: AnyConversation = Field(
        default_factory=Conversation,
        description="The turns before the query: a text, chat messages, or a conversation.",
    )
    evidence: Evidences = Field(
        default=(),
        description="Text that came with the query: tool output, search results, documents.",
        examples=[["The restaurant is closed on Mondays."]],
    )
    now: Moment = Field(
        default=None, description="When it is asked; the clock's time when left out."
    )
    run_id: str = Field(default="", description="The run it belongs to; a new id when empty.")


class ReadOutput(BaseModel):
    """What may enter the prompt, and why the rest may not."""

    memory_context: str = Field(description="The section for the prompt; empty for nothing.")
    admitted: tuple[UnitVerdict, ...] = Field(description="The units in it, in their order.")
    withheld: tuple[UnitVerdict, ...] = Field(description="The units left out, with the reason.")
    ledger: Ledger = Field(description="Every verdict; other renderings are made of it.")
    report: ReadReport = Field(description="The receipt of the read.")


class ReadState(ReadInput):
    """What passes from node to node."""

    case: ReadCase | None = None
    """Query, dialogue and evidence as the adjudicator sees them."""
    units: tuple[Unit, ...] = ()
    """What is judged."""
    repeats: dict[str, tuple[Unit, ...]] = Field(default={})
    """Units of memories with the same text as another, by the unit that represents them."""
    decomposition: Decomposition | None = None
    """The units that were split in this read; `None` when none had to be."""
    decomposed: int = 0
    """Memories decomposed in this read."""
    cached: int = 0
    """Memories whose units were cached."""
    local_first: LocalFirst | None = None
    """What was left out before the adjudicator was asked; `None` without that step."""
    seconds: float = 0.0
    """Seconds that the model calls have taken."""
    adjudication: Adjudication | None = None
    """The verdicts."""
    ledger: Ledger | None = None
    """The rulings."""
    flags: tuple[Flag, ...] = ()
    """What a reader of the report must not overlook."""
    notes: tuple[str, ...] = ()
    """What else a reader should know."""
    memory_context: str = ""
    """The section for the prompt."""
    admitted: tuple[UnitVerdict, ...] = ()
    withheld: tuple[UnitVerdict, ...] = ()
    report: ReadReport | None = None
