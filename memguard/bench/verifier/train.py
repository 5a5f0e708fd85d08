"""Rebuilds the support verifier's weights: `python -m memguard.bench.verifier.train`.

Needs torch (for training only) and the data sets named in `documents` and `multi_session`. Seeded;
about half an hour of one core, most of it encoding and laying out the pairs. Training data:
Multi-Session Chat `valid`, BUMP, Q2's Wizard of Wikipedia rows, BEGIN and sentences of our own. The
scale and the threshold rest on whole dialogues held back from those, never on a set the verifier is
judged on.
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

from memguard.bench.verifier.arrays import write_arrays
from memguard.bench.verifier.control import CONTROL_FILE, train_control
from memguard.bench.verifier.documents import read_begin, read_bump, read_q_squared
from memguard.bench.verifier.encode import Example, VectorBank, examples_of, texts_of
from memguard.bench.verifier.figures import admission, auc, platt
from memguard.bench.verifier.multi_session import (
    Memory,
    build_groups,
    is_validation,
    read_memories,
)
from memguard.bench.verifier.network import Score, Settings, train_network
from memguard.bench.verifier.pairs import Group
from memguard.bench.verifier.sets import frames_of
from memguard.bench.verifier.templates import template_groups
from memguard.local import MiniLmEncoder
from memguard.local.embedder import Matrix
from memguard.local.verifier.assets import PINNED, Calibration
from memguard.local.verifier.words import read_words

_MEMORIES = 8000
# Their logits are averaged; one is shipped.
_NETWORKS = 1
_NEGATIVES = 3
_TEMPLATES = 1666
# Of every document set at most so many: they are not what memories are made of, and long.
_DOCUMENTS = 500
_LEAST_TEXTS = 3
_START = time.monotonic()


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Everything training reads."""

    groups: Sequence[Group]
    """Claims with their contexts."""
    idf: dict[str, float]
    """Rarity by stem."""
    default_idf: float
    """Rarity of a stem that was never seen."""


def log(text: str) -> None:
    """Print with the minutes since the start."""
    print(f"{(time.monotonic() - _START) / 60:5.1f} min  {text}", flush=True)


def read_corpus(data: Path, *, memories: int = _MEMORIES) -> Corpus:
    """Build all groups, and count how rare words are.

    Args:
        data: The data folder.
        memories: How many memories of Multi-Session Chat to use.
    """
    folder = data / "msc" / "msc_personasummary"
    known = list(read_memories(folder, split="valid"))
    frames = frames_of(known)
    groups = list(
        build_groups(choose_memories(known, memories), frames, source="msc", negatives=_NEGATIVES)
    )
    verifier = data / "verifier"
    for source in (
        read_bump(verifier / "bump", frames),
        read_q_squared(verifier / "q_squared_wow"),
        read_begin(verifier / "begin"),
    ):
        some = list(source)
        random.Random("documents").shuffle(some)
        groups += some[:_DOCUMENTS]
    groups += template_groups(_TEMPLATES)
    idf, default = count_idf(groups)
    return Corpus(groups=groups, idf=idf, default_idf=default)


def choose_memories(known: Sequence[Memory], count: int) -> list[Memory]:
    """Half of them with a number, a name or a place: these are rare here, and matter most.

    Args:
        known: All memories.
        count: How many to take.
    """
    shuffled = list(known)
    random.Random("memories").shuffle(shuffled)
    rich, plain = [], []
    for memory in shuffled:
        words = read_words(memory.fact)
        detailed = words.number.any() or words.capital.any()
        (rich if detailed else plain).append(memory)
    half = min(len(rich), count // 2)
    chosen = rich[:half] + plain[: count - half]
    random.Random("order").shuffle(chosen)
    return chosen


def count_idf(groups: Sequence[Group]) -> tuple[dict[str, float], float]:
    """Inverse document frequency of stems over all distinct turns and true claims."""
    texts = {text for group in groups if group.source != "template" for _, text in group.context}
    texts |= {claim.text for group in groups for claim in group.claims if claim.supported}
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(read_words(text).stems))
    total = math.log(len(texts) + 1)
    idf = {
        word: round(total - math.log(count + 1), 2)
        for word, count in sorted(counts.items())
        if count >= _LEAST_TEXTS
    }
    return idf, round(total - math.log(_LEAST_TEXTS), 2)


def class_weights(examples: Sequence[Example]) -> NDArray[np.float64]:
    """Both classes of a source count alike; a source counts by its size, documents by half."""
    counts = Counter((each.group.source, each.claim.supported) for each in examples)
    weights = [
        (counts[each.group.source, True] + counts[each.group.source, False])
        / (2 * counts[each.group.source, each.claim.supported])
        for each in examples
    ]
    return np.array(weights)


def report(name: str, examples: Sequence[Example], scores: Matrix) -> None:
    """Print AUC by source."""
    for source in sorted({each.group.source for each in examples}):
        rows = [index for index, each in enumerate(examples) if each.group.source == source]
        value = auc(
            [float(scores[row]) for row in rows],
            [examples[row].claim.supported for row in rows],
        )
        log(f"  {name} {source}: AUC {value or 0:.3f} of {len(rows)}")


def calibrate(examples: Sequence[Example], logits: Matrix) -> dict[str, float]:
    """Scale logits to probabilities and choose the threshold, on held-back memories alone."""
    rows = [index for index, each in enumerate(examples) if each.group.source == "msc"]
    labels = np.array([examples[row].claim.supported for row in rows])
    slope, offset = platt(logits[rows].astype(float), labels)
    scores = 1 / (1 + np.exp(-(slope * logits[rows] + offset)))
    # What lacks a detail is never admitted, so it does not bear on the threshold.
    lacking = np.array([examples[row].features.lacks_detail for row in rows])
    band = choose_band(np.where(lacking, 0.0, scores), labels)
    return {"slope": slope, "offset": offset, **band}


def choose_band(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> dict[str, float]:
    """The threshold and the zone around it in which a score decides nothing.

    `tau` is 0.7, what ConsistencyGate asks of a model too, or the first value above it where, with
    as many wrong claims as right ones, at most 15 % of the admitted are wrong, which is what the
    library aims at. Above `high` it is half of that, and below `low` nine in ten are wrong.
    """
    share_wrong = float(labels.sum() / (~labels).sum())
    grid = [step / 100 for step in range(5, 99)]

    def contamination(tau: float) -> float:
        wrong = share_wrong * float((scores[~labels] >= tau).sum())
        right = float((scores[labels] >= tau).sum())
        return wrong / max(wrong + right, 1e-9)

    def clean(tau: float) -> float:
        wrong = share_wrong * float((scores[~labels] < tau).sum())
        right = float((scores[labels] < tau).sum())
        return wrong / max(wrong + right, 1e-9)

    tau = next((each for each in grid if each >= 0.7 and contamination(each) <= 0.15), 0.9)
    high = next((each for each in grid if contamination(each) <= 0.075), 0.9)
    low = next((each for each in reversed(grid) if clean(each) >= 0.9), 0.2)
    return {"tau": tau, "low": min(low, round(tau - 0.01, 2)), "high": max(high, tau)}


def save(
    folder: Path,
    *,
    weights: dict[str, NDArray[np.float16]],
    corpus: Corpus,
    scale: dict[str, float],
) -> None:
    """Write the three files; their digests belong into `assets.PINNED`."""
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
    held: Sequence[Example],
    epochs: int,
) -> tuple[dict[str, NDArray[np.float16]], Matrix]:
    """Train all networks; their weights in half precision, and the mean of their logits.

    Args:
        examples: What to train on.
        counts: How much each of them counts.
        held: What to give logits of.
        epochs: Passes over the examples.
    """
    trained: list[dict[str, Matrix]] = []
    logits: list[Matrix] = []
    for number in range(_NETWORKS):
        latest: list[Matrix] = []

        def after(score: Score, latest: list[Matrix] = latest) -> None:
            latest.append(score(held))
            report("held back", held, latest[-1])

        settings = Settings(epochs=epochs, seed=Settings.seed + number)
        trained.append(train_network(examples, counts, settings=settings, log=log, after=after))
        logits.append(latest[-1])
    weights = {
        name: np.stack([each[name] for each in trained]).astype(np.float16) for name in trained[0]
    }
    mean: Matrix = np.mean(logits, axis=0).astype(np.float32)
    report("held back, together", held, mean)
    return weights, mean


def main(argv: Sequence[str] | None = None) -> None:
    """Build, train, choose the threshold, write."""
    parser = argparse.ArgumentParser(prog="python -m memguard.bench.verifier.train")
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--out", type=Path, required=True, help="folder for the three files")
    parser.add_argument("--cache", type=Path, default=None, help="keep word vectors here")
    parser.add_argument("--epochs", type=int, default=Settings.epochs)
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
    held = [each for each in examples if is_validation(each.group)]
    rest = [each for each in examples if not is_validation(each.group)]
    log(f"features of {len(rest)} training and {len(held)} held-back claims")
    counts = class_weights(rest)
    write_arrays(options.out / CONTROL_FILE, train_control(rest, counts))
    weights, logits = train_networks(rest, counts, held=held, epochs=options.epochs)
    scale = calibrate(held, logits)
    save(options.out, weights=weights, corpus=corpus, scale=scale)
    log(f"wrote {options.out}: {scale}")
    _print_result(options.out, held, logits, scale)


def _print_result(
    folder: Path, held: Sequence[Example], logits: Matrix, scale: Mapping[str, float]
) -> None:
    for name in PINNED:
        log(f"    {name!r}: {hashlib.sha256((folder / name).read_bytes()).hexdigest()!r}")
    msc = [index for index, each in enumerate(held) if each.group.source == "msc"]
    calibration = Calibration(**scale)
    scores = [
        calibration.score(float(logits[index]), lacks_detail=held[index].features.lacks_detail)
        for index in msc
    ]
    labels = [held[index].claim.supported for index in msc]
    figures = admission(scores, labels, tau=calibration.tau)
    log(f"held back at tau, {labels.count(False)} wrong to {labels.count(True)} right claims:")
    log(f"    contamination {figures.contamination}, recall {figures.recall}")


if __name__ == "__main__":
    main()
