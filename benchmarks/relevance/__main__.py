"""Figures of the relevance head: `python -m benchmarks.relevance --data FOLDER`.

Nothing that is measured here was used to train: Multi-Session Chat `test`, LoCoMo, and hand-written
reads in five languages. What is shown is the share of relevant memories, and of others, that score
at least `CLEARLY_OTHER`.
"""

import argparse
import resource
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.relevance.reads import Encoded, recall
from benchmarks.relevance.sets import LabelledQuery, read_chats, read_languages, read_locomo
from memguard.local.encoder import LocalEmbeddings, Matrix
from memguard.local.relevance import CLEARLY_OTHER, DIRECT, RelevanceModel

# The rule before this head: indirect from this cosine on.
_COSINE = 0.22
Score = Callable[[str, Sequence[str]], Matrix]


def figures(reads: Iterable[LabelledQuery], score: Score, *, threshold: float) -> str:
    """One line of figures of a rule."""
    whole: list[bool] = []
    any_of: list[bool] = []
    relevant: list[float] = []
    others: list[float] = []
    direct: list[float] = []
    for read in reads:
        scores = score(read.query, read.texts)
        right = np.array([at in read.relevant for at in range(len(read.texts))])
        admitted = scores >= threshold
        any_of.append(bool(admitted[right].any()))
        whole.append(bool(admitted[right].all()))
        relevant += admitted[right].tolist()
        others += admitted[~right].tolist()
        direct += (scores[~right] >= DIRECT).tolist()
    return (
        f"{len(any_of):5} reads   evidence {np.mean(any_of):4.0%}   all of it {np.mean(whole):4.0%}"
        f"   of relevant memories {np.mean(relevant):4.0%}   others {np.mean(others):4.0%}"
        f"   others direct {np.mean(direct):4.0%}"
    )


def _recalled(reads: Iterable[LabelledQuery], encoded: Encoded) -> list[LabelledQuery]:
    """The same queries with the 15 nearest memories, the relevant ones among them."""
    recalled: list[LabelledQuery] = []
    for read in reads:
        texts = encoded.words(read.texts)
        chosen = recall(encoded.words([read.query])[0], texts, relevant=sorted(read.relevant))
        recalled.append(read.with_texts(chosen))
    return recalled


def _print_group(name: str, reads: Sequence[LabelledQuery], rules: dict[str, Score]) -> None:
    if not reads:
        return
    print(name)
    for rule, score in rules.items():
        threshold = _COSINE if rule == "cosine" else CLEARLY_OTHER
        print(f"  {rule:8} {figures(reads, score, threshold=threshold)}")


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _print_cost(reads: Sequence[LabelledQuery]) -> None:
    model = RelevanceModel(embeddings=LocalEmbeddings(threads=1))
    for read in reads:
        model.score("warm", read.texts)
    start = _cpu()
    for read in reads:
        model.score(read.query, read.texts)
    print(f"CPU of a read of 15 cached memories: {(_cpu() - start) / len(reads) * 1e3:.0f} ms")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    folder: Path | None = parser.parse_args().data
    embeddings = LocalEmbeddings(threads=1)
    encoded = Encoded(embeddings.encoder)
    model = RelevanceModel(embeddings=embeddings)

    def cosine(query: str, texts: Sequence[str]) -> Matrix:
        rows = encoded.words([query, *texts])
        return np.array([row.sentence @ rows[0].sentence for row in rows[1:]], dtype=np.float32)

    rules: dict[str, Score] = {"cosine": cosine, "head": model.score}
    if folder and (folder / "locomo").is_dir():
        locomo = _recalled(read_locomo(folder), encoded)
        _print_group("LoCoMo, 15 memories", locomo, rules)
        for group in sorted({read.group for read in locomo}):
            _print_group(f"  {group}", [r for r in locomo if r.group == group], rules)
        _print_cost(locomo[:60])
    if folder and (folder / "msc").is_dir():
        chats = read_chats(folder / "msc" / "msc_personasummary", split="test", dialogues=30)
        _print_group("Multi-Session Chat, test", _recalled(chats, encoded), rules)
    languages = list(read_languages())
    for language in ("en", "de", "es", "fr", "zh"):
        reads = [read for read in languages if read.group == language]
        _print_group(f"Hand-written, {language}", reads, rules)


if __name__ == "__main__":
    main()
