"""Measures whose fact the judge thinks it is: `python -m benchmarks.verifier.swaps --data FOLDER`.

Two sources of candidates that have words of their turn and are wrong all the same. `subject`: what
the turn says of one person is given to another. `detail`: a detail of the turn is given to another
part of it. The hand-written ones are in `data/owners.jsonl`, with a split for development and one
that no rule was written on. The others are made by rule from sentences of Multi-Session Chat.
"""

import json
import random
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from benchmarks.verifier.person import inflect
from memguard.local.owners import USER, WORLD, split_clauses
from memguard.local.owners.words import RELATIONS
from memguard.schema.memory import Turn

if TYPE_CHECKING:
    from memguard.local import SupportVerifier

Kind = Literal["true", "subject", "detail"]
KINDS: tuple[Kind, ...] = ("true", "subject", "detail")
GOALS = {"true": ">= 60 %", "subject": "<= 10 %", "detail": "<= 20 %"}
"""What share of each kind should be admitted."""

_SESSIONS = (1, 2, 3, 4)
_PER_SPLIT = 150
_RELATION = re.compile(
    r"(?:^|[.!?] +)(My (?:\w+ )?(?:" + "|".join(RELATIONS["en"]) + r")) "
    r"((?:is|was|has|works|lives|loves|likes|plays|teaches|works|owns|had|hates|makes|runs|does"
    r"|comes|died|moved|passed|just|also|never|always)\b[^.!?]{8,80})[.!]"
)
_FIRST = re.compile(r"(?:^|[.!?] +)(I (?!\w+n't\b)\w+ [^.!?,]{8,60})[.!]")
_UNRESOLVED = re.compile(r"\b(?:it|that|this|there|them|you|your|too|either|one|he|she|him|her)\b")

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A candidate with its turns."""

    source: str
    """`written` or `msc`."""
    split: str
    """`dev` or `test`; `valid` or `test` of Multi-Session Chat."""
    language: str
    turns: tuple[Turn, ...]
    candidate: str
    kind: Kind


def written_pairs() -> list[Pair]:
    """The pairs written by hand, in the order of the file."""
    file = resources.files("benchmarks.verifier").joinpath("data", "owners.jsonl")
    pairs: list[Pair] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        turns = tuple(
            Turn(
                id=str(index),
                role="assistant" if label == "Assistant" else "user",
                content=text,
                speaker="" if label in {"User", "Assistant"} else label,
            )
            for index, (label, text) in enumerate(row["turns"])
        )
        pairs += [
            Pair(
                source="written",
                split=row["split"],
                language=row["language"],
                turns=turns,
                candidate=candidate,
                kind=kind,
            )
            for kind in KINDS
            for candidate in row[kind]
        ]
    return pairs


def chat_pairs(folder: Path, *, split: str, limit: int = _PER_SPLIT) -> list[Pair]:
    """Pairs from turns of Multi-Session Chat in which a relation of the speaker does something.

    `My wife works as a nurse` is true of the user's wife, and a subject swap of the user. The turn
    is the whole turn as written, with what else it says; a sentence about the speaker from another
    dialogue is put before it, and swapped to the relation.

    Args:
        folder: `msc_personasummary`.
        split: `valid` or `test`.
        limit: Maximum number of turns.
    """
    texts = list(dict.fromkeys(_texts(folder, split=split)))
    random.Random(f"swaps/{split}").shuffle(texts)
    first = [hit[1] for text in texts if (hit := _FIRST.search(text)) and _stands_alone(hit[1])]
    first = [sentence for sentence in first if {USER} == _owners(sentence)]
    relations = [(text, hit) for text in texts if (hit := _RELATION.search(text))]
    relations = [(text, hit) for text, hit in relations if _stands_alone(hit[2])][:limit]
    pairs: list[Pair] = []
    for index, (text, hit) in enumerate(relations):
        relation, predicate = hit[1].removeprefix("My "), hit[2]
        own = first[index % len(first)]
        verb, _, rest = own.removeprefix("I ").partition(" ")
        said = f"{inflect(verb)} {_third(rest)}"
        turns = (Turn(id="1", role="user", content=f"{own}. {text}"),)
        candidates: list[tuple[Kind, str]] = [
            ("true", f"The user's {relation} {_third(predicate)}."),
            ("true", f"The user {said}."),
            ("subject", f"The user {_third(predicate)}."),
            ("subject", f"The user's {relation} {said}."),
        ]
        pairs += [
            Pair(source="msc", split=split, language="en", turns=turns, candidate=text_, kind=kind)
            for kind, text_ in candidates
        ]
    return pairs


def _texts(folder: Path, *, split: str) -> Iterator[str]:
    for session in _SESSIONS:
        path = folder / f"session_{session}" / f"{split}.txt"
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                for turn in json.loads(line)["dialog"]:
                    yield " ".join(turn["text"].replace("\u2019", "'").split())


def _stands_alone(text: str) -> bool:
    return not _UNRESOLVED.search(text)


def _owners(text: str) -> set[str]:
    return {clause.owner for clause in split_clauses(text)} - {WORLD}


def _third(text: str) -> str:
    """`my garden` as `the user's garden`: who has it must stay as it was."""
    text = re.sub(r"\b(?:my|our)\b", "the user's", text)
    return re.sub(r"\b(?:me|us|I|we)\b", "the user", text)


def measure(verifier: "SupportVerifier", pairs: Sequence[Pair]) -> list[tuple[Pair, bool, float]]:
    """For each pair, whether it is admitted, and the CPU seconds with its turns cached."""
    results: list[tuple[Pair, bool, float]] = []
    for pair in pairs:
        verifier.prepare(context=pair.turns)
        start = time.process_time()
        judgement = verifier.judge(candidate=pair.candidate, context=pair.turns)
        seconds = time.process_time() - start
        admitted = judgement.supported and judgement.ruling != "inconclusive"
        results.append((pair, admitted, seconds))
    return results


@app.command()
def swaps(
    data: Annotated[
        Path | None,
        typer.Option("--data", envvar="MEMGUARD_DATA", help="Folder with msc/msc_personasummary."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="Turns of each split.")] = _PER_SPLIT,
    failures: Annotated[
        bool, typer.Option("--failures", help="Print what is wrong in the development pairs.")
    ] = False,
) -> None:
    """Measure what share of true and of swapped candidates the local judge admits."""
    from memguard.local import MiniLmEncoder, SupportVerifier

    pairs = written_pairs()
    folder = data / "msc" / "msc_personasummary" if data else None
    if folder is not None and folder.is_dir():
        pairs += chat_pairs(folder, split="valid", limit=limit)
        pairs += chat_pairs(folder, split="test", limit=limit)
    else:
        typer.echo("Multi-Session Chat is skipped: name its folder with --data FOLDER", err=True)
    verifier = SupportVerifier(encoder=MiniLmEncoder(threads=1))
    verifier.warm()
    results = measure(verifier, pairs)
    _print_shares(results)
    seconds = sorted(taken for _, _, taken in results)
    typer.echo(f"CPU: median {1000 * seconds[len(seconds) // 2]:.0f} ms for a candidate")
    if failures:
        for pair, admitted, _ in results:
            if pair.split != "test" and admitted != (pair.kind == "true"):
                source = " / ".join(turn.content for turn in pair.turns)
                typer.echo(f"{pair.kind:8}{source} -> {pair.candidate}")


def _print_shares(results: Sequence[tuple[Pair, bool, float]]) -> None:
    groups: defaultdict[tuple[str, str, str], defaultdict[Kind, list[bool]]]
    groups = defaultdict(lambda: defaultdict(list))
    for pair, admitted, _ in results:
        language = "en" if pair.language == "en" else "de es fr zh"
        groups[pair.source, pair.split, language][pair.kind].append(admitted)
    goals = "".join(f"{kind} ({GOALS[kind]})".rjust(26) for kind in KINDS)
    typer.echo(f"{'admitted':28}{goals}")
    for (source, split, language), by_kind in groups.items():
        cells = ""
        for kind in KINDS:
            flags = by_kind[kind]
            cell = f"{100 * sum(flags) / len(flags):.0f} % of {len(flags)}" if flags else "-"
            cells += cell.rjust(26)
        typer.echo(f"{source + ' ' + split + ', ' + language:28}{cells}")


if __name__ == "__main__":
    app(prog_name="python -m benchmarks.verifier.swaps")
