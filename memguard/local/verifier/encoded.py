"""Texts as words with one vector each, encoded once and remembered."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from memguard.local.embedder import DIMS, Matrix, MiniLmEncoder, TokenVectors
from memguard.local.verifier.words import Span, Words, idf_of, read_words, split_words

# The model reads 256 pieces; English has about 1.3 of them per word.
_SLICE_WORDS = 100
_Key = tuple[str, int, date | None]


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """One text, word by word."""

    text: str
    """The text as given."""
    words: Words
    """Its words with their flags."""
    idf: Matrix
    """How rare each word is."""
    vectors: Matrix
    """One row of length 1 per word, from the frozen MiniLM."""
    label: int
    """How many leading words are the speaker's label and not what was said."""

    def __len__(self) -> int:
        return len(self.words)


class WordEncoder:
    """Encodes texts word by word; vectors are kept by text, the ones used last first.

    Args:
        encoder: The model.
        idf: Rarity by stem.
        default_idf: Rarity of a stem the table has never seen.
        cache_size: How many texts to remember.
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
        self._texts: OrderedDict[_Key, Encoded] = OrderedDict()

    def encode(
        self, texts: Sequence[str], *, labels: Sequence[int], dates: Sequence[date | None]
    ) -> list[Encoded]:
        """Words and vectors of texts, in the order given.

        Args:
            texts: Any strings.
            labels: How many leading words of each are a speaker's label.
            dates: When each was said.
        """
        keys = list(zip(texts, labels, dates, strict=True))
        known = self._known(keys)
        missing = [key for key in dict.fromkeys(keys) if key not in known]
        if missing:
            rows = word_vectors(self._encoder, [text for text, _, _ in missing])
            fresh = {key: self._encoded(key, row) for key, row in zip(missing, rows, strict=True)}
            self._remember(fresh)
            known |= fresh
        return [known[key] for key in keys]

    def __len__(self) -> int:
        return len(self._texts)

    def _encoded(self, key: _Key, vectors: Matrix) -> Encoded:
        text, label, at = key
        words = read_words(text, at=at)
        idf = idf_of(words, table=self._idf, default=self._default_idf)
        return Encoded(text=text, words=words, idf=idf, vectors=vectors, label=label)

    def _known(self, keys: Sequence[_Key]) -> dict[_Key, Encoded]:
        with self._lock:
            known = {key: self._texts[key] for key in keys if key in self._texts}
            for key in known:
                self._texts.move_to_end(key)
            return known

    def _remember(self, texts: Mapping[_Key, Encoded]) -> None:
        with self._lock:
            for key, text in texts.items():
                self._texts[key] = text
                self._texts.move_to_end(key)
            while len(self._texts) > self._size:
                self._texts.popitem(last=False)


def word_vectors(encoder: MiniLmEncoder, texts: Sequence[str]) -> list[Matrix]:
    """One row of length 1 per word of each text; long texts are encoded in slices.

    Args:
        encoder: The model.
        texts: Any strings.
    """
    slices = [
        (owner, part)
        for owner, text in enumerate(texts)
        for part in _slices(split_words(text), size=_SLICE_WORDS)
    ]
    encoded = encoder.encode_tokens(
        [texts[owner][part[0].start : part[-1].end] for owner, part in slices]
    )
    rows: list[list[Matrix]] = [[] for _ in texts]
    for (owner, part), tokens in zip(slices, encoded, strict=True):
        rows[owner].append(_pooled(encoder, texts[owner], part, tokens))
    return [
        np.concatenate(each) if each else np.zeros((0, DIMS), dtype=np.float32) for each in rows
    ]


def _slices(spans: Sequence[Span], *, size: int) -> list[Sequence[Span]]:
    return [spans[start : start + size] for start in range(0, len(spans), size)]


def _pooled(
    encoder: MiniLmEncoder, text: str, spans: Sequence[Span], tokens: TokenVectors
) -> Matrix:
    """Mean of each word's pieces; words beyond the model's reach are encoded in smaller slices."""
    base = spans[0].start
    starts = np.array([span.start - base for span in spans])
    ends = np.array([span.end - base for span in spans])
    sums = np.zeros((len(spans), DIMS), dtype=np.float32)
    counts = np.zeros(len(spans), dtype=np.int64)
    for (start, end), vector in zip(tokens.offsets, tokens.vectors, strict=True):
        place = int(np.searchsorted(starts, start, side="right")) - 1
        if start < end and place >= 0 and start < ends[place]:
            sums[place] += vector
            counts[place] += 1
    lost = int(counts[-1] == 0 and len(spans) > 1)
    if lost:
        half = len(spans) // 2
        parts = (spans[:half], spans[half:])
        again = encoder.encode_tokens([text[part[0].start : part[-1].end] for part in parts])
        return np.concatenate(
            [_pooled(encoder, text, part, each) for part, each in zip(parts, again, strict=True)]
        )
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return (sums / np.maximum(lengths, 1e-9)).astype(np.float32)
