"""Groups as what the network reads, with every distinct text encoded once."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memguard.bench.verifier.pairs import Claim, Group
from memguard.local.embedder import Matrix, MiniLmEncoder
from memguard.local.verifier.encoded import EncodedText, word_vectors
from memguard.local.verifier.features import PairFeatures, pair_features
from memguard.local.verifier.units import TextUnit, align_claim
from memguard.local.verifier.words import idf_of, read_words

_CHUNK = 512
Progress = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Example:
    """One claim of one group."""

    group: Group
    """Where it is from."""
    claim: Claim
    """The claim."""
    features: PairFeatures
    """What the network reads."""


class VectorBank:
    """Word vectors of many texts, in half precision; kept in a folder when one is given.

    Args:
        encoder: The model.
        folder: Where to keep vectors; nowhere when not given.
    """

    def __init__(self, encoder: MiniLmEncoder, *, folder: Path | None = None) -> None:
        self._encoder = encoder
        self._folder = folder
        self._rows: dict[str, NDArray[np.float16]] = {}
        for path in sorted(folder.glob("*.npz")) if folder else ():
            stored = np.load(path)
            texts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
            cuts = np.cumsum(stored["lengths"])[:-1]
            self._rows |= dict(zip(texts, np.split(stored["rows"], cuts), strict=True))

    def add(self, texts: Iterable[str], *, progress: Progress) -> None:
        """Encode what is not there yet."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._rows]
        for start in range(0, len(missing), _CHUNK):
            part = missing[start : start + _CHUNK]
            for text, row in zip(part, word_vectors(self._encoder, part), strict=True):
                self._rows[text] = row.astype(np.float16)
            if start % (8 * _CHUNK) == 0:
                progress(f"encoded {start + len(part)} of {len(missing)} texts")
            if self._folder:
                self._keep(part)

    def row(self, text: str) -> Matrix:
        """The vectors of one text."""
        return self._rows[text].astype(np.float32)

    def _keep(self, texts: Sequence[str]) -> None:
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
        rows = [self._rows[text] for text in texts]
        path = self._folder / f"{name}.npz"
        np.savez(path, rows=np.concatenate(rows), lengths=np.array([len(row) for row in rows]))
        path.with_suffix(".json").write_text(json.dumps(list(texts)), encoding="utf-8")


def units_of(group: Group) -> list[TextUnit]:
    """The context of a group as units."""
    return [
        TextUnit(speaker=speaker, text=text, turn=index)
        for index, (speaker, text) in enumerate(group.context)
        if len(read_words(text))
    ]


def texts_of(groups: Iterable[Group]) -> Iterable[str]:
    """Every text that must be encoded."""
    for group in groups:
        yield from (unit.labelled for unit in units_of(group))
        yield from (claim.text for claim in group.claims)


def examples_of(
    groups: Iterable[Group], bank: VectorBank, idf: Mapping[str, float], default: float
) -> Iterable[Example]:
    """What the network reads of every claim."""
    for group in groups:
        units = units_of(group)
        if not units:
            continue
        encoded = [
            _encoded(unit.labelled, bank, idf, default, label=unit.label_words) for unit in units
        ]
        for claim in group.claims:
            fact = _encoded(claim.text, bank, idf, default, label=0)
            if len(fact):
                features = pair_features(align_claim(fact, units, encoded))
                yield Example(group=group, claim=claim, features=_halved(features))


def _halved(features: PairFeatures) -> PairFeatures:
    """The same in half precision: forty thousand pairs must fit in memory."""
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
