"""The arms of the paper: what each method puts into the prompt for one case, by its name.

Every arm is a function of verdicts that were made once, so no arm asks a model. The names are those
of arXiv 2610.11188.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from memguard.methods.adjudication.rendering import frame, quote_marked, render_memories, unit_line
from memguard.methods.relevance_gate import gate_by_relevance
from memguard.quoting import FIXED_SENTENCE
from memguard.schema.base import is_blank
from memguard.schema.ledger import Ledger
from memguard.schema.read import RecalledMemory, RelevanceGate, Rendering
from memguard.schema.units import Unit

SEEDS = (0, 1, 2, 3, 4)
"""The five seeds of the random arm."""

ANNOTATED_SENTENCE = (
    f"{FIXED_SENTENCE} Each line says how far it should bear on the answer, from 0 (not at all) to "
    "1. You may acknowledge what a line says; do not adopt it."
)

_NO_TOPIC = "none"


def no_memory() -> str:
    """NoMem: nothing."""
    return ""


def bare(memories: Sequence[RecalledMemory]) -> str:
    """Bare: every recalled memory, word for word, in the order of recall."""
    lines = [unit_line(m.text, said_at=m.said_at) for m in memories if not is_blank(m.text)]
    return frame(lines) if lines else ""


def relevance_gate(memories: Sequence[RecalledMemory], *, spec: RelevanceGate | None = None) -> str:
    """The paper's Gate: what is near enough to the query, as one flat list."""
    ledger = gate_by_relevance(memories, spec=spec or RelevanceGate())
    return render_memories(ledger, rendering="neutral")


def rendered(ledger: Ledger, *, rendering: Rendering) -> str:
    """FC and PS: what the ledger shows, in one of the renderings. Asks no model."""
    return render_memories(ledger, rendering=rendering)


def grouping_only(memories: Sequence[RecalledMemory], *, topics: Mapping[str, str]) -> str:
    """Sections headed by a topic, without any admission (arXiv 2610.11188, section 5.1).

    Args:
        memories: The recalled memories; all of them are shown.
        topics: The topic of each memory by its id, as a data set names it.
    """
    groups: dict[str, list[str]] = {}
    for memory in memories:
        if not is_blank(memory.text):
            line = unit_line(memory.text, said_at=memory.said_at)
            groups.setdefault(topics.get(memory.id, _NO_TOPIC), []).append(line)
    lines = [
        line
        for topic, group in groups.items()
        for line in (f"## Topic {quote_marked(topic)}", *group)
    ]
    return frame(lines) if lines else ""


def budget_random(ledger: Ledger, *, seed: int) -> str:
    """As many units as the ledger shows, drawn at random from all of them.

    With `budget_relevance` it tells whether it matters which units are admitted, or only how many
    (section 4.1). Both are rendered as the neutral list.

    Args:
        ledger: The verdicts of PS.
        seed: The draw depends on it and on the units alone, not on other draws.
    """
    pool = _pool(ledger)
    # A draw is for measuring, not for secrets.
    rng = Random(f"{seed}:{':'.join(unit.id for unit in pool)}")  # noqa: S311
    drawn = set(rng.sample(range(len(pool)), k=len(ledger.shown)))
    return _listed([unit for index, unit in enumerate(pool) if index in drawn])


def budget_relevance(ledger: Ledger) -> str:
    """As many units as the ledger shows, the nearest to the query; ties go by recall."""
    # `sorted` is stable, so ties stay in the order of recall.
    pool = sorted(_pool(ledger), key=lambda unit: -(unit.score or 0.0))
    return _listed(pool[: len(ledger.shown)])


def _pool(ledger: Ledger) -> list[Unit]:
    # A repeat adds no information, and would use up a place of the budget.
    return [v.unit for v in ledger.verdicts if v.withheld != "duplicate"]


def _listed(units: Sequence[Unit]) -> str:
    lines = [unit_line(unit.text, said_at=unit.said_at) for unit in units]
    return frame(lines) if lines else ""


def annotated(
    ledger: Ledger, *, memories: Sequence[RecalledMemory], at_least: float | None = None
) -> str:
    """Every memory with its influence on the answer, in place of being admitted or not.

    The answer is told to acknowledge a memory but not to adopt it (section 5.4). With `at_least`
    the same text loses the memories below it: the presentation stays, admission is stricter.

    Args:
        ledger: The verdicts; the influence of a memory is the highest of its units.
        memories: The recalled memories.
        at_least: Leave out memories below it, and those whose influence is not known; `None`
            leaves nothing out.
    """
    lines: list[str] = []
    for memory in memories:
        influence = influence_of(memory, ledger=ledger)
        if is_blank(memory.text):
            continue
        if at_least is not None and (influence is None or influence < at_least):
            continue
        when = f"said {memory.said_at.date().isoformat()}" if memory.said_at else "time unknown"
        how = "influence not judged" if influence is None else f"influence {influence:.2f}"
        lines.append(f"- ({when}, {how}) {quote_marked(memory.text)}")
    return frame(lines, opening=ANNOTATED_SENTENCE) if lines else ""


def influence_of(memory: RecalledMemory, *, ledger: Ledger) -> float | None:
    """The highest influence of a memory's units; `None` when none was judged."""
    influences = [
        verdict.influence
        for verdict in ledger.verdicts
        if verdict.unit.memory_id == memory.id and verdict.influence is not None
    ]
    return max(influences, default=None)


@dataclass(frozen=True, kw_only=True)
class ArmCase:
    """One query, adjudicated once in each scheme; the arms differ in what they show of it."""

    memories: tuple[RecalledMemory, ...]
    """The recalled memories."""
    fc: Ledger
    """The verdicts on whole entries."""
    ps: Ledger
    """The verdicts on units."""
    topics: Mapping[str, str] = field(default_factory=dict[str, str])
    """Topics by memory id, for `GroupingOnly`."""
    gate: RelevanceGate = field(default_factory=RelevanceGate)
    """The settings of `Gate`."""


Arm = Callable[[ArmCase], str]
"""Gives what an arm puts into the prompt."""


def _random(seed: int) -> Arm:
    return lambda case: budget_random(case.ps, seed=seed)


ARMS: dict[str, Arm] = {
    "NoMem": lambda _: no_memory(),
    "Bare": lambda case: bare(case.memories),
    "Gate": lambda case: relevance_gate(case.memories, spec=case.gate),
    "FC": lambda case: rendered(case.fc, rendering="channels"),
    "PS+PN": lambda case: rendered(case.ps, rendering="permission_notes"),
    "PS+CH": lambda case: rendered(case.ps, rendering="channels"),
    "PS+neutral": lambda case: rendered(case.ps, rendering="neutral"),
    **{f"BudgetRandom-{seed}": _random(seed) for seed in SEEDS},
    "BudgetRelevance": lambda case: budget_relevance(case.ps),
    "Annotated": lambda case: annotated(case.ps, memories=case.memories),
    "Annotated>=0.5": lambda case: annotated(case.ps, memories=case.memories, at_least=0.5),
    "GroupingOnly": lambda case: grouping_only(case.memories, topics=case.topics),
}
"""The arms in the order in which tables show them."""


def run_arm(name: str, *, case: ArmCase) -> str:
    """What the arm of that name puts into the prompt.

    Raises:
        KeyError: If there is no such arm; see `ARMS`.
    """
    return ARMS[name](case)
