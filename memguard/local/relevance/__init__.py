"""Whether a memory is about what a query asks: scores without a language model."""

from memguard.local.relevance.model import CLEARLY_OTHER, DIRECT, RelevanceModel

__all__ = ["CLEARLY_OTHER", "DIRECT", "RelevanceModel"]
