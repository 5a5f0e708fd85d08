"""How good the support verifier is: `python -m memguard.bench.verifier`.

Prints, for LoCoMo-R, MSC-R and two hand-written sets (English, German): AUC, contamination (wrong
among admitted) and recall at the shipped threshold with Wilson intervals, beside WriteAll, the
cosine of the best turn and a control that never sees the context; then how many wrong claims of
each kind get in, and the CPU time of a pair whose turns are cached. Contamination is counted with
as many wrong claims as right ones. Data sets are read in place; what is missing is skipped.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from memguard.bench.verifier.control import control_scores
from memguard.bench.verifier.figures import Share, admission, auc
from memguard.bench.verifier.frames import Frames
from memguard.bench.verifier.pairs import Claim, Group
from memguard.bench.verifier.sets import (
    DETAILS,
    data_folder,
    handmade_groups,
    locomo_groups,
    msc_groups,
    training_frames,
)
from memguard.local import MiniLmEncoder, SupportVerifier
from memguard.local.verifier.encoded import word_vectors
from memguard.schema.memory import Turn

_MSC = Path("msc", "msc_personasummary")
_LOCOMO = Path("locomo", "locomo10.json")


@dataclass(frozen=True, kw_only=True)
class Scored:
    """One claim and what each judge said of it."""

    group: Group
    """Where it is from."""
    claim: Claim
    """The claim."""
    support: float
    """The verifier's score."""
    cosine: float
    """Cosine with the best turn."""
    control: float
    """The control's score."""
    cpu: float
    """CPU seconds of the verifier, its turns cached."""


def turns_of(group: Group) -> list[Turn]:
    """The context as turns; `User` and `Assistant` are roles and not names."""
    return [
        Turn(
            id=str(index),
            role="assistant" if label == "Assistant" else "user",
            content=text,
            speaker="" if label in {"User", "Assistant"} else label,
        )
        for index, (label, text) in enumerate(group.context)
    ]


def score_groups(
    groups: Sequence[Group], *, verifier: SupportVerifier, encoder: MiniLmEncoder
) -> list[Scored]:
    """Every claim by every judge."""
    claims = [(group, claim) for group in groups for claim in group.claims]
    control = control_scores(word_vectors(encoder, [claim.text for _, claim in claims]))
    cosines = best_cosines(groups, encoder=encoder)
    scored: list[Scored] = []
    for (group, claim), by_control in zip(claims, control, strict=True):
        turns = turns_of(group)
        # The turns are in the cache from here on, as they are in an agent that judges as it goes.
        verifier.prepare(context=turns)
        start = time.process_time()
        support = verifier.score(candidate=claim.text, context=turns)
        cpu = time.process_time() - start
        scored.append(
            Scored(
                group=group,
                claim=claim,
                support=support,
                cosine=cosines[id(claim)],
                control=by_control,
                cpu=cpu,
            )
        )
    return scored


def best_cosines(groups: Sequence[Group], *, encoder: MiniLmEncoder) -> dict[int, float]:
    """Cosine of every claim with its best turn, by the claim's identity."""
    cosines: dict[int, float] = {}
    for group in groups:
        texts = [claim.text for claim in group.claims] + [text for _, text in group.context]
        rows = encoder.encode(texts)
        size = len(group.claims)
        best = (rows[:size] @ rows[size:].T).max(axis=1)
        cosines |= {id(c): float(value) for c, value in zip(group.claims, best, strict=True)}
    return cosines


def main_table(sets: Sequence[tuple[str, Sequence[Scored]]], *, tau: float) -> Table:
    """AUC, contamination and recall of every judge on every set."""
    table = Table("set", "judge", "AUC", "contamination", "recall", "admitted at")
    for name, scored in sets:
        labels = [each.claim.supported for each in scored]
        recall = admission([each.support for each in scored], labels, tau=tau).recall.value or 0.0
        judges: tuple[tuple[str, Callable[[Scored], float]], ...] = (
            ("verifier", lambda each: each.support),
            ("WriteAll", lambda _: 1.0),
            ("cosine, best turn", lambda each: each.cosine),
            ("fact alone (control)", lambda each: each.control),
        )
        for judge, score in judges:
            values = [score(each) for each in scored]
            own = tau if judge == "verifier" else _same_recall(values, labels, recall)
            figures = admission(values, labels, tau=own)
            how = f"{own:.2f}" if judge == "verifier" else "same recall"
            table.add_row(
                f"{name}, {len(scored)}",
                judge,
                f"{auc(values, labels) or 0:.3f}",
                str(figures.contamination),
                str(figures.recall),
                "all" if judge == "WriteAll" else how,
            )
    return table


def _same_recall(values: Sequence[float], labels: Sequence[bool], recall: float) -> float:
    good = sorted((v for v, label in zip(values, labels, strict=True) if label), reverse=True)
    return good[max(0, min(len(good), round(recall * len(good))) - 1)]


def kind_table(sets: Sequence[tuple[str, Sequence[Scored]]], *, tau: float) -> Table:
    """Share of wrong claims admitted, by what was changed."""
    table = Table("changed", *(name for name, _ in sets), title="wrong claims admitted")
    kinds = sorted({each.claim.kind for _, scored in sets for each in scored} - {"correct"})
    for kind in kinds:
        cells: list[str] = []
        for _, scored in sets:
            own = [each for each in scored if each.claim.kind == kind]
            passed = sum(each.support >= tau for each in own)
            cells.append(f"{Share(hits=passed, total=len(own))} of {len(own)}")
        table.add_row(kind, *cells)
    return table


def threshold_table(sets: Sequence[tuple[str, Sequence[Scored]]]) -> Table:
    """Contamination and recall as the threshold moves."""
    table = Table("threshold", *(name for name, _ in sets), title="contamination / recall, %")
    for tau in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        cells: list[str] = []
        for _, scored in sets:
            labels = [each.claim.supported for each in scored]
            figures = admission([each.support for each in scored], labels, tau=tau)
            cells.append(
                " / ".join(_percent(each) for each in (figures.contamination, figures.recall))
            )
        table.add_row(f"{tau:.2f}", *cells)
    return table


def _percent(share: Share) -> str:
    return "-" if share.value is None else f"{100 * share.value:.0f}"


def load_sets(console: Console, *, frames: Frames | None) -> list[tuple[str, list[Group]]]:
    """The sets that are here; says which are not and why."""
    data = data_folder()
    sets: list[tuple[str, list[Group]]] = []
    if frames is None:
        console.print(f"LoCoMo-R and MSC-R skipped: {str(data / _MSC)!r} is missing")
    else:
        if (data / _LOCOMO).is_file():
            sets.append(("LoCoMo-R", locomo_groups(data / _LOCOMO, frames)))
            details = locomo_groups(data / _LOCOMO, frames, weights=DETAILS)
            sets.append(("LoCoMo details", details))
        else:
            console.print(f"LoCoMo-R skipped: {str(data / _LOCOMO)!r} is missing")
        sets.append(("MSC-R", msc_groups(data / _MSC, frames)))
    return [
        *sets,
        ("hand, English", handmade_groups("en")),
        ("hand, German", handmade_groups("de")),
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Judge and print."""
    parser = argparse.ArgumentParser(prog="python -m memguard.bench.verifier")
    parser.add_argument("--quick", action="store_true", help="the hand-written sets alone")
    options = parser.parse_args(argv)

    console = Console()
    data = data_folder()
    there = (data / _MSC).is_dir() and not options.quick
    frames = training_frames(data / _MSC) if there else None
    loaded = load_sets(console, frames=frames)
    encoder = MiniLmEncoder(threads=1)
    verifier = SupportVerifier(encoder=encoder)
    verifier.warm()
    sets = [
        (name, score_groups(groups, verifier=verifier, encoder=encoder)) for name, groups in loaded
    ]
    console.print(f"verifier {verifier.version}, tau {verifier.tau:.2f}")
    console.print(main_table(sets, tau=verifier.tau))
    console.print(kind_table(sets, tau=verifier.tau))
    console.print(threshold_table(sets))
    times = [1000 * each.cpu for _, scored in sets for each in scored]
    console.print(
        f"CPU per pair, turns cached: median {np.median(times):.1f} ms, "
        f"95th percentile {np.quantile(times, 0.95):.1f} ms, one thread"
    )


if __name__ == "__main__":
    main()
