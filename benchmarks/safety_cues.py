"""Recall and false alarms of the safety cues, per language: `python -m benchmarks.safety_cues`.

The sentences were written for memguard, in `tests/data/safety_cues.json`: for each language some
that state an allergy, a medication, an operation, a pregnancy or a disability, and some with the
same words in another meaning. They are the sentences of one author, and the cues were revised with
them in view. Those of `--file tests/data/safety_cues_second.json` were written afterwards, and
`docs/guides/local.md` says what the cues made of them before they were extended to them.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from memguard.local.safety import looks_like_safety

_DATA = Path(__file__).parents[1] / "tests" / "data"
SENTENCES = _DATA / "safety_cues.json"
SECOND = _DATA / "safety_cues_second.json"


@dataclass(frozen=True, kw_only=True)
class CueFigures:
    """The sentences of one language that the cues judge wrongly."""

    language: str
    safety: int
    harmless: int
    missed: tuple[str, ...]
    false_alarms: tuple[str, ...]

    @property
    def recall(self) -> float:
        """Share of the safety sentences that are recognized."""
        return 1 - len(self.missed) / self.safety

    @property
    def alarm_rate(self) -> float:
        """Share of the harmless sentences that are taken for safety."""
        return len(self.false_alarms) / self.harmless


def measure_cues(path: Path = SENTENCES) -> tuple[CueFigures, ...]:
    """The figures of every language in a file of sentences."""
    sets: dict[str, dict[str, list[str]]] = json.loads(path.read_text(encoding="utf-8"))
    return tuple(
        CueFigures(
            language=language,
            safety=len(texts["safety"]),
            harmless=len(texts["harmless"]),
            missed=tuple(text for text in texts["safety"] if not looks_like_safety(text)),
            false_alarms=tuple(text for text in texts["harmless"] if looks_like_safety(text)),
        )
        for language, texts in sets.items()
    )


def main() -> None:
    """Print one line per language, and the sentences that were judged wrongly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=Path, default=SENTENCES, help="Sentences of your own.")
    rows = measure_cues(parser.parse_args().file)
    table = Table("language", "safety", "recognized", "harmless", "false alarms")
    for row in rows:
        alarms = f"{row.alarm_rate:.0%}"
        table.add_row(row.language, str(row.safety), f"{row.recall:.0%}", str(row.harmless), alarms)
    out = Console()
    out.print(table)
    for row in rows:
        for kind, texts in (("missed", row.missed), ("false alarm", row.false_alarms)):
            for text in texts:
                out.print(f"{row.language} {kind}: {text}")


if __name__ == "__main__":
    main()
