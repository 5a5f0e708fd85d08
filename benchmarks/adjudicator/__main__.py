"""Evaluation of the local adjudicator: `python -m benchmarks.adjudicator --data FOLDER`.

On MemSyco-Bench: the temporality of outdated and current memories of `valid_memory_selection`, and
the permissions of all memories by task. On PersistBench: the permissions by failure type. No model
is called. The rules were not tuned on these sets, but sample rows were read before the rules were
written, to learn their form. Missing sets are skipped.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.table import Table

from benchmarks.adjudicator.judged import AdjudicatedMemory, judge
from benchmarks.adjudicator.sets import LabelledRead, memsyco, persistbench
from memguard.calibration.rules import Proportion
from memguard.local.adjudicator import LocalAdjudicator
from memguard.schema.units import Permission, Scheme, Temporal

WANTED: dict[str, tuple[Permission, ...]] = {
    "ignore_as_evidence": ("DENY", "MENTION_VIEW"),
    "constrain_to_scope": ("DENY", "CONTEXT", "CONTEXT_UNCERTAIN"),
    "defer_to_evidence": ("DENY", "MENTION_VIEW", "CONTEXT_UNCERTAIN"),
    "use": ("APPLY_CONSTRAINT", "PERSONALIZE"),
}
"""Permissions that comply with each policy of MemSyco-Bench, in our reading of it."""

SHORT: dict[Permission, str] = {
    "APPLY_CONSTRAINT": "must",
    "PERSONALIZE": "pers.",
    "MENTION_VIEW": "view",
    "CONTEXT": "ctx",
    "CONTEXT_UNCERTAIN": "unc.",
    "DENY": "deny",
}
"""Column titles of the permissions."""

JudgedReads = list[tuple[LabelledRead, list[AdjudicatedMemory]]]


def main() -> None:
    """Evaluate on both sets and print the tables."""
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
            # CPU time, because other processes of the machine distort wall time.
            start = time.process_time()
            judged = [
                (row, judge(row, adjudicator=adjudicator, scheme=scheme))
                for row in _limited(rows, options.limit)
            ]
            if not judged:
                out.print(f"{title}: no data at {folder}")
                continue
            milliseconds = (time.process_time() - start) / len(judged) * 1000
            if title == "MemSyco":
                _print_temporal(out, judged, title=f"{name}: outdated and current memories")
            _print_permissions(out, judged, title=f"{name}: {title}, memories by permission")
            out.print(f"{len(judged)} reads, {milliseconds:.0f} ms CPU each, embedding included\n")


def _limited(rows: Iterable[LabelledRead], limit: int | None) -> Iterable[LabelledRead]:
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row.group] += 1
        if limit is None or counts[row.group] <= limit:
            yield row


def _print_temporal(out: Console, judged: JudgedReads, *, title: str) -> None:
    """The confusion matrix of `valid_memory_selection`: judged temporality by label."""
    selection = [memories for row, memories in judged if row.group == "valid_memory_selection"]
    table = Table(title=title, title_justify="left")
    verdicts: tuple[Temporal, ...] = get_args(Temporal)
    # Columns for all values, so that the tables of two runs can be compared.
    for column in ("label", *verdicts, "kept out of the prompt"):
        table.add_column(column)
    for label in ("outdated", "current"):
        labelled = [memory for row in selection for memory in row if memory.label == label]
        counts = Counter(memory.temporal for memory in labelled)
        denied = sum(memory.permission == "DENY" for memory in labelled)
        cells = [str(counts[verdict]) for verdict in verdicts]
        table.add_row(label, *cells, _share(denied, len(labelled)))
    out.print(table)


def _print_permissions(out: Console, judged: JudgedReads, *, title: str) -> None:
    table = Table(title=title, title_justify="left")
    permissions: tuple[Permission, ...] = get_args(Permission)
    names = (SHORT[permission] for permission in permissions)
    for column in ("group", *names, "in the prompt", "as the task asks"):
        table.add_column(column, no_wrap=True)
    for group in dict.fromkeys(row.group for row, _ in judged):
        rows = [(row, memories) for row, memories in judged if row.group == group]
        memories = [memory for _, row_memories in rows for memory in row_memories]
        counts = Counter(memory.permission for memory in memories)
        admitted = len(memories) - counts["DENY"]
        wanted = WANTED.get(rows[0][0].policy, ())
        right = sum(counts[permission] for permission in wanted)
        table.add_row(
            group,
            *(str(counts[permission]) for permission in permissions),
            _share(admitted, len(memories)),
            _share(right, len(memories)) if wanted else "",
        )
    out.print(table)


def _share(count: int, of: int) -> str:
    return f"{count}/{of} {Proportion(count=count, total=of)}"


if __name__ == "__main__":
    main()
