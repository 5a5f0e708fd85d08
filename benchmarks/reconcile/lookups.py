"""What of the stored memories enters the prompt of a request, and as what."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from langgraph.store.memory import InMemoryStore

from benchmarks.reconcile.scripts import OneDirection, exact_adjudicator
from benchmarks.reconcile.sets import NOW, Lookup, LookupMemory
from benchmarks.reconcile.storing import PastMemory, store_memories
from memguard import create_read_guard
from memguard.journal.journal import Journal
from memguard.local import LocalEmbeddings
from memguard.schema.memory import Lifecycle, record_key
from memguard.schema.read import ReadReport, UnitVerdict

Adjudicator = Literal["local", "exact"]
"""Who judges: the rules without a language model, or a model that is always right."""
Presence = Literal["certain", "uncertain", "past", "absent"]
"""How a memory is in the prompt."""
_FIGURES = re.compile(r"\d+")


@dataclass(frozen=True, kw_only=True)
class LookupResult:
    """What happened to one memory of a look-up."""

    lookup: Lookup
    memory: LookupMemory
    presence: Presence
    is_recalled: bool
    explanation: str

    @property
    def is_present(self) -> bool:
        """Whether it is in the prompt."""
        return self.presence != "absent"

    @property
    def is_right(self) -> bool:
        """Whether it is in the prompt as it must be."""
        if self.memory.label == "either":
            return True
        if self.memory.label == "must_not":
            return not self.is_present
        return self.is_present and self.memory.shown in ("any", self.presence)


def presence_of(verdicts: Sequence[UnitVerdict], *, text: str = "") -> Presence:
    """How the pieces of one memory are in the prompt; the strongest piece counts.

    Args:
        verdicts: Those on its pieces.
        text: The memory; without its figures in them, the pieces do not say what it says.
    """
    shown = [verdict for verdict in verdicts if verdict.shown]
    words = " ".join(verdict.unit.text for verdict in shown)
    if not shown or not set(_FIGURES.findall(text)) <= set(_FIGURES.findall(words)):
        return "absent"
    if any(verdict.unit.superseded for verdict in shown):
        return "past"
    is_uncertain = all(verdict.permission == "CONTEXT_UNCERTAIN" for verdict in shown)
    return "uncertain" if is_uncertain else "certain"


async def measure_lookups(
    lookups: Sequence[Lookup], *, adjudicator: Adjudicator, admission: str = "ps"
) -> list[LookupResult]:
    """Run the read guard on every look-up, each with memories of its own."""
    exact = adjudicator == "exact"
    index: Any = (
        {"dims": 2, "embed": OneDirection()}
        if exact
        # The rules are measured together with the recall that they have.
        else {"dims": 384, "embed": LocalEmbeddings()}
    )
    store = InMemoryStore(index=index)
    journal = Journal.memory()
    create: Callable[..., Any] = create_read_guard
    guard = None if exact else create("local", **_settings(store, journal, admission))
    results: list[LookupResult] = []
    for lookup in lookups:
        namespace = ("memories", lookup.id)
        await store_memories(journal, store, namespace, _memories(lookup))
        reader = guard or create(exact_adjudicator(lookup), **_settings(store, journal, admission))
        output = await reader.ainvoke({"query": lookup.request}, context={"user_id": lookup.id})
        results += _results(lookup, output["read"])
    await journal.aclose()
    return results


def _settings(store: InMemoryStore, journal: Journal, admission: str) -> dict[str, Any]:
    return {
        "store": store,
        "receipts": journal,
        "admission": admission,
        "clock": lambda: NOW,
        "on_failure": "raise",
    }


def _memories(lookup: Lookup) -> list[PastMemory]:
    stored: list[PastMemory] = []
    for memory in lookup.memories:
        lifecycle = Lifecycle()
        if memory.superseded_by is not None:
            successor = lookup.memories[memory.superseded_by]
            lifecycle = Lifecycle(
                superseded_by=record_key(successor.text),
                ended_as="superseded",
                valid_until=successor.said_at or NOW - timedelta(days=1),
            )
        stored.append(PastMemory(memory.text, memory.said_at, memory.said_by, lifecycle=lifecycle))
    return stored


def _results(lookup: Lookup, report: ReadReport) -> list[LookupResult]:
    keys = {memory.key: memory.id for memory in report.memories}
    results: list[LookupResult] = []
    for memory in lookup.memories:
        memory_id = keys.get(record_key(memory.text))
        verdicts = [
            verdict
            for verdict in (*report.admitted, *report.withheld)
            if verdict.unit.memory_id == memory_id
        ]
        results.append(
            LookupResult(
                lookup=lookup,
                memory=memory,
                presence=presence_of(verdicts, text=memory.text if memory.label == "must" else ""),
                is_recalled=memory_id is not None,
                explanation="; ".join(f"{v.permission} {v.row}" for v in verdicts)
                or "not recalled",
            )
        )
    return results


def answers_wholly(results: Sequence[LookupResult]) -> dict[str, bool]:
    """Whether a look-up has all that it needs in the prompt, and nothing else; by its id."""
    whole: dict[str, bool] = {}
    for result in results:
        whole[result.lookup.id] = whole.get(result.lookup.id, True) and result.is_right
    return whole
