"""The relevance of memories to a query."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memguard.local.encoder import LocalEmbeddings
from memguard.local.relevance.requests import last_request, points_back
from memguard.schema.memory import Turn

CLEARLY_OTHER = 0.25
"""Below this score a memory is clearly of another topic."""
DIRECT = 0.6
"""From this score on, a memory is what the query asks about."""
# Cosines of MiniLM that stand for the two thresholds.
_COSINES = (-0.1, 0.18, 0.40, 1.0)
_SCORES = (0.0, CLEARLY_OTHER, DIRECT, 1.0)
# Factor on the cosine with an earlier turn of the user, relative to the query's own.
_EARLIER = 0.85
_RECENT_TURNS = 3
# The model reads about a thousand characters.
_TEXT_CHARS = 2_000


class RelevanceModel:
    """Scores how relevant memories are to a query; deterministic, no key and no network.

    Safe to share between threads.

    Args:
        embeddings: A loaded embedder to share; by default a new one.
    """

    def __init__(self, *, embeddings: LocalEmbeddings | None = None) -> None:
        self._embeddings = embeddings or LocalEmbeddings()

    def score(
        self, query: str, texts: Sequence[str], *, dialogue: Sequence[Turn] = ()
    ) -> NDArray[np.float32]:
        """How relevant each text is to the query.

        Args:
            query: What the user asks.
            texts: Memories, or units of memories, of one read.
            dialogue: The turns before the query.

        Returns:
            One number from 0 to 1 per text; compare it with `CLEARLY_OTHER` and `DIRECT`.
        """
        if not texts:
            return np.zeros(0, dtype=np.float32)
        queries = [query[-_TEXT_CHARS:], last_request(query)[-_TEXT_CHARS:]]
        spoken = [turn.content for turn in dialogue if turn.role == "user"]
        back = points_back(query)
        turns = [text[:_TEXT_CHARS] for text in spoken[-_RECENT_TURNS:]]
        rows = self._embeddings.embed_documents(
            [*queries, *turns, *(text[:_TEXT_CHARS] for text in texts)]
        )
        vectors = np.asarray(rows, dtype=np.float32)
        later, units = vectors[2 : 2 + len(turns)], vectors[2 + len(turns) :]
        cosine = (units @ vectors[:2].T).max(axis=1)
        if len(turns):
            earlier = (units @ later.T).max(axis=1) * (1.0 if back else _EARLIER)
            cosine = np.maximum(cosine, earlier) if back else cosine
        return np.interp(cosine, _COSINES, _SCORES).astype(np.float32)
