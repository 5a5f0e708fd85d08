"""Encodes texts as words with one vector each, and caches the result by text."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from memguard.local.encoder import DIMS, Matrix, MiniLmEncoder, TokenVectors
from memguard.local.verifier.words import Span, Words, idf_of, read_words, split_words

# The model reads 256 tokens; English has about 1.3 of them per word.
_SLICE_WORDS = 100
_TextKey = tuple[str, int, date | None]


@dataclass(frozen=True, slots=True, eq=False)
class EncodedText:
    """One text, word by word."""

    text: str
    """The text, unchanged."""
    words: Words
    """Its N words with their flags."""
    idf: Matrix
    """Inverse document frequency of each word, shape (N,)."""
    vectors: Matrix
    """One vector of length 1 per word, from the frozen MiniLM, shape (N, 384)."""
    label: int
    """How many leading words are the speaker's label rather than the turn's text."""

    def __len__(self) -> int:
        return len(self.words)


class WordEncoder:
    """Encodes texts word by word, with a thread-safe cache that drops the least recently used.

    `idf` has the inverse document frequency by stem, and `default_idf` is the value of a stem that
    is not in it. `cache_size` counts texts.
    """

    def __init__(
        self,
        *,
        encoder: MiniLmEncoder,
        idf: Mapping[str, float],
        default_idf: float,
        cache_size: int,
    ) -> None:
        self._encoder = encoder
        self._idf = idf
        self._default_idf = default_idf
        self._size = cache_size
        self._lock = threading.Lock()
        self._texts: OrderedDict[_TextKey, EncodedText] = OrderedDict()

    def encode(
        self, texts: Sequence[str], *, labels: Sequence[int], dates: Sequence[date | None]
    ) -> list[EncodedText]:
        """Words and vectors of texts, in the order of `texts`.

        For each text, `labels` says how many leading words are a speaker's label, and `dates` when
        it was said.
        """
        keys = list(zip(texts, labels, dates, strict=True))
        encoded = self._cached(keys)
        missing = [key for key in dict.fromkeys(keys) if key not in encoded]
        if missing:
            rows = word_vectors(self._encoder, [text for text, _, _ in missing])
            fresh = {key: self._build(key, row) for key, row in zip(missing, rows, strict=True)}
            self._cache(fresh)
            encoded |= fresh
        # Not read back from the cache: a list longer than the cache has evicted its own start.
        return [encoded[key] for key in keys]

    def _build(self, key: _TextKey, vectors: Matrix) -> EncodedText:
        text, label, at = key
        words = read_words(text, at=at)
        idf = idf_of(words, table=self._idf, default=self._default_idf)
        return EncodedText(text=text, words=words, idf=idf, vectors=vectors, label=label)

    def _cached(self, keys: Sequence[_TextKey]) -> dict[_TextKey, EncodedText]:
        with self._lock:
            cached = {key: self._texts[key] for key in keys if key in self._texts}
            for key in cached:
                self._texts.move_to_end(key)
            return cached

    def _cache(self, texts: Mapping[_TextKey, EncodedText]) -> None:
        with self._lock:
            for key, text in texts.items():
                self._texts[key] = text
                self._texts.move_to_end(key)
            while len(self._texts) > self._size:
                self._texts.popitem(last=False)


def word_vectors(encoder: MiniLmEncoder, texts: Sequence[str]) -> list[Matrix]:
    """One vector of length 1 per word of each text, shape (words, 384); long texts go in slices."""
    slices: list[tuple[int, Sequence[Span]]] = []
    for owner, text in enumerate(texts):
        spans = split_words(text)
        starts = range(0, len(spans), _SLICE_WORDS)
        slices += [(owner, spans[start : start + _SLICE_WORDS]) for start in starts]
    encoded = encoder.encode_tokens(
        [texts[owner][part[0].start : part[-1].end] for owner, part in slices]
    )
    rows: list[list[Matrix]] = [[] for _ in texts]
    for (owner, part), tokens in zip(slices, encoded, strict=True):
        rows[owner].append(_pooled(encoder, texts[owner], part, tokens))
    return [
        np.concatenate(parts) if parts else np.zeros((0, DIMS), dtype=np.float32) for parts in rows
    ]


def _pooled(
    encoder: MiniLmEncoder, text: str, spans: Sequence[Span], tokens: TokenVectors
) -> Matrix:
    """Mean vector of each word's tokens, scaled to length 1.

    A slice that the model cut off is encoded again in two halves.
    """
    base = spans[0].start
    starts = np.array([span.start - base for span in spans])
    ends = np.array([span.end - base for span in spans])
    sums = np.zeros((len(spans), DIMS), dtype=np.float32)
    counts = np.zeros(len(spans), dtype=np.int64)
    for (start, end), vector in zip(tokens.offsets, tokens.vectors, strict=True):
        # The word in which a token begins; special tokens are empty, punctuation is in no word.
        index = int(np.searchsorted(starts, start, side="right")) - 1
        if start < end and index >= 0 and start < ends[index]:
            sums[index] += vector
            counts[index] += 1
    # No token for the last word: the slice was longer than the 256 tokens that the model reads.
    if counts[-1] == 0 and len(spans) > 1:
        middle = len(spans) // 2
        parts = (spans[:middle], spans[middle:])
        again = encoder.encode_tokens([text[part[0].start : part[-1].end] for part in parts])
        return np.concatenate(
            [_pooled(encoder, text, part, half) for part, half in zip(parts, again, strict=True)]
        )
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return (sums / np.maximum(lengths, 1e-9)).astype(np.float32)
