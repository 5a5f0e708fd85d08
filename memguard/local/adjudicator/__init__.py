"""The local adjudicator and decomposer: read-time judgements without a language model."""

from memguard.local.adjudicator.adjudicator import LocalAdjudicator
from memguard.local.adjudicator.decomposer import LocalDecomposer

__all__ = ["LocalAdjudicator", "LocalDecomposer"]
