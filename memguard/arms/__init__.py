"""Arms of an experiment: what each of them would put into the prompt, from the same verdicts."""

from memguard.arms.run import (
    ARMS,
    ArmCase,
    annotated,
    bare,
    budget_random,
    budget_relevance,
    grouping_only,
    no_memory,
    relevance_gate,
    rendered,
    run_arm,
)

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
