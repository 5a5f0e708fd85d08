"""All figures of the path without a language model: `python -m benchmarks.local [--data FOLDER]`.

They come from held-out sets, written by hand without a look at the rules (`benchmarks/local/data`),
and, with `--data`, from questions of LoCoMo. `--set second` takes sets of the same kinds
that were written later. Each figure has its count, its interval (Wilson, 95 %)
and its target. Times are CPU milliseconds of this run, with all threads.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import get_args

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.local import reading, sets, writing
from memguard.calibration.rules import Proportion

Check = Callable[[float], bool]


class Report:
    """Prints tables of figures, and collects what failed."""

    def __init__(self, *, show_failures: bool = False, as_markdown: bool = False) -> None:
        self._out = Console(width=130)
        self._show_failures = show_failures
        self._box = box.MARKDOWN if as_markdown else box.ROUNDED
        self._summary: list[tuple[str, str, list[tuple[str, bool]]]] = []

    def table(self, title: str, rows: Iterable[tuple[str, Sequence[bool], str]]) -> None:
        """A table of proportions.

        Args:
            title: Its title.
            rows: Name, one truth value per item, and target (`>= 85`, `<= 40`, `= 0`, or empty).
        """
        table = Table(title=title, title_justify="left", box=self._box)
        for column in ("", "count", "share [95 %]", "target", ""):
            table.add_column(column, no_wrap=True)
        for name, values, target in rows:
            share = Proportion(count=sum(values), total=len(values))
            count = f"{share.count}/{share.total}"
            table.add_row(name, count, str(share), target, _verdict(share, target))
        self._out.print(table, "")

    def times(self, rows: Sequence[tuple[str, float, float]]) -> None:
        """A table of CPU times.

        Args:
            rows: Name, milliseconds, and the largest allowed.
        """
        if not rows:
            return
        table = Table(title="CPU time, ms in this run", title_justify="left", box=self._box)
        for column in ("", "ms", "target", ""):
            table.add_column(column)
        for name, value, target in rows:
            verdict = "met" if value <= target else "MISSED"
            table.add_row(name, f"{value:.1f}", f"<= {target:.0f}", verdict)
        self._out.print(table, "")

    def summarize(self, name: str, target: str, values: Iterable[tuple[str, bool]]) -> None:
        """Keep a figure for the table by language at the end.

        Args:
            name: Its name.
            target: Its target, as in `table`.
            values: Language and truth value of every item.
        """
        self._summary.append((name, target, list(values)))

    def summary(self) -> None:
        """The table of the kept figures, with their counts by language."""
        if not self._summary:
            return
        table = Table(title="Summary, with counts by language", title_justify="left", box=self._box)
        languages: tuple[str, ...] = get_args(sets.Language)
        for column in ("", "target", "share [95 %]", "count", *languages):
            table.add_column(column, no_wrap=True)
        for name, target, values in self._summary:
            by_language = [[v for v in values if v[0] == language] for language in languages]
            share = Proportion(count=sum(v for _, v in values), total=len(values))
            table.add_row(name, target, str(share), *map(_count, (values, *by_language)))
        self._out.print(table, "")

    def failures(self, title: str, lines: Iterable[str]) -> None:
        """Print what failed, if that was asked for."""
        if self._show_failures:
            self._out.print(f"{title}:", style="bold", markup=False)
            for line in lines:
                self._out.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
            self._out.print("")

    def print(self, table: Table) -> None:
        """Print a table of other figures."""
        table.box = self._box
        self._out.print(table, "")

    def note(self, text: str) -> None:
        """Print one line."""
        self._out.print(f"{text}\n", markup=False)


def _count(values: Sequence[tuple[str, bool]]) -> str:
    return f"{sum(is_true for _, is_true in values)}/{len(values)}" if values else ""


def _verdict(share: Proportion, target: str) -> str:
    if not target or share.value is None:
        return ""
    sign, number = target.removesuffix(" %").split()
    percent = 100 * share.value
    wanted = float(number)
    met = {">=": percent >= wanted, "<=": percent <= wanted, "=": share.count == wanted}[sign]
    return "met" if met else "MISSED"


def main() -> None:
    """Measure everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with locomo/locomo10.json")
    parser.add_argument("--failures", action="store_true", help="print every item that failed")
    parser.add_argument("--markdown", action="store_true", help="tables for a page of the docs")
    parser.add_argument("--only", choices=("read", "locomo", "write", "swaps"), help="one part")
    parser.add_argument("--set", choices=sets.SETS, default="held_out", help="hand-written set")
    options = parser.parse_args()
    chosen: sets.SetName = options.set
    report = Report(show_failures=options.failures, as_markdown=options.markdown)
    report.note(f"Hand-written sets: {chosen}")
    parts = (options.only,) if options.only else ("read", "locomo", "write", "swaps")
    # First of all, because the encoder caches what other measurements embed.
    times: list[tuple[str, float, float]] = []
    if "read" in parts:
        for method, (first, later) in reading.cpu_of_reads(sets.reads(chosen)).items():
            times.append((f"{method}: read of 15 memories, none embedded before", first, 60))
            times.append((f"{method}: read of 15 memories, embedded before", later, 60))
        _report_reads(report, sets.reads(chosen))
    if "locomo" in parts:
        _report_locomo(report, options.data)
    if "write" in parts:
        _report_writing(report, sets.conversations(chosen))
    if "swaps" in parts:
        milliseconds = _report_swaps(report, sets.swaps(chosen))
        times.append(("write: a candidate, its turns new", milliseconds, 25))
    report.summary()
    report.times(times)


def _report_reads(report: Report, reads: Sequence[sets.LabelledRead]) -> None:
    for method in reading.METHODS:
        results = reading.measure_reads(method, reads)
        must = [result for result in results if result.memory.label == "must"]
        must_not = [result for result in results if result.memory.label == "must_not"]
        instructions = [r for r in must_not if r.memory.another_author_instruction]
        safety = [result for result in must if result.memory.safety]
        report.table(
            f"{method}: what enters the prompt, of {len(reads)} reads",
            (
                ("must: all", _admitted(must), ">= 85 %"),
                ("must: safety", _admitted(safety), ">= 100 %"),
                ("must not: all", _admitted(must_not), "<= 40 %"),
                ("must not: another author's instruction", _admitted(instructions), "= 0"),
                *_grouped("must", must, lambda result: result.read.language),
                *_grouped("must: safety", safety, lambda result: result.read.language),
                *_grouped("must not", must_not, lambda result: result.read.language),
                *_grouped("must", must, lambda result: result.read.kind),
                *_grouped("must not", must_not, lambda result: result.read.kind),
            ),
        )
        for name, chosen, target in (
            ("must be in the prompt", must, ">= 85 %"),
            ("safety", safety, ">= 100 %"),
            ("must not be in the prompt", must_not, "<= 40 %"),
            ("another author's instruction", instructions, "= 0"),
        ):
            values = [(result.read.language, result.admitted) for result in chosen]
            report.summarize(f"{method}: {name}", target, values)
        report.failures(
            f"{method}: must be in the prompt and is not, or the reverse",
            (
                f"{r.read.id} {r.memory.label} [{r.read.query}] {r.memory.text!r}: {r.explanation}"
                for r in results
                if r.memory.label != "either" and r.admitted != (r.memory.label == "must")
            ),
        )


def _admitted(results: Iterable[reading.ReadResult]) -> list[bool]:
    return [result.admitted for result in results]


def _grouped(
    name: str,
    results: Sequence[reading.ReadResult],
    group_of: Callable[[reading.ReadResult], str],
) -> list[tuple[str, Sequence[bool], str]]:
    groups = dict.fromkeys(map(group_of, results))
    return [
        (f"{name}, {group}", _admitted(r for r in results if group_of(r) == group), "")
        for group in groups
    ]


def _report_locomo(report: Report, data: Path | None) -> None:
    questions = sets.locomo_questions(data) if data else ()
    if not questions:
        report.note("LoCoMo: not measured, because --data names no folder that contains it")
        return
    for method in reading.METHODS:
        results = reading.measure_questions(method, questions)
        others = [n < r.others_admitted for r in results for n in range(r.others)]
        report.table(
            f"{method}: {len(questions)} questions of LoCoMo, {sets.RECALLED} memories each",
            (
                ("all evidence in the prompt", [not r.lost for r in results], ">= 90 %"),
                ("other memories in the prompt", others, "<= 50 %"),
            ),
        )
        report.failures(
            f"{method}: evidence lost",
            (f"{r.question.text} {', '.join(r.lost)}" for r in results if r.lost),
        )


def _report_writing(report: Report, conversations: Sequence[sets.LabelledConversation]) -> None:
    stored, kept = writing.measure_conversations(conversations)
    right = ("keep", "either")
    verdicts = ("another_author", "retracted", "old_value", "ironic", "hypothetical")
    others = ("fragment", "momentary", "unlabelled")
    languages = dict.fromkeys(text.conversation.language for text in stored)
    report.table(
        f"Writing: what is stored from {len(conversations)} conversations",
        (
            ("the user's own, lasting statement", [t.verdict in right for t in stored], ">= 95 %"),
            ("another author", [t.verdict == "another_author" for t in stored], "= 0"),
            *((name, [t.verdict == name for t in stored], "") for name in verdicts[1:]),
            *((name, [t.verdict == name for t in stored], "") for name in others),
            *(
                (
                    f"own, lasting, {language}",
                    [t.verdict in right for t in stored if t.conversation.language == language],
                    "",
                )
                for language in languages
            ),
        ),
    )
    report.summarize(
        "stored: own, lasting",
        ">= 95 %",
        [(t.conversation.language, t.verdict in right) for t in stored],
    )
    report.summarize(
        "stored: another author",
        "= 0",
        [(t.conversation.language, t.verdict == "another_author") for t in stored],
    )
    report.summarize(
        "statements stored or held",
        ">= 60 %",
        [(k.conversation.language, k.outcome != "lost") for k in kept],
    )
    languages = dict.fromkeys(span.conversation.language for span in kept)
    report.table(
        "Writing: statements that a careful reader would keep",
        (
            ("stored or held", [k.outcome != "lost" for k in kept], ">= 60 %"),
            ("stored", [k.outcome == "stored" for k in kept], ""),
            ("held", [k.outcome == "held" for k in kept], ""),
            *(
                (
                    f"stored or held, {language}",
                    [k.outcome != "lost" for k in kept if k.conversation.language == language],
                    "",
                )
                for language in languages
            ),
        ),
    )
    report.failures(
        "Stored although nobody should",
        (f"{t.conversation.id} {t.verdict}: {t.text!r}" for t in stored if t.verdict not in right),
    )
    report.failures(
        "Held or lost although a careful reader would keep it",
        (
            f"{k.conversation.id} {k.outcome}: {k.span.text!r}"
            for k in kept
            if k.outcome != "stored"
        ),
    )


def _report_swaps(report: Report, pairs: Sequence[sets.SupportPair]) -> float:
    results, milliseconds = writing.measure_swaps(pairs)

    def stored(label: str, *languages: str) -> list[bool]:
        return [
            result.outcome == "stored"
            for result in results
            if result.pair.label == label and (not languages or result.pair.language in languages)
        ]

    others = ("de", "es", "fr", "zh")
    for label, name, target in (
        ("subject_swap", "subject swaps stored", "<= 10 %"),
        ("detail_swap", "detail swaps stored", "<= 20 %"),
        ("true", "true ones stored", ">= 60 %"),
    ):
        values = [
            (r.pair.language, r.outcome == "stored") for r in results if r.pair.label == label
        ]
        report.summarize(name, target, values)
    report.table(
        f"Swaps: what is stored of {len(results)} support pairs",
        (
            ("subject swaps", stored("subject_swap"), "<= 10 %"),
            ("detail swaps of the same turn", stored("detail_swap"), "<= 20 %"),
            ("true, in other words", stored("true"), ">= 60 %"),
            ("subject swaps, en", stored("subject_swap", "en"), ""),
            ("subject swaps, other languages", stored("subject_swap", *others), ""),
            ("detail swaps, en", stored("detail_swap", "en"), ""),
            ("detail swaps, other languages", stored("detail_swap", *others), ""),
            ("true, en", stored("true", "en"), ""),
            ("true, other languages", stored("true", *others), ""),
        ),
    )
    report.failures(
        "Wrongly stored or wrongly not stored",
        (
            f"{r.pair.id} {r.pair.label} {r.outcome}: {r.pair.candidate!r}"
            f" from {' / '.join(turn.content for turn in r.pair.turns)!r}: {r.explanation}"
            for r in results
            if (r.outcome == "stored") != (r.pair.label == "true")
        ),
    )
    return milliseconds


if __name__ == "__main__":
    main()
