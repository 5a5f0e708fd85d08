"""Computes the network's input for groups of claims, encoding every distinct text once."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.verifier.pairs import Claim, Group
from memguard.local.encoder import Matrix, MiniLmEncoder
from memguard.local.verifier.encoded import EncodedText, word_vectors
from memguard.local.verifier.features import PairFeatures, pair_features
from memguard.local.verifier.units import TextUnit, align_claim
from memguard.local.verifier.words import idf_of, read_words

# Texts that are encoded and stored together.
_CHUNK = 512
Progress = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Example:
    """One claim with its group and features."""

    group: Group
    """The group it belongs to."""
    claim: Claim
    """The claim."""
    features: PairFeatures
    """The input of the network, vectors in half precision."""


class VectorBank:
    """Word vectors of many texts in half precision, optionally stored in a folder.

    Args:
        encoder: The model.
        folder: Where to store the vectors for the next run; by default they are not stored.
    """

    def __init__(self, encoder: MiniLmEncoder, *, folder: Path | None = None) -> None:
        self._encoder = encoder
        self._folder = folder
        self._rows: dict[str, NDArray[np.float16]] = {}
        for path in sorted(folder.glob("*.npz")) if folder else ():
            stored = np.load(path)
            texts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
            # All rows are stored as one matrix, with the number of words of each text.
            cuts = np.cumsum(stored["lengths"])[:-1]
            self._rows |= dict(zip(texts, np.split(stored["rows"], cuts), strict=True))

    def add(self, texts: Iterable[str], *, progress: Progress) -> None:
        """Encode the texts that have no vectors yet.

        Args:
            texts: The texts.
            progress: Called with a line of text now and then.
        """
        missing = [text for text in dict.fromkeys(texts) if text not in self._rows]
        for start in range(0, len(missing), _CHUNK):
            part = missing[start : start + _CHUNK]
            for text, row in zip(part, word_vectors(self._encoder, part), strict=True):
                self._rows[text] = row.astype(np.float16)
            if start % (8 * _CHUNK) == 0:
                progress(f"encoded {start + len(part)} of {len(missing)} texts")
            if self._folder:
                self._store(part)

    def row(self, text: str) -> Matrix:
        """The vectors of one text, shape (words, 384)."""
        return self._rows[text].astype(np.float32)

    def _store(self, texts: Sequence[str]) -> None:
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        # The name follows from the texts, so that a repeated run overwrites its own file.
        name = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
        rows = [self._rows[text] for text in texts]
        path = self._folder / f"{name}.npz"
        np.savez(path, rows=np.concatenate(rows), lengths=np.array([len(row) for row in rows]))
        path.with_suffix(".json").write_text(json.dumps(list(texts)), encoding="utf-8")


def units_of(group: Group) -> list[TextUnit]:
    """The context of a group as text units, without turns that have no words."""
    return [
        TextUnit(speaker=speaker, text=text, turn=index)
        for index, (speaker, text) in enumerate(group.context)
        if len(read_words(text))
    ]


def texts_of(groups: Iterable[Group]) -> Iterable[str]:
    """All texts of the groups that must be encoded."""
    for group in groups:
        yield from (unit.labelled for unit in units_of(group))
        yield from (claim.text for claim in group.claims)


def examples_of(
    groups: Iterable[Group], bank: VectorBank, idf: Mapping[str, float], default: float
) -> Iterable[Example]:
    """The network's input for every claim that has words."""
    for group in groups:
        units = units_of(group)
        if not units:
            continue
        encoded = [
            _encoded(unit.labelled, bank, idf, default, label=unit.label_words) for unit in units
        ]
        for claim in group.claims:
            fact = _encoded(claim.text, bank, idf, default, label=0)
            # A claim of punctuation alone has no words to align.
            if len(fact):
                features = pair_features(align_claim(fact, units, encoded))
                yield Example(group=group, claim=claim, features=_halved(features))


def _halved(features: PairFeatures) -> PairFeatures:
    """Vectors in half precision, since those of forty thousand pairs must fit in memory."""
    names = ("fact", "fact_aligned", "context", "context_aligned")
    halves = {name: getattr(features, name).astype(np.float16) for name in names}
    return replace(features, **halves)


def _encoded(
    text: str, bank: VectorBank, idf: Mapping[str, float], default: float, *, label: int
) -> EncodedText:
    words = read_words(text)
    return EncodedText(
        text=text,
        words=words,
        idf=idf_of(words, table=idf, default=default),
        vectors=bank.row(text),
        label=label,
    )
