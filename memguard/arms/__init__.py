"""Arms of an experiment: what each of them would put into the prompt, from the same verdicts."""

from memguard.arms.annotated import annotated
from memguard.arms.budget import budget_random, budget_relevance
from memguard.arms.run import ARMS, ArmCase, run_arm
from memguard.arms.sections import bare, grouping_only, no_memory, relevance_gate, rendered

__all__ = [
    "ARMS",
    "ArmCase",
    "annotated",
    "bare",
    "budget_random",
    "budget_relevance",
    "grouping_only",
    "no_memory",
    "relevance_gate",
    "rendered",
    "run_arm",
]
