"""Claims with documents as context: edited summaries and grounded dialogue.

BUMP (Ma et al., 2023), MIT. Wizard of Wikipedia rows of Q2 (Honovich et al., 2021), MIT, Facebook.
BEGIN (Dziri et al., 2022): CC BY 4.0 (Wizard of Wikipedia, CMU DoG) and CDLA-Sharing 1.0
(TopicalChat).
"""

import csv
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.verifier.corruptor import Fact, corrupt
from benchmarks.verifier.frames import Frames
from benchmarks.verifier.pairs import Claim, Group, correct, wrong
from memguard.local.verifier.words import read_words

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
# An article is cut down to the sentences nearest to the claim: a memory has a few turns, not pages.
_BEST_SENTENCES = 3
# Maximum number of words of a claim.
_LONGEST = 40
_KNOWLEDGE_SENTENCES = 4


def read_bump(folder: Path, frames: Frames) -> Iterator[Group]:
    """Summary sentences as written, as edited by people, and as changed by the corruptor.

    Args:
        folder: The `bump` folder.
        frames: Words that occur in the same contexts.
    """
    for file in ("task1_dataset.json", "task2_dataset.json"):
        rows = json.loads((folder / file).read_text(encoding="utf-8"))
        for row in rows:
            article = _sentences(row["article"])
            pairs = _edited(_sentences(row["reference_summary"]), _sentences(row["edited_summary"]))
            for true, false in pairs:
                # Seeded by the row, so that one row more or less does not change the others.
                draw = random.Random(f"bump/{row['id']}/{true}")
                context = _closest(true, article, draw)
                claims: list[Claim] = [correct(true), wrong(false, "edited")]
                fact = Fact(text=true, window="\n".join(context), subject="", other="")
                for _ in range(2):
                    changed = corrupt(fact, frames, draw, skip=frozenset({"unstated"}))
                    if changed is not None and changed[0] not in {claim.text for claim in claims}:
                        claims.append(wrong(*changed))
                yield Group(
                    source="bump",
                    origin=f"bump/{row['article_id']}",
                    context=tuple(("", text) for text in context),
                    claims=tuple(claims),
                )


def read_q_squared(folder: Path) -> Iterator[Group]:
    """Answers of two dialogue models with the knowledge they were based on.

    Args:
        folder: The `q_squared_wow` folder.
    """
    with (folder / "cross_annotation.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            claims = tuple(
                # Here 1 means inconsistent: the files of that name hold these answers.
                Claim(text=text, supported=label == "0", kind="generated")
                for text, label in (
                    (row["dodeca_response"], row["dodeca_label"]),
                    (row["memnet_response"], row["memnet_label"]),
                )
                if label in {"0", "1"} and _short(text)
            )
            if claims:
                yield _grounded("q_squared", row["knowledge"], claims)


def read_begin(folder: Path) -> Iterator[Group]:
    """Model answers with their knowledge, labelled by whether they can be attributed to it.

    Args:
        folder: The `begin` folder.
    """
    for name in (
        "begin_dev_wow.tsv",
        "begin_test_wow.tsv",
        "begin_dev_cmu.tsv",
        "begin_dev_tc.tsv",
    ):
        with (folder / name).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                label = row["begin_label"]
                # A generic answer states nothing that could be judged.
                if label == "Generic" or not label or not _short(row["response"]):
                    continue
                claim = Claim(
                    text=row["response"],
                    supported=label == "Fully attributable",
                    kind="generated",
                )
                yield _grounded("begin", row["knowledge"], (claim,))


def _grounded(source: str, knowledge: str, claims: tuple[Claim, ...]) -> Group:
    sentences = _sentences(knowledge)
    draw = random.Random(f"{source}/{knowledge}/{claims[0].text}")
    if len(sentences) > _KNOWLEDGE_SENTENCES:
        sentences = _closest(claims[0].text, sentences, draw)
    return Group(
        source=source,
        origin=f"{source}/{knowledge[:60]}",
        context=tuple(("", text) for text in sentences),
        claims=claims,
    )


def _short(text: str) -> bool:
    return 3 <= len(read_words(text)) <= _LONGEST


def _sentences(text: str) -> list[str]:
    sentences = [" ".join(sentence.split()) for sentence in _SENTENCE.split(text)]
    return [sentence for sentence in sentences if sentence.count(" ") >= 2]


def _edited(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of an original and an edited sentence; none if sentences were added or removed."""
    if len(before) != len(after):
        return []
    return [
        (original, edited)
        for original, edited in zip(before, after, strict=True)
        if original != edited and _short(original) and _short(edited)
    ]


def _closest(claim: str, article: Sequence[str], draw: random.Random) -> list[str]:
    """The sentences most similar to the claim and a random one, in the article's order."""
    wanted = Counter(read_words(claim).content)
    overlap = [sum((wanted & Counter(read_words(text).content)).values()) for text in article]
    best = sorted(range(len(article)), key=lambda index: (-overlap[index], index))
    chosen = set(best[:_BEST_SENTENCES])
    rest = [index for index in range(len(article)) if index not in chosen]
    # A sentence that does not matter, so that the network learns to ignore one.
    if rest:
        chosen.add(draw.choice(rest))
    return [article[index] for index in sorted(chosen)]
