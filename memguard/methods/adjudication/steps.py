"""The steps that every read-time method shares, and the graph that joins them.

```text
START -> [decompose ->] [local_first ->] adjudicate -> compile -> render -> END
```

`Steps` are the nodes, and `compile_method` joins them. Their state is in `state`, the case that an
adjudicator sees in `case`, and the units of the memories in `recalled_units`.
"""

import asyncio
import math
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from langgraph.graph import END, START, StateGraph

from memguard.errors import MemguardError
from memguard.llm.call import call_metadata
from memguard.llm.limits import Meter, current_meter, use_meter
from memguard.methods.adjudication.case import create_case
from memguard.methods.adjudication.ledger import Costs, compile_ledger
from memguard.methods.adjudication.marks import may_be_about_past
from memguard.methods.adjudication.recalled_units import (
    instructions_in,
    units_in_read,
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
from memguard.methods.adjudication.state import ReadInput, ReadOutput, ReadState
from memguard.portal import NodeFunction, dual
from memguard.protocols import Adjudicator
from memguard.schema.base import is_blank
from memguard.schema.decision import Inconclusive
from memguard.schema.read import Adjudication, Flag, Ledger, ReadCase, ReadReport, ReadSpec
from memguard.schema.receipt import Budget, PromptStamp, Usage
from memguard.schema.units import Scheme, Unit
from memguard.uncheckpointed import UncheckpointedGraph, uncheckpointed

_LINE_CHARS = 60
"""Characters of a unit's line in a prompt beside its text: its name, memory and date."""
_ADJUDICATOR_SHARE = 0.95
"""Share of the remaining time that the adjudicator may use. It returns what it has by then; the
deadline here would cancel it, and lose every verdict."""


def seconds_of(spec: ReadSpec) -> float:
    """The deadline in seconds; infinite where there is none."""
    return math.inf if spec.deadline is None else spec.deadline


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
        entries = await units_in_read(
            state.memories,
            instructions=instructions,
            paraphrases=self.spec.merge_paraphrases,
        )
        return entries | await self.adjudicate(state.model_copy(update=fresh | entries))

    async def adjudicate(self, state: ReadState) -> dict[str, Any]:
        """Ask for the situation and the attributes of every unit, within the deadline.

        A read without units costs no call, and neither does a blank query.
        """
        start = time.monotonic()
        past = may_be_about_past(state.query, spec=self.spec)
        units = units_to_judge(state.units, past=past)
        if state.local_first is not None:
            units = [unit for unit in units if unit.id not in state.local_first.unit_ids]
        case, shortened = create_case(
            state.query,
            dialogue=state.dialogue,
            evidence=state.evidence,
            now=state.now or self.clock(),
            spec=self.spec,
            unit_chars=sum(len(unit.text) + _LINE_CHARS for unit in units),
        )
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
        return {
            "case": case,
            "adjudication": adjudication,
            "seconds": state.seconds + time.monotonic() - start,
            "flags": tuple(dict.fromkeys((*state.flags, *adjudication.flags, *shortened))),
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
    units = await units_in_read(
        state.memories,
        instructions=instructions,
        paraphrases=steps.spec.merge_paraphrases,
    )
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
