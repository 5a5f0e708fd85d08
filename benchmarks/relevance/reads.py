"""Reads as they are scored: recalled memories with their features and labels."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.relevance.sets import LabelledQuery
from memguard.local.encoder import Matrix, MiniLmEncoder
from memguard.local.relevance.features import WordedText, encode_texts, measure
from memguard.local.relevance.requests import last_request
from memguard.local.verifier.head import load_assets

RECALLED = 15
"""Memories of a read that recall chooses."""
# Memories this near to a relevant one may be relevant too, so they are neither right nor wrong.
_DOUBLE = 0.72


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredRead:
    """One read with the features of its N memories."""

    query: LabelledQuery
    """What it was made from."""
    texts: tuple[str, ...]
    """Its memories."""
    features: Matrix
    """Shape (N, F)."""
    labels: NDArray[np.int64]
    """1 for relevant, 0 for not, -1 for unknown; shape (N,)."""


class Encoded:
    """Encodes texts and remembers all of them."""

    def __init__(self, encoder: MiniLmEncoder) -> None:
        self._encoder = encoder
        self._assets = load_assets()
        self._texts: dict[str, WordedText] = {}

    def words(self, texts: Sequence[str]) -> list[WordedText]:
        """The words of texts, in their order."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._texts]
        for start in range(0, len(missing), 256):
            batch = missing[start : start + 256]
            worded = encode_texts(
                self._encoder, batch, idf=self._assets.idf, default_idf=self._assets.default_idf
            )
            self._texts |= zip(batch, worded, strict=True)
        return [self._texts[text] for text in texts]


def measure_reads(queries: Iterable[LabelledQuery], encoded: Encoded) -> Iterator[MeasuredRead]:
    """Recall the memories of each query, and compute their features.

    With more than `RECALLED` memories, those with the highest cosine are recalled. The relevant
    ones are always among them. A third of the reads has some other ones drawn at random instead,
    so that small reads of anything are trained on too.
    """
    draw = random.Random("reads")
    for query in queries:
        texts = encoded.words(query.texts)
        asked, request = encoded.words([query.query, last_request(query.query)])
        chosen = _recall(query, asked, texts, draw=draw)
        recalled = [texts[at] for at in chosen]
        yield MeasuredRead(
            query=query,
            texts=tuple(query.texts[at] for at in chosen),
            features=measure(asked, request, recalled),
            labels=_labels(query, chosen, texts),
        )


def _recall(
    query: LabelledQuery, asked: WordedText, texts: Sequence[WordedText], *, draw: random.Random
) -> list[int]:
    if len(texts) <= RECALLED:
        return list(range(len(texts)))
    relevant = sorted(query.relevant)
    if not query.group.startswith("locomo") and draw.random() < 1 / 3:
        others = [at for at in range(len(texts)) if at not in query.relevant]
        return [*relevant, *draw.sample(others, k=min(draw.randint(2, 12), len(others)))]
    return recall(asked, texts, relevant=relevant)


def recall(asked: WordedText, texts: Sequence[WordedText], *, relevant: Sequence[int]) -> list[int]:
    """Indices of the memories with the highest cosine, with the relevant ones among them."""
    cosines = np.array([text.sentence @ asked.sentence for text in texts])
    return nearest(cosines, relevant=relevant)


def nearest(cosines: Matrix, *, relevant: Sequence[int]) -> list[int]:
    """Indices of the highest of N cosines, with the relevant ones among them."""
    order = [int(at) for at in np.argsort(-cosines, kind="stable")]
    others = [at for at in order if at not in relevant]
    chosen = {*relevant, *others[: max(0, RECALLED - len(relevant))]}
    return [at for at in order if at in chosen]


def _labels(
    query: LabelledQuery, chosen: Sequence[int], texts: Sequence[WordedText]
) -> NDArray[np.int64]:
    labels: list[int] = []
    for at in chosen:
        near = [float(texts[at].sentence @ texts[one].sentence) for one in query.relevant]
        doubtful = query.group in {"question", "said"} and max(near, default=0.0) > _DOUBLE
        labels.append(1 if at in query.relevant else -1 if doubtful else 0)
    return np.array(labels, dtype=np.int64)
