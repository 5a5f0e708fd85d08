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

import numpy as np
from numpy.typing import NDArray

from benchmarks.relevance.reads import Encoded, MeasuredRead, measure_reads
from benchmarks.relevance.sets import read_chats, read_topics
from memguard.local.encoder import Matrix, MiniLmEncoder
from memguard.local.relevance.features import RELEVANCE_FEATURES
from memguard.local.relevance.head import WEIGHTS_FILE

_FOLDER = Path(__file__).parents[2] / "memguard" / "local" / "data"
# Dialogues of `valid`, of which every fourth chooses the thresholds.
_DIALOGUES = 130
# Share of the topics in the loss; the rest is chats.
_TOPICS = 0.3
_PENALTY = 1e-3
_STEPS = 60
# Share of the other memories of chats whose score is at least `CLEARLY_OTHER`, and `DIRECT`.
_ADMITTED, _DIRECT = 0.45, 0.08

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


def train(folder: Path, *, encoded: Encoded) -> str:
    """Train and return the JSON of the head."""
    chats = read_chats(folder / "msc" / "msc_personasummary", split="valid", dialogues=_DIALOGUES)
    reads = list(measure_reads(chats, encoded))
    names = sorted({read.query.name for read in reads})
    chosen_by = set(names[::4])
    parts = [
        gather([read for read in reads if read.query.name not in chosen_by], mass=1.0 - _TOPICS),
        gather(list(measure_reads(read_topics(), encoded)), mass=_TOPICS),
    ]
    features, labels, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    theta = fit(features, labels, weights)
    logits = np.concatenate(
        [
            read.features[read.labels == 0] @ theta[:-1] + theta[-1]
            for read in reads
            if read.query.name in chosen_by
        ]
    )
    head = {
        "weights": {
            name: round(float(value), 4)
            for name, value in zip(RELEVANCE_FEATURES, theta[:-1], strict=True)
        },
        "bias": round(float(theta[-1]), 4),
        "other": round(float(np.quantile(logits, 1.0 - _ADMITTED)), 4),
        "direct": round(float(np.quantile(logits, 1.0 - _DIRECT)), 4),
    }
    return json.dumps({"heads": {"words": head}}, indent=1) + "\n"


def main() -> None:
    """Write the file, and print the digest to put into `head.py`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    folder: Path = parser.parse_args().data
    text = train(folder, encoded=Encoded(MiniLmEncoder(threads=1)))
    path = _FOLDER / WEIGHTS_FILE
    path.write_text(text, encoding="utf-8")
    print(text)
    print(f'DIGEST = "{hashlib.sha256(text.encode()).hexdigest()}"')


if __name__ == "__main__":
    main()
