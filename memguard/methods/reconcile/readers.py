"""The readers of relations: a language model with a prompt, or rules.

Both are asked once about all near memories of a candidate, and not at all where nothing is near.
"""

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, cast, get_args

from pydantic import BaseModel, ConfigDict, JsonValue

from memguard.llm.ask import ask
from memguard.llm.call import CallSettings, call_metadata
from memguard.llm.limits import current_meter
from memguard.llm.models import LOCAL, Model, ModelLike, resolve_model
from memguard.local.corrections import read_relations
from memguard.local.event_times import event_time
from memguard.methods.reconcile.rules import METHOD
from memguard.prompts import Prompt, load_prompt, resolve_prompt
from memguard.quoting import quote, quote_time
from memguard.schema.base import Frozen
from memguard.schema.decision import Inconclusive
from memguard.schema.memory import CandidateMemory, Moment, Provenance, same_text_form
from memguard.schema.receipt import PromptStamp, Usage
from memguard.schema.relations import (
    Assertion,
    Neighbour,
    Relation,
    RelationReading,
    RelationVerdict,
)

MAX_TOKENS = 2048
"""Enough for a reasoning model's thoughts; an entry takes about 30 tokens."""

# Read with the module: a guard may be built inside a running event loop.
load_prompt(METHOD, "relate")


class RelationAnswer(Frozen):
    """A reader's answer, and what it cost."""

    reading: RelationReading = RelationReading()
    """The relations."""
    usage: Usage = Usage()
    """Model calls."""
    prompt: PromptStamp | None = None
    """The prompt; the rules have none."""
    model: str = ""
    """Name of the reader; empty if none was asked."""
    notes: tuple[str, ...] = ()
    """Notes for the receipt."""


class RelationReader(Protocol):
    """Gives the relations of a candidate to near memories."""

    @property
    def fingerprint(self) -> str:
        """Changes with everything that can change its verdicts."""
        ...

    async def read(
        self,
        candidate: CandidateMemory,
        neighbours: Sequence[Neighbour],
        *,
        now: datetime,
        later: Collection[str] = (),
    ) -> RelationAnswer:
        """The relation of the candidate to each neighbour; `later` has keys of those said later."""
        ...


def build_relation_reader(model: ModelLike, *, prompt: Prompt | None = None) -> RelationReader:
    """The reader for a model argument.

    Raises:
        ConfigurationError: If the model or the prompt cannot be used.
    """
    if model == LOCAL:
        return LocalRelationReader()
    resolved = resolve_prompt(METHOD, "relate", override=prompt)
    return ModelRelationReader(model=resolve_model(model), prompt=resolved)


async def read_all(
    reader: RelationReader,
    candidate: CandidateMemory,
    neighbours: Sequence[Neighbour],
    *,
    now: datetime,
    later: Collection[str] = (),
) -> RelationAnswer:
    """The relations to all neighbours, asking the reader only where it is needed.

    A neighbour with the same text is a duplicate, and nobody is asked about it.
    """
    form = same_text_form(candidate.text)
    repeats = tuple(
        RelationVerdict(
            key=neighbour.key, relation="duplicate", certain=True, reason="the same words"
        )
        for neighbour in neighbours
        if same_text_form(neighbour.text) == form
    )
    repeated = {verdict.key for verdict in repeats}
    others = [neighbour for neighbour in neighbours if neighbour.key not in repeated]
    if others:
        answer = await reader.read(candidate, others, now=now, later=later)
    else:
        # Still of use when a later candidate is compared with this one.
        at = await _event_time(candidate)
        answer = RelationAnswer(reading=RelationReading(event_at=at))
    reading = answer.reading
    verdicts = (*repeats, *reading.verdicts)
    return answer.model_copy(update={"reading": reading.model_copy(update={"verdicts": verdicts})})


async def _event_time(candidate: CandidateMemory) -> datetime | None:
    # In a thread, because the words of time are read from a file at their first use.
    return await asyncio.to_thread(event_time, candidate.text, said_at=candidate.said_at)


# -- a language model -------------------------------------------------------------------------


class RelationForm(BaseModel):
    """One entry of a model's answer."""

    model_config = ConfigDict(extra="ignore")

    memory: str
    reason: str = ""
    relation: str
    certain: bool = False


class RelationsForm(BaseModel):
    """A model's answer."""

    model_config = ConfigDict(extra="ignore")

    relations: list[RelationForm]
    assertion: str = "plain"
    event_at: str | None = None


@dataclass(frozen=True, kw_only=True)
class ModelRelationReader:
    """A language model with a prompt; one call for all neighbours of a candidate."""

    model: Model
    prompt: Prompt

    @property
    def fingerprint(self) -> str:
        """Of the model's name and the prompt."""
        return f"{self.model.name}:{self.prompt.digest}"

    async def read(
        self,
        candidate: CandidateMemory,
        neighbours: Sequence[Neighbour],
        *,
        now: datetime,
        later: Collection[str] = (),
    ) -> RelationAnswer:
        """Ask the model for all relations; it sees the times, so `later` is not needed.

        An answer that cannot be used makes every relation inconclusive; it is not an error.

        Raises:
            ModelConfigurationError: If no request to the model can succeed.
            BudgetExhaustedError: If the run has no call left.
        """
        del later
        names = {f"m{number}": n for number, n in enumerate(neighbours, start=1)}
        messages = self.prompt.render(
            now=quote_time(now),
            candidate=_candidate_line(candidate),
            memories="\n".join(_memory_line(name, n) for name, n in names.items()),
        )
        with call_metadata(method=METHOD):
            answer = await ask(
                self.model,
                messages,
                RelationsForm,
                settings=CallSettings(temperature=0.0, max_tokens=MAX_TOKENS),
                meter=current_meter(),
                name="reconcile.relate",
            )
        if isinstance(answer.value, Inconclusive):
            verdicts = tuple(RelationVerdict(key=n.key, relation=answer.value) for n in neighbours)
            reading = RelationReading(verdicts=verdicts, event_at=await _event_time(candidate))
        else:
            reading = _reading(answer.value, names, said_at=candidate.said_at or now)
        return RelationAnswer(
            reading=reading,
            usage=answer.usage,
            prompt=self.prompt.stamp,
            model=self.model.name,
            notes=answer.notes,
        )


def _candidate_line(candidate: CandidateMemory) -> str:
    origin = _origin(
        candidate.said_at, candidate.said_by, candidate.speaker, about=candidate.subject
    )
    return f"{origin}: {quote(candidate.text)}"


def _memory_line(name: str, neighbour: Neighbour) -> str:
    origin = neighbour.provenance
    said_by, speaker = (origin.said_by, origin.speaker) if origin else ("unknown", "")
    about = origin.subject if origin else ""
    line = _origin(neighbour.said_at, said_by, speaker, about=about)
    return f"[{name}] {line}: {quote(neighbour.text)}"


def _origin(at: Moment, said_by: str, speaker: str, *, about: str) -> str:
    when = f"said {quote_time(at)} by" if at is not None else "said by"
    who = f"{said_by} {quote(speaker)}" if speaker else said_by
    return f"{when} {who}{f', about {quote(about)}' if about else ''}"


def _reading(
    form: RelationsForm, names: Mapping[str, Neighbour], *, said_at: datetime
) -> RelationReading:
    """The answer, with what is missing or not on offer as inconclusive."""
    entries = {entry.memory.strip(" []").casefold(): entry for entry in form.relations}
    verdicts = tuple(_verdict(neighbour, entries.get(name)) for name, neighbour in names.items())
    is_known = form.assertion in get_args(Assertion)
    event_at, note = _event_at(form.event_at, said_at=said_at)
    notes = [] if is_known else [f"the assertion {form.assertion[:40]!r} is not one of the offered"]
    return RelationReading(
        verdicts=verdicts,
        # In doubt it changes nothing.
        assertion=cast("Assertion", form.assertion) if is_known else "doubtful",
        event_at=event_at,
        notes=(*notes, *((note,) if note else ())),
    )


def _verdict(neighbour: Neighbour, entry: RelationForm | None) -> RelationVerdict:
    if entry is None:
        missing = Inconclusive(reason="parse_failure", detail="no entry for this memory")
        return RelationVerdict(key=neighbour.key, relation=missing)
    relation = entry.relation.strip().casefold()
    if relation not in get_args(Relation):
        unknown = Inconclusive(reason="off_menu", detail=entry.relation[:80])
        return RelationVerdict(key=neighbour.key, relation=unknown, reason=entry.reason[:200])
    return RelationVerdict(
        key=neighbour.key,
        relation=cast("Relation", relation),
        certain=entry.certain,
        reason=entry.reason[:200],
    )


_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")


def _event_at(text: str | None, *, said_at: datetime) -> tuple[datetime | None, str]:
    """The date of an event, and a note if it cannot be read."""
    if text is None or text.strip().casefold() in {"", "null", "none", "unknown"}:
        return None, ""
    match = _DATE.match(text.strip())
    try:
        year, month, day = (int(part or 1) for part in match.groups()) if match else (0, 0, 0)
        event_at = datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None, f"the event date {text[:40]!r} is not a date"
    # Models repeat the day of the statement, which says nothing about the event.
    is_same_day = event_at.date() == said_at.date()
    return (None if is_same_day else event_at), ""


# -- rules ------------------------------------------------------------------------------------

LOCAL_NAME = "local"


@dataclass(frozen=True, kw_only=True)
class LocalRelationReader:
    """Rules for five languages; they are certain only on a clear sign."""

    # The number changes with the rules, so that candidates are decided again under new ones.
    fingerprint: str = "local:corrections:1"

    async def read(
        self,
        candidate: CandidateMemory,
        neighbours: Sequence[Neighbour],
        *,
        now: datetime,
        later: Collection[str] = (),
    ) -> RelationAnswer:
        """The relations that the rules see."""
        reading = await asyncio.to_thread(
            _read_both_ways, candidate, neighbours, now=now, later=later
        )
        return RelationAnswer(reading=reading, model=LOCAL_NAME)


def _read_both_ways(
    candidate: CandidateMemory,
    neighbours: Sequence[Neighbour],
    *,
    now: datetime,
    later: Collection[str],
) -> RelationReading:
    """The rules see a change in the later of two texts, which may be the stored one."""
    reading = read_relations(candidate, neighbours, now=now)
    verdicts = {verdict.key: verdict for verdict in reading.verdicts}
    for neighbour in neighbours:
        verdict = verdicts.get(neighbour.key)
        if neighbour.key in later and verdict is not None and verdict.relation == "coexists":
            reverse = _read_in_reverse(candidate, neighbour, now=now)
            if reverse is not None:
                verdicts[neighbour.key] = reverse
    return reading.model_copy(update={"verdicts": tuple(verdicts.values())})


def _read_in_reverse(
    candidate: CandidateMemory, neighbour: Neighbour, *, now: datetime
) -> RelationVerdict | None:
    """The verdict if the memory were the candidate; `None` if that says no more."""
    origin = neighbour.provenance
    as_candidate = CandidateMemory(
        text=neighbour.text,
        namespace=neighbour.namespace,
        said_at=neighbour.said_at,
        **({name: getattr(origin, name) for name in _SHARED} if origin is not None else {}),
    )
    as_neighbour = Neighbour(
        namespace=candidate.namespace,
        key=neighbour.key,
        text=candidate.text,
        said_at=candidate.said_at,
        provenance=Provenance(
            candidate_id=candidate.id,
            receipt_id="",
            said_at=candidate.said_at,
            **{name: getattr(candidate, name) for name in _SHARED},
        ),
    )
    reading = read_relations(as_candidate, [as_neighbour], now=now)
    if reading.assertion != "plain":
        return None
    verdict = next(iter(reading.verdicts), None)
    # A detail that the memory has is one that the candidate lacks, so the two only coexist.
    is_mutual = verdict is not None and verdict.relation in {"supersedes", "contradicts"}
    return verdict if is_mutual else None


_SHARED = ("turn_ids", "subject", "said_by", "conversation_id", "speaker")


def verdict_row(
    neighbour: Neighbour, verdict: RelationVerdict, **details: JsonValue
) -> dict[str, JsonValue]:
    """One near memory with its verdict, as evidence on a receipt."""
    relation: Any = verdict.relation
    if isinstance(relation, Inconclusive):
        relation = {"inconclusive": relation.reason, "detail": relation.detail}
    return {
        "key": neighbour.key,
        "text": neighbour.text,
        "score": neighbour.score,
        "said_at": neighbour.said_at.isoformat() if neighbour.said_at else None,
        "relation": relation,
        "certain": verdict.certain,
        "reason": verdict.reason,
        **details,
    }
