"""Figures of corrections, look-ups and audiences.

```bash
python -m benchmarks.reconcile [policy|pairs|lookups|audience|cost|all]
```

The sets were written by hand without a look at the rules (`benchmarks/reconcile/data`). Each figure
has its count and its interval (Wilson, 95 %). `policy` and a part of `lookups` are read by a
scripted model that is always right, so that they measure what follows from its answers; the other
figures need no language model.
"""

import argparse
import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from rich.table import Table

from benchmarks.local.__main__ import Report
from benchmarks.reconcile import audience, cost, lookups, pairs, policy, sets
from memguard.local import LocalEmbeddings

PARTS = ("policy", "pairs", "lookups", "audience", "cost")
T = TypeVar("T")
Rows = list[tuple[str, Sequence[bool], str]]


def _by(
    name: str, items: Sequence[T], group_of: Callable[[T], str], value_of: Callable[[T], bool]
) -> Rows:
    """One row for each group of items."""
    groups = dict.fromkeys(map(group_of, items))
    return [
        (f"{name}, {group}", [value_of(item) for item in items if group_of(item) == group], "")
        for group in groups
    ]


async def report_policy(report: Report) -> None:
    """What becomes of memories if the reader is right."""
    cases = sets.policy_cases()
    embeddings = LocalEmbeddings()
    for recall, encoder in (("every memory is near", None), ("built-in encoder", embeddings)):
        results = [await policy.run_case(case, embeddings=encoder) for case in cases]
        memories = [(r, memory) for r in results for memory in r.case.memories]
        crossing = [r for r in results if len(r.case.languages) > 1]
        rows: Rows = [
            ("everything as it must be", [not r.wrong for r in results], ">= 90 %"),
            (
                "of these, across two languages",
                [not r.wrong for r in crossing],
                "",
            ),
            (
                "memories wrongly superseded",
                [memory.name in r.wrongly_superseded for r, memory in memories],
                "<= 1 %",
            ),
            (
                "memories that the reader saw",
                [memory.name in r.recalled for r, memory in memories],
                "",
            ),
            *_by("right", results, lambda r: r.case.language, lambda r: not r.wrong),
        ]
        if encoder is None:
            rows += _by("right", results, lambda r: r.case.kind, lambda r: not r.wrong)
        report.table(f"Policy: {len(cases)} cases, exact reader, {recall}", rows)
        report.failures(
            f"Policy, {recall}: not as it must be",
            (f"{r.case.id} ({r.case.kind}): {'; '.join(r.wrong)}" for r in results if r.wrong),
        )


async def report_pairs(report: Report) -> None:
    """What the path without a model does to pairs of memories."""
    for name in sets.PAIR_SETS:
        results = await pairs.measure_pairs(sets.pairs(name))
        figures = pairs.pair_figures(results)
        rows: Rows = [
            ("wrongly superseded, of all pairs", figures.wrongly_superseded, "<= 2 %"),
            ("duplicates found", figures.duplicates_found, ">= 60 %"),
            ("duplicates right", figures.duplicates_right, ""),
            ("corrections found", figures.supersedes_found, ""),
            ("traps left alone", figures.traps_safe, ""),
        ]
        for language in sets.LANGUAGES:
            own = pairs.pair_figures([r for r in results if r.pair.language == language])
            rows += [
                (f"{language}: wrongly superseded", own.wrongly_superseded, ""),
                (f"{language}: duplicates found", own.duplicates_found, ""),
                (f"{language}: duplicates right", own.duplicates_right, ""),
                (f"{language}: corrections found", own.supersedes_found, ""),
            ]
        report.table(f"Pairs without a model: {len(results)} of {name}", rows)
        report.failures(
            f"Pairs of {name}: wrong",
            (
                f"{r.pair.id} {r.pair.label}: {r.stored}, {r.new}: {r.pair.stored!r} <- "
                f"{r.pair.new!r}: {r.reason}"
                for r in results
                if r.is_superseded != (r.pair.label == "supersedes")
                or r.is_duplicate != (r.pair.label == "duplicate")
            ),
        )


LOOKUP_RUNS: tuple[tuple[str, lookups.Adjudicator, str], ...] = (
    ("PS, without a model", "local", "ps"),
    ("FC, without a model", "local", "fc"),
    ("PS, exact adjudicator", "exact", "ps"),
)


async def report_lookups(report: Report) -> None:
    """What look-ups, and requests that look like one, have in their prompt."""
    requests = sets.lookups()
    for title, adjudicator, admission in LOOKUP_RUNS:
        results = await lookups.measure_lookups(
            requests, adjudicator=adjudicator, admission=admission
        )
        asked = [r for r in results if r.lookup.is_lookup]
        must = [r for r in asked if r.memory.label == "must"]
        must_not = [r for r in results if r.memory.label == "must_not"]
        others = [r for r in must_not if r.lookup.kind == "not_lookup"]
        stale = [r for r in results if r.lookup.kind == "stale"]
        answers = lookups.answers_wholly(results)
        whole = [(lookup, answers[lookup.id]) for lookup in requests]
        rows: Rows = [
            (
                "look-ups answered wholly",
                [is_right for lookup, is_right in whole if lookup.is_lookup],
                "",
            ),
            ("must: in the prompt", [r.is_present for r in must], ""),
            ("must: in the prompt as it must be", [r.is_right for r in must], ""),
            ("must: recalled", [r.is_recalled for r in must], ""),
            ("must not: in the prompt", [r.is_present for r in must_not], ""),
            (
                "claims in questions about the world",
                [r.is_present for r in others],
                "= 0" if adjudicator == "exact" else "",
            ),
            (
                "of these, as certain",
                [r.presence == "certain" for r in others],
                "= 0" if adjudicator == "exact" else "",
            ),
            (
                "stale value in the prompt",
                [r.is_present for r in stale if r.memory.label == "must_not"],
                "<= 2 %",
            ),
            (
                "current value in the prompt",
                [r.is_present for r in stale if r.memory.label == "must"],
                "",
            ),
            *_by("wholly", whole, lambda item: item[0].kind, lambda item: item[1]),
            *_by("must", must, lambda r: r.lookup.language, lambda r: r.is_right),
        ]
        report.table(f"Look-ups, {title}: {len(requests)} requests", rows)
        report.failures(
            f"Look-ups, {title}: not as it must be",
            (
                f"{r.lookup.id} {r.lookup.kind} {r.memory.label}:{r.memory.shown} is {r.presence} "
                f"[{r.lookup.request}] {r.memory.text!r}: {r.explanation}"
                for r in results
                if not r.is_right
            ),
        )


async def report_audience(report: Report) -> None:
    """Which memories are kept out of a group."""
    results = await audience.measure_audience(sets.audience())
    sensitive = [r for r in results if r.memory.label != "none"]
    others = [r for r in results if r.memory.label == "none"]
    report.table(
        f"Audience: {len(results)} memories",
        (
            ("sensitive: withheld from a group", [r.is_withheld for r in sensitive], ""),
            ("sensitive: by the right topic", [r.has_right_topic for r in sensitive], ""),
            ("others: wrongly withheld", [r.is_withheld for r in others], ""),
            *_by("withheld", sensitive, lambda r: r.memory.label, lambda r: r.is_withheld),
            *_by("withheld", sensitive, lambda r: r.memory.language, lambda r: r.is_withheld),
            *_by("wrongly", others, lambda r: r.memory.language, lambda r: r.is_withheld),
        ),
    )
    report.failures(
        "Audience: wrong",
        (
            f"{r.memory.id} {r.memory.label}: {r.topic or 'none'}: {r.memory.text!r}"
            for r in results
            if r.is_withheld == (r.memory.label == "none")
        ),
    )


async def report_cost(report: Report) -> None:
    """What reconciling a candidate costs."""
    figures = await cost.measure_cost()
    table = Table(title="Cost of a candidate, medians of this run", title_justify="left")
    for column in ("", "value", "target"):
        table.add_column(column)
    own = figures.graph_ms - figures.model_ms
    for name, value, target in (
        ("model calls, with near memories", f"{figures.calls_with_neighbours:.2f}", "<= 1"),
        ("model calls, without", f"{figures.calls_without_neighbours:.2f}", "= 0"),
        ("CPU of the subgraph, ms", f"{figures.graph_ms:.2f}", ""),
        ("CPU of one scripted model call, ms", f"{figures.model_ms:.2f}", ""),
        ("CPU of a graph of three empty nodes, ms", f"{figures.framework_ms:.2f}", ""),
        ("our own CPU: subgraph less the model call, ms", f"{own:.2f}", "<= 4"),
        ("CPU of the write guard without reconcile, ms", f"{figures.guard_ms:.2f}", ""),
        ("CPU of the write guard with it, ms", f"{figures.guard_reconciled_ms:.2f}", ""),
        ("ratio of the two", f"{figures.guard_reconciled_ms / figures.guard_ms:.2f}", ""),
    ):
        table.add_row(name, value, target)
    report.print(table)


async def run(parts: Sequence[str], report: Report) -> None:
    """Print the figures of some parts."""
    reports = {
        "policy": report_policy,
        "pairs": report_pairs,
        "lookups": report_lookups,
        "audience": report_audience,
        "cost": report_cost,
    }
    for part in parts:
        await reports[part](report)


def main() -> None:
    """Measure what was asked for and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=(*PARTS, "all"), default="all")
    parser.add_argument("--failures", action="store_true", help="print every item that failed")
    parser.add_argument("--markdown", action="store_true", help="tables for a page of the docs")
    options = parser.parse_args()
    report = Report(show_failures=options.failures, as_markdown=options.markdown)
    parts = PARTS if options.part == "all" else (options.part,)
    asyncio.run(run(parts, report))


if __name__ == "__main__":
    main()
