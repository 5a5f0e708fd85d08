"""The local adjudicator and decomposer: read-time judgements with no language model."""

from memguard.local.adjudicator.adjudicate import LocalAdjudicator
from memguard.local.adjudicator.decompose import LocalDecomposer

__all__ = ["LocalAdjudicator", "LocalDecomposer"]
