"""The relevance of the memories of one read."""

from collections.abc import Mapping, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from memguard.local.encoder import LocalEmbeddings, RecentItems, text_key
from memguard.local.relevance.features import WordedText, encode_texts, measure
from memguard.local.relevance.head import CLEARLY_OTHER, LinearHead, load_heads
from memguard.local.relevance.requests import (
    asks_for_everything,
    continues,
    is_foreign,
    last_request,
)
from memguard.local.verifier.head import load_assets
from memguard.schema.memory import Turn

UNCERTAIN = 0.4
"""The score of a memory whose topic cannot be compared with the query: not clearly another."""
# The model reads about a thousand characters.
_TEXT_CHARS = 2_000
# How many earlier turns of the user a query that continues them may be about.
_RECENT_TURNS = 2
# About 10 kB per text.
_CACHED_TEXTS = 4_096


class RelevanceModel:
    """Scores how relevant memories are to a query; deterministic, no key and no network.

    Safe to share between threads: calls wait for one another. Texts that were scored before are
    not encoded again.

    Args:
        embeddings: A loaded embedder to share; by default a new one.
    """

    def __init__(self, *, embeddings: LocalEmbeddings | None = None) -> None:
        self._embeddings = embeddings or LocalEmbeddings()
        self._texts = RecentItems[bytes, WordedText](_CACHED_TEXTS)
        self._lock = Lock()
        self._idf: tuple[Mapping[str, float], float] | None = None

    def score(
        self, query: str, texts: Sequence[str], *, dialogue: Sequence[Turn] = ()
    ) -> NDArray[np.float32]:
        """How relevant each text is to the query.

        A score is relative to the other texts of the same call: what stands out is more likely to
        be meant. A query or a text that is not understood has a score of at least `CLEARLY_OTHER`,
        and so has everything if the query asks for all that is remembered.

        Args:
            query: What the user asks.
            texts: Memories, or units of memories, of one read; N of them.
            dialogue: The turns before the query. They count if the query continues them.

        Returns:
            One number from 0 to 1 per text, shape (N,); compare it with `CLEARLY_OTHER` and
            `DIRECT`.
        """
        scores = np.full(len(texts), UNCERTAIN, dtype=np.float32)
        if not texts or not query.strip():
            return scores
        spoken = [turn.content for turn in dialogue if turn.role == "user"]
        queries = [query, *(spoken[-_RECENT_TURNS:] if continues(query) else ())]
        with self._lock:
            scores = np.max([self._score(one, texts) for one in queries], axis=0)
        if asks_for_everything(query):
            scores = np.maximum(scores, UNCERTAIN)
        return scores.astype(np.float32)

    def _score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        scores = np.full(len(texts), UNCERTAIN, dtype=np.float32)
        if is_foreign(query):
            return scores
        readable = [index for index, text in enumerate(texts) if not is_foreign(text)]
        if readable:
            scores[readable] = self._score_words(query, [texts[index] for index in readable])
        return scores

    def _score_words(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        worded = self._encode([query, last_request(query), *texts])
        if not worded[0].stems:
            return np.full(len(texts), UNCERTAIN, dtype=np.float32)
        return self._head.score(measure(worded[0], worded[1], worded[2:]))

    @property
    def _head(self) -> LinearHead:
        return load_heads()["words"]

    def _encode(self, texts: Sequence[str]) -> list[WordedText]:
        """The words of texts, in their order; equal ones are encoded once."""
        # The end of a long query is what it asks, the start of a long memory what it is about; a
        # query longer than that is rare enough to be read like a memory.
        clipped = [text[:_TEXT_CHARS] for text in texts]
        keys = [text_key(text) for text in clipped]
        rows = self._texts.get(keys)
        missing = {key: text for key, text in zip(keys, clipped, strict=True) if key not in rows}
        if missing:
            idf, default_idf = self._rarity()
            worded = encode_texts(
                self._embeddings.encoder, list(missing.values()), idf=idf, default_idf=default_idf
            )
            fresh = dict(zip(missing, worded, strict=True))
            self._texts.put(fresh)
            rows |= fresh
        return [rows[key] for key in keys]

    def _rarity(self) -> tuple[Mapping[str, float], float]:
        if self._idf is None:
            assets = load_assets()
            self._idf = (assets.idf, assets.default_idf)
        return self._idf


__all__ = ["CLEARLY_OTHER", "UNCERTAIN", "RelevanceModel"]
