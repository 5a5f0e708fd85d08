"""The steps that every read-time method shares, and the graph that joins them.

```text
START -> [decompose ->] [local_first ->] adjudicate -> compile -> render -> END
```

The input, output and state of the graph come first. Then what is derived from the input before
anything is judged: the case that an adjudicator sees, and the units of the memories. `Steps` are
the nodes, and `compile_method` joins them.
"""

import asyncio
import math
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, BeforeValidator, Field

from memguard.conversations.messages import AnyConversation
from memguard.errors import MemguardError
from memguard.instructions import find_instruction
from memguard.llm.call import call_metadata
from memguard.llm.limits import Meter, current_meter, use_meter
from memguard.local.pieces import looks_like_safety, whole, with_span
from memguard.local.statements import split_sentences
from memguard.methods.adjudication.ledger import Costs, compile_ledger
from memguard.methods.adjudication.marks import (
    may_be_about_past,
    store_marks,
    units_to_judge,
)
from memguard.methods.adjudication.rendering import (
    estimate_tokens,
    frame_texts,
    is_over,
    line_of,
    render_memories,
)
from memguard.methods.adjudication.ruling import Ruling, rule_on_units
from memguard.portal import NodeFunction, dual
from memguard.protocols import Adjudicator
from memguard.schema.base import GraphInput, Text, is_blank
from memguard.schema.decision import Inconclusive
from memguard.schema.memory import Conversation, Moment, same_text_form
from memguard.schema.read import (
    Adjudication,
    Decomposition,
    Evidence,
    Flag,
    Ledger,
    LocalFirst,
    ReadCase,
    ReadReport,
    ReadSpec,
    RecalledMemory,
    UnitVerdict,
)
from memguard.schema.receipt import Budget, PromptStamp, Usage
from memguard.schema.relevance_gate import RelevanceGate
from memguard.schema.units import Instruction, Piece, Pieces, Scheme, Unit
from memguard.uncheckpointed import UncheckpointedGraph, uncheckpointed

_GAP = "\n[... cut ...]\n"
_MAX_SCANNED_INLINE = 10_000
"""Characters that are scanned for instructions on the event loop, in about 30 ms."""
_ADJUDICATOR_SHARE = 0.95
"""Share of the remaining time that the adjudicator may use. It returns what it has by then; the
deadline here would cancel it, and lose every verdict."""


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


def create_case(
    query: str,
    *,
    dialogue: Conversation,
    evidence: Sequence[Evidence],
    now: datetime | None,
    spec: ReadSpec,
) -> tuple[ReadCase, bool]:
    """The case within the limits of the spec, and whether evidence was clipped.

    Text that memguard rendered into the conversation is not dialogue, nor are system messages.
    """
    # `[-0:]` would be all turns.
    turns = dialogue.evidence[-spec.dialogue_turns :] if spec.dialogue_turns else ()
    entries, clipped = clip_evidence(evidence, max_chars=spec.evidence_chars)
    return ReadCase(query=query, dialogue=turns, evidence=entries, now=now), clipped


def seconds_of(spec: ReadSpec) -> float:
    """The deadline in seconds; infinite where there is none."""
    return math.inf if spec.deadline is None else spec.deadline


async def instructions_in(
    memories: Sequence[RecalledMemory], *, spec: ReadSpec | RelevanceGate
) -> dict[str, Instruction]:
    """What memories demand of the assistant, by text; nothing where the spec does not ask."""
    texts = {memory.text for memory in memories} if spec.withhold_instructions else set[str]()
    # Long texts are scanned in a thread, so that they do not block the event loop.
    if sum(map(len, texts)) > _MAX_SCANNED_INLINE:
        return await asyncio.to_thread(_find_instructions, texts)
    return _find_instructions(texts)


def _find_instructions(texts: Iterable[str]) -> dict[str, Instruction]:
    instructions: dict[str, Instruction] = {}
    for text in texts:
        if (instruction := find_instruction(text)) is not None:
            instructions[text] = instruction
    return instructions


def units_with_repeats(
    memories: Sequence[RecalledMemory],
    *,
    instructions: Mapping[str, Instruction],
    pieces: Mapping[str, Pieces] | None = None,
) -> dict[str, Any]:
    """The units of the memories, and those of their repeats, as values of the state.

    Args:
        memories: What was recalled.
        instructions: What memories demand of the assistant, by text.
        pieces: What each memory was split into, by its id; a memory without is whole.
    """
    firsts, repeats = distinct(memories)
    units: list[Unit] = []
    copies: dict[str, tuple[Unit, ...]] = {}
    for memory in firsts:
        split = pieces.get(memory.id) if pieces else None
        instruction = instructions.get(memory.text)
        memory_units = units_of(memory, pieces=split, instruction=instruction)
        units += memory_units
        # A repeat has the same text, so it splits in the same places: unit n of one is unit n of
        # the other.
        repeat_units = [
            units_of(copy, pieces=split, instruction=instruction) for copy in repeats[memory.id]
        ]
        for number, unit in enumerate(memory_units):
            copies[unit.id] = tuple(other[number] for other in repeat_units)
    return {"units": tuple(units), "repeats": {k: v for k, v in copies.items() if v}}


def distinct(
    memories: Sequence[RecalledMemory],
) -> tuple[tuple[RecalledMemory, ...], dict[str, tuple[RecalledMemory, ...]]]:
    """The memories with distinct texts and unique ids, and the repeats of each.

    The first of several with the same text represents them, with the latest time at which any of
    them was said. Blank memories are left out.

    Returns:
        The memories in order, and by id the others with the same text.
    """
    by_text: dict[str, list[RecalledMemory]] = {}
    for memory in _with_unique_ids([m for m in memories if not is_blank(m.text)]):
        by_text.setdefault(same_text_form(memory.text), []).append(memory)
    # Copies are judged once: to judge a text twice would cost tokens and could give two verdicts.
    firsts: list[RecalledMemory] = []
    repeats: dict[str, tuple[RecalledMemory, ...]] = {}
    for group in by_text.values():
        # A current record represents the group even where a superseded one comes first, because
        # the text is then current.
        first = next((memory for memory in group if not memory.superseded), group[0])
        others = tuple(memory for memory in group if memory is not first)
        times = [memory.said_at for memory in group if memory.said_at is not None]
        if others:
            first = first.model_copy(update={"said_at": max(times, default=None)})
        firsts.append(first)
        repeats[first.id] = others
    return tuple(firsts), repeats


def _with_unique_ids(memories: Sequence[RecalledMemory]) -> list[RecalledMemory]:
    # Verdicts are matched to memories by id, so two of one id would share theirs.
    counts: dict[str, int] = {}
    unique: list[RecalledMemory] = []
    for memory in memories:
        count = counts[memory.id] = counts.get(memory.id, 0) + 1
        name = memory.id if count == 1 else f"{memory.id}~{count}"
        unique.append(memory.model_copy(update={"id": name}))
    return unique


def units_of(
    memory: RecalledMemory, *, pieces: Pieces | None = None, instruction: Instruction | None = None
) -> tuple[Unit, ...]:
    """The units of a memory: its pieces, or the whole of it.

    A memory with an instruction is one unit, which is withheld. Whoever wrote the instruction may
    have written the rest as well, so only sentences about safety become units in addition.
    """
    split = (pieces.pieces if pieces else ()) or whole(memory.text).pieces
    if instruction is not None:
        split = (*whole(memory.text).pieces, *safety_sentences(memory.text))
    return tuple(
        Unit(
            id=f"{memory.id}.{number}",
            memory_id=memory.id,
            text=piece.text,
            kind=piece.kind,
            start=piece.start,
            end=piece.end,
            instruction=instruction if number == 1 else None,
            **store_marks(memory),
        )
        for number, piece in enumerate(split, start=1)
    )


def safety_sentences(text: str) -> tuple[Piece, ...]:
    """The sentences about safety that contain no instruction themselves."""
    sentences = (
        sentence
        for sentence in split_sentences(text)
        if looks_like_safety(sentence) and find_instruction(sentence) is None
    )
    return tuple(with_span(Piece(text=one, kind="safety"), source=text) for one in sentences)


def clip_evidence(
    evidence: Sequence[Evidence], *, max_chars: int
) -> tuple[tuple[Evidence, ...], bool]:
    """The evidence within a limit, and whether anything was clipped.

    Short texts stay whole. The rest share the remaining room and lose their middle, because
    documents say what they are about at the beginning and what follows from it at the end.
    """
    entries = [entry for entry in evidence if entry.text.strip()]
    room, shares = max_chars, dict[int, int]()
    # The shortest first: what it does not use of its share goes to the longer ones.
    by_length = sorted(range(len(entries)), key=lambda index: len(entries[index].text))
    for number, index in enumerate(by_length):
        shares[index] = min(len(entries[index].text), room // (len(entries) - number))
        room -= shares[index]
    clipped = tuple(_clip(entry, shares[index]) for index, entry in enumerate(entries))
    return clipped, any(len(entry.text) > shares[index] for index, entry in enumerate(entries))


def _clip(evidence: Evidence, share: int) -> Evidence:
    if len(evidence.text) <= share:
        return evidence
    # Two thirds for the beginning, where a document says what it is about.
    head = max(0, share - len(_GAP)) * 2 // 3
    tail = max(0, share - len(_GAP) - head)
    text = evidence.text[:head] + _GAP + (evidence.text[-tail:] if tail else "")
    return evidence.model_copy(update={"text": text})


@dataclass(frozen=True, kw_only=True)
class Steps:
    """What the steps of one method need."""

    method: str
    """Names the method on reports."""
    scheme: Scheme
    """Which attributes it judges by."""
    spec: ReadSpec
    """Its settings."""
    adjudicator: Adjudicator
    """Judges the units."""
    clock: Callable[[], datetime]
    """Gives the time."""
    budget: Budget = field(default_factory=Budget)
    """What one read may spend."""
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex
    """Gives ids."""

    def meter(self, *, spent: Usage, seconds: float) -> Meter:
        """Counts against the budget of the read, and on the meter of the run around it."""
        return Meter(self.budget, spent=spent, elapsed=seconds, parent=current_meter())

    async def adjudicate_whole(self, state: ReadState) -> dict[str, Any]:
        """Judge every memory as one unit, none of which is decomposed."""
        # The first step of its graph: flags and notes of an earlier run of the thread are dropped.
        fresh = {"flags": (), "notes": (), "seconds": 0.0}
        instructions = await instructions_in(state.memories, spec=self.spec)
        entries = units_with_repeats(state.memories, instructions=instructions)
        return entries | await self.adjudicate(state.model_copy(update=fresh | entries))

    async def adjudicate(self, state: ReadState) -> dict[str, Any]:
        """Ask for the situation and the attributes of every unit, within the deadline.

        A read without units costs no call, and neither does a blank query.
        """
        case, clipped = create_case(
            state.query,
            dialogue=state.dialogue,
            evidence=state.evidence,
            now=state.now or self.clock(),
            spec=self.spec,
        )
        start = time.monotonic()
        past = may_be_about_past(state.query, spec=self.spec)
        units = units_to_judge(state.units, past=past)
        if state.local_first is not None:
            units = [unit for unit in units if unit.id not in state.local_first.unit_ids]
        if not units:
            adjudication = Adjudication(adjudicator=self.adjudicator.name)
        elif is_blank(state.query):
            why = "the query is blank, so no unit was judged"
            adjudication = _failed(why, flag="situation_unknown")
        else:
            seconds = max(0.0, seconds_of(self.spec) - state.seconds)
            spent = state.decomposition.usage if state.decomposition else Usage()
            with use_meter(self.meter(spent=spent, seconds=state.seconds)):
                adjudication = await self._ask(case, units=units, seconds=seconds)
        flags: tuple[Flag, ...] = (*state.flags, *adjudication.flags)
        return {
            "case": case,
            "adjudication": adjudication,
            "seconds": state.seconds + time.monotonic() - start,
            "flags": (*flags, "evidence_cut") if clipped else flags,
            "notes": (*state.notes, *adjudication.notes),
        }

    async def _ask(self, case: ReadCase, *, units: Sequence[Unit], seconds: float) -> Adjudication:
        try:
            async with asyncio.timeout(None if math.isinf(seconds) else seconds):
                with call_metadata(method=self.method):
                    return await self.adjudicator.adjudicate(
                        case, units=units, scheme=self.scheme, seconds=_ADJUDICATOR_SHARE * seconds
                    )
        except MemguardError:
            # A setting that cannot work says nothing about the units, so it may not pass for an
            # inconclusive verdict.
            raise
        except TimeoutError:
            return _failed("the adjudicator did not keep its deadline", flag="adjudication_late")
        except Exception as error:  # a user's own adjudicator may raise anything
            why = f"the adjudicator failed: {type(error).__name__}"
            return _failed(why, flag="adjudication_failed")

    async def compile_verdicts(self, state: ReadState) -> dict[str, Any]:
        """Look every unit up in the table, settle conflicts, and choose what fits."""
        adjudication = state.adjudication or Adjudication()
        left_out = state.local_first.unit_ids if state.local_first else ()
        rulings = rule_on_units(
            state.units, adjudication=adjudication, spec=self.spec, left_out=frozenset(left_out)
        )
        compiled = compile_ledger(
            rulings,
            adjudication=adjudication,
            spec=self.spec,
            scheme=self.scheme,
            costs=costs_of(rulings),
            repeats=state.repeats,
        )
        return {
            "ledger": compiled.ledger,
            "flags": tuple(dict.fromkeys((*state.flags, *compiled.flags))),
            "notes": tuple(dict.fromkeys((*state.notes, *compiled.notes))),
        }

    async def render(self, state: ReadState) -> dict[str, Any]:
        """Write the section for the prompt, and the receipt of the read."""
        ledger = state.ledger or Ledger(scheme=self.scheme)
        text = render_memories(
            ledger,
            rendering=self.spec.rendering,
            when_empty=self.spec.when_empty,
            authorship=self.spec.authorship,
        )
        report = self._report(state, ledger=ledger, text=text)
        return method_output(ledger, text=text, report=report)

    def _report(self, state: ReadState, *, ledger: Ledger, text: str) -> ReadReport:
        adjudication = state.adjudication or Adjudication()
        decomposition = state.decomposition
        usage = adjudication.usage + (decomposition.usage if decomposition else Usage())
        stamps: tuple[PromptStamp, ...] = decomposition.prompts if decomposition else ()
        return ReadReport(
            id=self.new_id(),
            at=self.clock().astimezone(UTC),
            run_id=state.run_id or self.new_id(),
            method=self.method,
            spec=self.spec.model_dump(mode="json"),
            query=state.query,
            # Of the case, not of the input: the receipt shows what the adjudicator was given.
            dialogue=state.case.dialogue if state.case else (),
            evidence=state.case.evidence if state.case else (),
            memories=state.memories,
            ledger=ledger,
            memory_context=text,
            usage=usage,
            prompts=(*stamps, *adjudication.prompts),
            models={"adjudicator": self.adjudicator.name},
            decomposed=state.decomposed,
            cached=state.cached,
            local_first=state.local_first,
            flags=state.flags,
            notes=state.notes,
        )


def compile_method(
    steps: Steps,
    *,
    decompose: NodeFunction | None = None,
    local_first: NodeFunction | None = None,
) -> UncheckpointedGraph[Any]:
    """The steps of one method as a graph.

    Args:
        steps: The method's settings and adjudicator.
        decompose: A first step that splits memories into units; without one, each is judged whole.
        local_first: A step after it that leaves units out before they are judged.
    """
    nodes: dict[str, NodeFunction] = {"decompose": decompose} if decompose else {}
    if local_first:
        nodes["local_first"] = local_first
    nodes["adjudicate"] = steps.adjudicate if decompose else steps.adjudicate_whole
    nodes["compile"] = steps.compile_verdicts
    nodes["render"] = steps.render
    builder = StateGraph(ReadState, input_schema=ReadInput, output_schema=ReadOutput)
    builder.add_sequence([(name, dual(node, name=name)) for name, node in nodes.items()])
    builder.add_edge(START, next(iter(nodes)))
    builder.add_edge("render", END)
    return uncheckpointed(builder.compile(name=steps.method))


async def read_without_adjudicator(values: Mapping[str, Any], *, steps: Steps) -> dict[str, Any]:
    """Read by policy and the words of the memories alone, in a millisecond or two.

    For when a method failed or was late: safety constraints and preferences that can be
    recognized by their words stay as context, and everything else is withheld.

    Args:
        values: A method's input.
        steps: The method's settings, with `NoAdjudicator`.
    """
    state = ReadState.model_validate(dict(values))
    instructions = await instructions_in(state.memories, spec=steps.spec)
    units = units_with_repeats(state.memories, instructions=instructions)
    state = state.model_copy(update=units)
    if steps.scheme == "units" and not is_blank(state.query):
        # PS judges units, so a memory that is judged whole has a receipt that says so.
        flags = ("decomposition_failed",) if units_to_judge(state.units) else ()
        state = state.model_copy(update={"flags": flags})
    for step in (steps.adjudicate, steps.compile_verdicts):
        state = state.model_copy(update=await step(state))
    return await steps.render(state)


@dataclass(frozen=True)
class NoAdjudicator:
    """An adjudicator that gives no verdict on any unit."""

    name: str = "none"
    fingerprint: str = "none"

    async def adjudicate(
        self, case: ReadCase, *, units: Sequence[Unit], scheme: Scheme, seconds: float
    ) -> Adjudication:
        """No verdict; policy then goes by the words of each unit."""
        del case, units, scheme, seconds
        detail = "no adjudicator was asked"
        return Adjudication(situation=Inconclusive(reason="timeout", detail=detail))


def costs_of(rulings: Sequence[Ruling]) -> Costs:
    """What showing the permitted units takes, at the widest of the renderings."""
    return Costs(
        units={
            ruling.unit.id: estimate_tokens(
                line_of(ruling.unit, is_over=is_over(ruling.finding.attributes)) + "\n"
            )
            for ruling in rulings
            if ruling.row.then != "DENY"
        },
        frames=_FRAMES,
    )


_FRAMES = {
    name: max((estimate_tokens(f"{text}\n") for text in texts), default=0)
    for name, texts in frame_texts().items()
}
"""Tokens of the tags with the sentence, and of the widest heading of each permission."""


def method_output(ledger: Ledger, *, text: str, report: ReadReport) -> dict[str, Any]:
    """The output of a read-time method."""
    return {
        "memory_context": text,
        "admitted": ledger.shown,
        "withheld": ledger.withheld,
        "ledger": ledger,
        "report": report,
    }


def _failed(why: str, *, flag: Flag) -> Adjudication:
    reason = "timeout" if flag == "adjudication_late" else "provider_error"
    return Adjudication(
        situation=Inconclusive(reason=reason, detail=why), flags=(flag,), notes=(why,)
    )
