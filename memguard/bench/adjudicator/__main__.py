"""How the local adjudicator does: `python -m memguard.bench.adjudicator --data FOLDER`.

Against MemSyco-Bench: outdated and current memories of `valid_memory_selection`, and for each task
what its memories may be used for. Against PersistBench: the same by failure type. No model is
asked. No figure of these sets chose a rule, but sample rows of them were read before the rules were
written, to learn their form. Data is read in place; what is missing is skipped.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.table import Table

from memguard.bench.adjudicator.judged import JudgedMemory, judge
from memguard.bench.adjudicator.sets import Labelled, memsyco, persistbench
from memguard.bench.verifier.figures import Share
from memguard.local.adjudicator import LocalAdjudicator
from memguard.schema.permissions import Permission
from memguard.schema.units import Scheme, Temporal

WANTED: dict[str, tuple[Permission, ...]] = {
    "ignore_as_evidence": ("DENY", "MENTION_VIEW"),
    "constrain_to_scope": ("DENY", "CONTEXT", "CONTEXT_UNCERTAIN"),
    "defer_to_evidence": ("DENY", "MENTION_VIEW", "CONTEXT_UNCERTAIN"),
    "use": ("APPLY_CONSTRAINT", "PERSONALIZE"),
}
"""Permissions that carry out what a task of MemSyco asks for. Our reading of its policies."""

SHORT: dict[Permission, str] = {
    "APPLY_CONSTRAINT": "must",
    "PERSONALIZE": "pers.",
    "MENTION_VIEW": "view",
    "CONTEXT": "ctx",
    "CONTEXT_UNCERTAIN": "unc.",
    "DENY": "deny",
}
"""Permissions as columns."""

Judged = list[tuple[Labelled, list[JudgedMemory]]]


def main() -> None:
    """Judge both sets and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="where the data sets are")
    parser.add_argument("--limit", type=int, default=None, help="rows of each group")
    options = parser.parse_args()
    folder: Path = options.data
    adjudicator = LocalAdjudicator()
    out = Console(width=120)
    schemes: tuple[tuple[Scheme, str], ...] = (("units", "PS"), ("factors", "FC"))
    for scheme, name in schemes:
        for rows, title in ((memsyco(folder), "MemSyco"), (persistbench(folder), "PersistBench")):
            began = time.process_time()
            judged = [
                (row, judge(row, adjudicator=adjudicator, scheme=scheme))
                for row in _limited(rows, options.limit)
            ]
            if not judged:
                out.print(f"{title}: no data at {folder}")
                continue
            each = (time.process_time() - began) / len(judged) * 1000
            if title == "MemSyco":
                _print_temporal(out, judged, title=f"{name}: outdated and current memories")
            _print_permissions(out, judged, title=f"{name}: {title}, memories by permission")
            out.print(f"{len(judged)} reads, {each:.0f} ms CPU each, embedding included\n")


def _limited(rows: Iterable[Labelled], limit: int | None) -> Iterable[Labelled]:
    seen: Counter[str] = Counter()
    for row in rows:
        seen[row.group] += 1
        if limit is None or seen[row.group] <= limit:
            yield row


def _print_temporal(out: Console, judged: Judged, *, title: str) -> None:
    """The confusion of `valid_memory_selection`: label by what was judged."""
    memories = [
        memory for row, found in judged if row.group == "valid_memory_selection" for memory in found
    ]
    table = Table(title=title, title_justify="left")
    verdicts: tuple[Temporal, ...] = get_args(Temporal)
    for column in ("label", *verdicts, "kept out of the prompt"):
        table.add_column(column)
    for label in ("outdated", "current"):
        own = [memory for memory in memories if memory.label == label]
        counts = Counter(memory.temporal for memory in own)
        denied = sum(memory.permission == "DENY" for memory in own)
        cells = [str(counts[verdict]) for verdict in verdicts]
        table.add_row(label, *cells, _share(denied, len(own)))
    out.print(table)


def _print_permissions(out: Console, judged: Judged, *, title: str) -> None:
    table = Table(title=title, title_justify="left")
    permissions: tuple[Permission, ...] = get_args(Permission)
    names = (SHORT[permission] for permission in permissions)
    for column in ("group", *names, "in the prompt", "as the task asks"):
        table.add_column(column, no_wrap=True)
    for group in dict.fromkeys(row.group for row, _ in judged):
        rows = [(row, found) for row, found in judged if row.group == group]
        memories = [memory for _, found in rows for memory in found]
        counts = Counter(memory.permission for memory in memories)
        shown = len(memories) - counts["DENY"]
        wanted = WANTED.get(rows[0][0].policy, ())
        right = sum(counts[permission] for permission in wanted)
        table.add_row(
            group,
            *(str(counts[permission]) for permission in permissions),
            _share(shown, len(memories)),
            _share(right, len(memories)) if wanted else "",
        )
    out.print(table)


def _share(count: int, of: int) -> str:
    return f"{count}/{of} {Share(hits=count, total=of)}"


if __name__ == "__main__":
    main()
