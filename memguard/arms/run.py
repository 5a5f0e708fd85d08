"""Every arm by its name, over one case; the names are those of arXiv 2610.11188."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from memguard.arms.annotated import annotated
from memguard.arms.budget import SEEDS, budget_random, budget_relevance
from memguard.arms.sections import bare, grouping_only, no_memory, relevance_gate, rendered
from memguard.schema.ledger import Ledger
from memguard.schema.read import RecalledMemory
from memguard.schema.read_config import RelevanceGate


@dataclass(frozen=True, kw_only=True)
class ArmCase:
    """One query, adjudicated once in each scheme; arms differ in what they make of it."""

    memories: tuple[RecalledMemory, ...]
    """What was recalled."""
    fc: Ledger
    """The verdicts on whole entries."""
    ps: Ledger
    """The verdicts on units."""
    topics: Mapping[str, str] = field(default_factory=dict[str, str])
    """Topics by memory id, for `GroupingOnly`."""
    gate: RelevanceGate = field(default_factory=RelevanceGate)
    """The settings of `Gate`."""


Arm = Callable[[ArmCase], str]
"""What an arm puts into the prompt."""


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
