"""The steps of a read that every method takes: judge, compile, render. Nodes are made of them."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from memguard.adjudication.case import distinct, make_case, units_of
from memguard.adjudication.state import ReadState
from memguard.errors import MemguardError
from memguard.llm.budget import Meter
from memguard.llm.metering import current_meter, use_meter
from memguard.policy.ledger import Costs, compile_ledger, rule_on_units
from memguard.policy.parts import estimate_tokens
from memguard.policy.ruling import Ruling
from memguard.protocols import Adjudicator
from memguard.rendering.memories import frame_texts, render_memories, unit_line
from memguard.schema.base import is_blank
from memguard.schema.ledger import Adjudication, Flag, Ledger, ReadReport
from memguard.schema.read import ReadCase, RecalledMemory
from memguard.schema.read_config import ReadSpec
from memguard.schema.receipt import PromptStamp
from memguard.schema.units import Pieces, Scheme, Unit
from memguard.schema.usage import Budget, Usage
from memguard.schema.verdict import Inconclusive

_SHARE = 0.95
"""Of the time that is left, what the adjudicator is told: what it has by then is not lost."""


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
    """Who judges."""
    budget: Budget
    """The most that one read may spend."""
    clock: Callable[[], datetime]
    """Gives the time."""
    new_id: Callable[[], str]
    """Gives ids."""

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings as reports have them."""
        return self.spec.model_dump(mode="json")

    def meter(self, *, spent: Usage, seconds: float) -> Meter:
        """Counts against the budget of the read, and on the meter of the run around it."""
        return Meter(self.budget, spent=spent, elapsed=seconds, parent=current_meter())

    def units(
        self, memories: Sequence[RecalledMemory], *, pieces: Mapping[str, Pieces]
    ) -> dict[str, Any]:
        """The units of the memories, and those of their repeats.

        Args:
            memories: What was recalled.
            pieces: What each memory was cut into, by its id; a memory without is whole.
        """
        firsts, repeats = distinct(memories)
        units: list[Unit] = []
        twins: dict[str, tuple[Unit, ...]] = {}
        for memory in firsts:
            cut = pieces.get(memory.id)
            own = units_of(memory, pieces=cut)
            units += own
            copies = [units_of(other, pieces=cut) for other in repeats[memory.id]]
            for number, unit in enumerate(own):
                twins[unit.id] = tuple(copy[number] for copy in copies)
        return {"units": tuple(units), "repeats": {k: v for k, v in twins.items() if v}}

    async def judge(self, state: ReadState, *, units: Sequence[Unit]) -> dict[str, Any]:
        """Ask the adjudicator, within what is left of the deadline.

        Nothing recalled costs no call, and neither does a query that holds nothing.
        """
        case, was_cut = make_case(
            state.query,
            dialogue=state.dialogue,
            evidence=state.evidence,
            now=state.now or self.clock(),
            spec=self.spec,
        )
        began = time.monotonic()
        # What the store has replaced is denied whatever is found: nobody need look at it.
        asked = [unit for unit in units if not unit.superseded]
        if not asked:
            found = Adjudication(adjudicator=self.adjudicator.name)
        elif is_blank(state.query):
            found = _failed("the query is blank, so no unit was judged", flag="situation_unknown")
        else:
            left = max(0.0, self.spec.deadline - state.seconds)
            spent = state.decomposition.usage if state.decomposition else Usage()
            with use_meter(self.meter(spent=spent, seconds=state.seconds)):
                found = await self._ask(case, units=asked, seconds=left)
        flags: tuple[Flag, ...] = (*state.flags, *found.flags)
        return {
            "case": case,
            "adjudication": found,
            "seconds": state.seconds + time.monotonic() - began,
            "flags": (*flags, "evidence_cut") if was_cut else flags,
            "notes": (*state.notes, *found.notes),
        }

    async def _ask(self, case: ReadCase, *, units: Sequence[Unit], seconds: float) -> Adjudication:
        try:
            async with asyncio.timeout(seconds):
                return await self.adjudicator.adjudicate(
                    case, units=units, scheme=self.scheme, seconds=_SHARE * seconds
                )
        except MemguardError:
            raise  # our own mistakes and yours are not the adjudicator's opinion
        except TimeoutError:
            return _failed("the adjudicator did not keep its deadline", flag="adjudication_late")
        except Exception as error:  # an adjudicator of the user's own may raise anything
            why = f"the adjudicator failed: {type(error).__name__}"
            return _failed(why, flag="adjudication_failed")

    def compile(self, state: ReadState) -> dict[str, Any]:
        """Rule on every unit, settle conflicts, and choose what fits."""
        adjudication = state.adjudication or Adjudication()
        rulings = rule_on_units(state.units, adjudication=adjudication, spec=self.spec)
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

    def render(self, state: ReadState) -> dict[str, Any]:
        """Write the section for the prompt, and the receipt of the read."""
        ledger = state.ledger or Ledger(scheme=self.scheme)
        text = render_memories(
            ledger, rendering=self.spec.rendering, when_empty=self.spec.when_empty
        )
        report = self._report(state, ledger=ledger, text=text)
        return {
            "memory_context": text,
            "admitted": ledger.shown,
            "withheld": ledger.withheld,
            "ledger": ledger,
            "report": report,
        }

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
            spec=self.settings,
            query=state.query,
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
            flags=state.flags,
            notes=state.notes,
        )


def costs_of(rulings: Sequence[Ruling]) -> Costs:
    """What showing the permitted units takes, at the widest of the renderings."""
    return Costs(
        units={
            ruling.unit.id: estimate_tokens(
                unit_line(ruling.unit.text, said_at=ruling.unit.said_at) + "\n"
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


def _failed(why: str, *, flag: Flag) -> Adjudication:
    reason = "timeout" if flag == "adjudication_late" else "provider_error"
    return Adjudication(
        situation=Inconclusive(reason=reason, detail=why), flags=(flag,), notes=(why,)
    )
