"""Relevance where the query or a memory is not English: by topics, shared words, and an extra.

Without the multilingual encoder a doubt shows the memory: a memory is clearly of another topic only
if the words of both texts tell their topics and these have nothing to do with each other.
"""

from collections.abc import Sequence

import numpy as np

from memguard.local.encoder import Matrix
from memguard.local.relevance.features import standing
from memguard.local.relevance.topics import share_topic, share_words

FOREIGN_FEATURES: tuple[str, ...] = (
    "centred_cosine",
    "standing_cosine",
    "same_topic",
    "other_topic",
    "shared_words",
)
"""Names of the columns of `measure_foreign`."""
SAME_TOPIC, UNKNOWN_TOPIC, OTHER_TOPIC = 0.5, 0.4, 0.1
"""The scores without an encoder."""


def score_by_words(query: str, texts: Sequence[str]) -> Matrix:
    """Scores of N texts without an encoder, shape (N,)."""
    scores = {True: SAME_TOPIC, None: UNKNOWN_TOPIC, False: OTHER_TOPIC}
    return np.array(
        [
            max(
                scores[share_topic(query, text)], UNKNOWN_TOPIC if share_words(query, text) else 0.0
            )
            for text in texts
        ],
        dtype=np.float32,
    )


def measure_foreign(query: str, texts: Sequence[str], *, vectors: Matrix, centre: Matrix) -> Matrix:
    """The features of N texts with vectors of a multilingual encoder, shape (N, F).

    Args:
        query: The query.
        texts: The memories.
        vectors: Vectors of the query and the texts, shape (N + 1, 384).
        centre: The mean vector of many texts, shape (384,). All vectors of the model point in
            about its direction, so what tells texts apart is how they differ from it.
    """
    usual = len(texts) / (len(texts) + _USUAL)
    middle = usual * vectors[1:].mean(axis=0) + (1.0 - usual) * centre
    moved = vectors - np.stack([centre, *([middle] * len(texts))])
    moved /= np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-9)
    cosine = moved[1:] @ moved[0]
    topics = [share_topic(query, text) for text in texts]
    columns = [
        cosine,
        standing(cosine),
        np.array([topic is True for topic in topics]),
        np.array([topic is False for topic in topics]),
        np.array([share_words(query, text) for text in texts]),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


# With this many memories their own mean counts as much as that of all texts.
_USUAL = 8.0
