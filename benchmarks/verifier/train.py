"""Rebuilds the support verifier's weights: `python -m benchmarks.verifier.train`.

Needs torch and the data sets named in `documents` and `multi_session`. The run is seeded and takes
about half an hour on one core, most of it for encoding and aligning the claims. Training data:
Multi-Session Chat `valid`, BUMP, Q2's Wizard of Wikipedia rows, BEGIN and sentences of our own.
Calibration and threshold are chosen on whole dialogues held out from those, never on an evaluation
set.
"""

import argparse
import hashlib
import json
import math
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.verifier.arrays import write_arrays
from benchmarks.verifier.control import CONTROL_FILE, train_control
from benchmarks.verifier.documents import read_begin, read_bump, read_q_squared
from benchmarks.verifier.encode import Example, VectorBank, examples_of, texts_of
from benchmarks.verifier.figures import admission, auc, platt
from benchmarks.verifier.multi_session import (
    PersonaMemory,
    build_groups,
    is_validation,
    read_memories,
)
from benchmarks.verifier.network import Score, TrainingSettings, train_network
from benchmarks.verifier.pairs import Group
from benchmarks.verifier.sets import frames_of
from benchmarks.verifier.templates import template_groups
from memguard.local import MiniLmEncoder
from memguard.local.encoder import Matrix
from memguard.local.verifier.head import PINNED, Calibration
from memguard.local.verifier.words import read_words

_MEMORIES = 8000
# Their logits would be averaged; one network is shipped.
_NETWORKS = 1
_NEGATIVES = 3
_TEMPLATES = 1666
# Maximum number of groups of a document set: documents are long, and not what memories come from.
_DOCUMENTS = 500
# How many texts must contain a stem for it to be in the table of frequencies.
_MIN_TEXTS = 3
_START = time.monotonic()


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """The training data."""

    groups: Sequence[Group]
    """Claims with their contexts."""
    idf: dict[str, float]
    """Inverse document frequency by stem."""
    default_idf: float
    """The same for a stem that is not in the table."""


def log(text: str) -> None:
    """Print with the minutes since the start."""
    print(f"{(time.monotonic() - _START) / 60:5.1f} min  {text}", flush=True)


def read_corpus(data: Path, *, memories: int = _MEMORIES) -> Corpus:
    """Build all groups and the table of inverse document frequencies.

    Args:
        data: The data folder.
        memories: How many memories of Multi-Session Chat to use.
    """
    folder = data / "msc" / "msc_personasummary"
    available = list(read_memories(folder, split="valid"))
    frames = frames_of(available)
    groups = list(
        build_groups(
            choose_memories(available, memories), frames, source="msc", negatives=_NEGATIVES
        )
    )
    verifier = data / "verifier"
    for source in (
        read_bump(verifier / "bump", frames),
        read_q_squared(verifier / "q_squared_wow"),
        read_begin(verifier / "begin"),
    ):
        documents = list(source)
        random.Random("documents").shuffle(documents)
        groups += documents[:_DOCUMENTS]
    groups += template_groups(_TEMPLATES)
    idf, default = count_idf(groups)
    return Corpus(groups=groups, idf=idf, default_idf=default)


def choose_memories(available: Sequence[PersonaMemory], count: int) -> list[PersonaMemory]:
    """Choose memories, half of them with a number or a name, which are rare here and matter most.

    Args:
        available: All memories.
        count: How many to choose.
    """
    shuffled = list(available)
    random.Random("memories").shuffle(shuffled)
    rich, plain = [], []
    for memory in shuffled:
        words = read_words(memory.fact)
        detailed = words.number.any() or words.capital.any()
        (rich if detailed else plain).append(memory)
    # Shuffled with seeds of their own, so that another `count` keeps the beginning of the choice.
    half = min(len(rich), count // 2)
    chosen = rich[:half] + plain[: count - half]
    random.Random("order").shuffle(chosen)
    return chosen


def count_idf(groups: Sequence[Group]) -> tuple[dict[str, float], float]:
    """Inverse document frequency of stems over all distinct turns and true claims."""
    # Without the templates, whose few words would look frequent.
    texts = {text for group in groups if group.source != "template" for _, text in group.context}
    texts |= {claim.text for group in groups for claim in group.claims if claim.supported}
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(read_words(text).stems))
    total = math.log(len(texts) + 1)
    idf = {
        word: round(total - math.log(count + 1), 2)
        for word, count in sorted(counts.items())
        if count >= _MIN_TEXTS
    }
    return idf, round(total - math.log(_MIN_TEXTS), 2)


def class_weights(examples: Sequence[Example]) -> NDArray[np.float64]:
    """Weights by which both classes of a source count equally, shape (examples,)."""
    # A source with many changed claims would otherwise teach that claims are usually wrong.
    counts = Counter((example.group.source, example.claim.supported) for example in examples)
    weights = [
        (counts[example.group.source, True] + counts[example.group.source, False])
        / (2 * counts[example.group.source, example.claim.supported])
        for example in examples
    ]
    return np.array(weights)


def report(name: str, examples: Sequence[Example], scores: Matrix) -> None:
    """Print AUC by source."""
    for source in sorted({example.group.source for example in examples}):
        rows = [index for index, example in enumerate(examples) if example.group.source == source]
        value = auc(
            [float(scores[row]) for row in rows],
            [examples[row].claim.supported for row in rows],
        )
        log(f"  {name} {source}: AUC {value or 0:.3f} of {len(rows)}")


def calibrate(examples: Sequence[Example], logits: Matrix) -> dict[str, float]:
    """Fit the scale from logits to probabilities and choose the threshold, on held-out memories."""
    rows = [index for index, example in enumerate(examples) if example.group.source == "msc"]
    labels = np.array([examples[row].claim.supported for row in rows])
    slope, offset = platt(logits[rows].astype(float), labels)
    scores = 1 / (1 + np.exp(-(slope * logits[rows] + offset)))
    # A claim with a missing detail is never admitted, so it must not influence the threshold.
    lacking = np.array([examples[row].features.lacks_detail for row in rows])
    band = choose_band(np.where(lacking, 0.0, scores), labels)
    return {"slope": slope, "offset": offset, **band}


def choose_band(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> dict[str, float]:
    """Choose the threshold and the band around it in which the ruling is inconclusive.

    `tau` is 0.7, as ConsistencyGate asks of a model, or the first value above it at which at most
    15 % of the admitted claims are wrong, if half of all claims are. From `high` on half as many
    are wrong, and below `low` at least 90 % are.

    Args:
        scores: Calibrated scores, shape (N,).
        labels: Whether each claim is correct, shape (N,).
    """
    # As if there were as many wrong claims as correct ones.
    share_wrong = float(labels.sum() / (~labels).sum())
    grid = [step / 100 for step in range(5, 99)]

    def wrong_share(selected: NDArray[np.bool_]) -> float:
        wrong = share_wrong * float((selected & ~labels).sum())
        right = float((selected & labels).sum())
        return wrong / max(wrong + right, 1e-9)

    def contamination(tau: float) -> float:
        return wrong_share(scores >= tau)

    tau = next((value for value in grid if value >= 0.7 and contamination(value) <= 0.15), 0.9)
    high = next((value for value in grid if contamination(value) <= 0.075), 0.9)
    low = next((value for value in reversed(grid) if wrong_share(scores < value) >= 0.9), 0.2)
    return {"tau": tau, "low": min(low, round(tau - 0.01, 2)), "high": max(high, tau)}


def save(
    folder: Path,
    *,
    weights: dict[str, NDArray[np.float16]],
    corpus: Corpus,
    scale: dict[str, float],
) -> None:
    """Write the three files whose digests `memguard.local.verifier.head.PINNED` must hold."""
    folder.mkdir(parents=True, exist_ok=True)
    write_arrays(folder / "verifier.npz", weights)
    idf = {"default": corpus.default_idf, "stems": corpus.idf}
    text = json.dumps(idf, ensure_ascii=False, separators=(",", ":"))
    (folder / "verifier_idf.json").write_text(text + "\n", encoding="utf-8")
    text = json.dumps({key: round(value, 6) for key, value in scale.items()}, indent=2)
    (folder / "verifier_calibration.json").write_text(text + "\n", encoding="utf-8")


def train_networks(
    examples: Sequence[Example],
    counts: NDArray[np.float64],
    *,
    validation: Sequence[Example],
    epochs: int,
) -> tuple[dict[str, NDArray[np.float16]], Matrix]:
    """Train all networks.

    Args:
        examples: The training examples.
        counts: Weight of each example in the loss.
        validation: The held-out examples.
        epochs: Passes over the examples.

    Returns:
        The weights in half precision, stacked by network, and the mean logits of the held-out
        examples.
    """
    trained: list[dict[str, Matrix]] = []
    logits: list[Matrix] = []
    for number in range(_NETWORKS):
        latest: list[Matrix] = []

        # `latest` as a default, so that the function does not see the list of a later network.
        def after(score: Score, latest: list[Matrix] = latest) -> None:
            latest.append(score(validation))
            report("held out", validation, latest[-1])

        settings = TrainingSettings(epochs=epochs, seed=TrainingSettings.seed + number)
        trained.append(train_network(examples, counts, settings=settings, log=log, after=after))
        logits.append(latest[-1])
    weights = {
        name: np.stack([network[name] for network in trained]).astype(np.float16)
        for name in trained[0]
    }
    mean: Matrix = np.mean(logits, axis=0).astype(np.float32)
    report("held out, together", validation, mean)
    return weights, mean


def main(argv: Sequence[str] | None = None) -> None:
    """Build the training data, train, calibrate, and write the files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verifier.train")
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--out", type=Path, required=True, help="folder for the three files")
    parser.add_argument("--cache", type=Path, default=None, help="keep word vectors here")
    parser.add_argument("--epochs", type=int, default=TrainingSettings.epochs)
    parser.add_argument("--memories", type=int, default=_MEMORIES)
    options = parser.parse_args(argv)

    options.out.mkdir(parents=True, exist_ok=True)
    corpus = read_corpus(options.data, memories=options.memories)
    claims = [claim for group in corpus.groups for claim in group.claims]
    log(f"{len(corpus.groups)} groups, {len(claims)} claims, {len(corpus.idf)} stems")
    log(str(Counter(claim.kind for claim in claims).most_common()))
    bank = VectorBank(MiniLmEncoder(threads=1), folder=options.cache)
    bank.add(texts_of(corpus.groups), progress=log)
    examples = list(examples_of(corpus.groups, bank, corpus.idf, corpus.default_idf))
    validation = [example for example in examples if is_validation(example.group)]
    rest = [example for example in examples if not is_validation(example.group)]
    log(f"features of {len(rest)} training and {len(validation)} held-out claims")
    counts = class_weights(rest)
    write_arrays(options.out / CONTROL_FILE, train_control(rest, counts))
    weights, logits = train_networks(rest, counts, validation=validation, epochs=options.epochs)
    scale = calibrate(validation, logits)
    save(options.out, weights=weights, corpus=corpus, scale=scale)
    log(f"wrote {options.out}: {scale}")
    _print_result(options.out, validation, logits, scale)


def _print_result(
    folder: Path, validation: Sequence[Example], logits: Matrix, scale: Mapping[str, float]
) -> None:
    for name in PINNED:
        log(f"    {name!r}: {hashlib.sha256((folder / name).read_bytes()).hexdigest()!r}")
    msc = [index for index, example in enumerate(validation) if example.group.source == "msc"]
    calibration = Calibration(**scale)
    scores = [
        calibration.score(
            float(logits[index]), lacks_detail=validation[index].features.lacks_detail
        )
        for index in msc
    ]
    labels = [validation[index].claim.supported for index in msc]
    figures = admission(scores, labels, tau=calibration.tau)
    log(f"held out, at tau, {labels.count(False)} wrong to {labels.count(True)} right claims:")
    log(f"    contamination {figures.contamination}, recall {figures.recall}")


if __name__ == "__main__":
    main()
