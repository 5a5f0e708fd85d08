"""Whether a memory is about what a query asks: scores without a language model."""

from memguard.local.relevance.head import CLEARLY_OTHER, DIRECT
from memguard.local.relevance.model import UNCERTAIN, RelevanceModel
from memguard.local.relevance.requests import asks_for_everything

__all__ = ["CLEARLY_OTHER", "DIRECT", "UNCERTAIN", "RelevanceModel", "asks_for_everything"]
