"""What `PermissionSemantic(local_first=True)` saves and loses.

```bash
python -m benchmarks.relevance.local_first --data FOLDER
```

A model that is always right is assumed: it admits what a read rests on. So the loss is what is left
out although it is relevant. In MemSyco-Bench every memory of the task `personalized_memory_use` is
relevant, and of `valid_memory_selection` the current one. In the beneficial samples of PersistBench
nothing is labelled, so the memories that are left out are printed.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.adjudicator.sets import memsyco
from benchmarks.relevance.sets import read_chats, read_languages, read_topics
from memguard.local.relevance.leave_out import OtherTopics
from memguard.schema.memory import Turn
from memguard.schema.units import Unit


@dataclass(frozen=True, kw_only=True)
class Case:
    """A query with its memories and those of them that it rests on."""

    query: str
    texts: Sequence[str]
    relevant: frozenset[int]
    dialogue: tuple[Turn, ...] = ()


def measure(name: str, cases: Iterable[Case], topics: OtherTopics) -> list[tuple[str, str]]:
    """Print one line; returns the query and the text of what was left out."""
    units = left_out = 0
    characters = saved = 0
    wrong: list[tuple[str, str]] = []
    chosen: list[tuple[str, str]] = []
    for case in cases:
        read = [Unit(id=str(n), memory_id=str(n), text=t) for n, t in enumerate(case.texts)]
        ids = topics.find(case.query, read, dialogue=case.dialogue)
        units += len(read)
        left_out += len(ids)
        characters += sum(map(len, case.texts))
        saved += sum(len(case.texts[int(unit_id)]) for unit_id in ids)
        chosen += [(case.query, case.texts[int(unit_id)]) for unit_id in ids]
        wrong += [
            (case.query, case.texts[int(unit_id)])
            for unit_id in ids
            if int(unit_id) in case.relevant
        ]
    share = saved / max(1, characters)
    print(f"{name:34} {units:6} units, {left_out:5} left out ({share:.0%} of the text), ", end="")
    print(f"{len(wrong)} wrongly")
    for query, text in wrong[:10]:
        print(f"    {query[:70]!r} <- {text[:80]!r}")
    return chosen


def _memsyco(folder: Path, task: str, label: str) -> Iterator[Case]:
    for row in memsyco(folder):
        if row.group == task:
            yield Case(
                query=row.case.query,
                texts=[text for text, _ in row.memories],
                relevant=frozenset(n for n, (_, own) in enumerate(row.memories) if own == label),
                dialogue=tuple(row.case.dialogue),
            )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    folder: Path | None = parser.parse_args().data
    topics = OtherTopics()
    groups: dict[str, list[Case]] = {}
    for read in (*read_languages(), *read_topics(rounds=1)):
        case = Case(query=read.query, texts=read.texts, relevant=read.relevant)
        groups.setdefault(f"hand-written, {read.group}", []).append(case)
    if folder:
        for task, label in (
            ("personalized_memory_use", "active"),
            ("valid_memory_selection", "current"),
        ):
            groups[f"MemSyco, {task}"] = list(_memsyco(folder, task, label))
        chats = read_chats(folder / "msc" / "msc_personasummary", split="test", dialogues=8)
        groups["Multi-Session Chat, test"] = [
            Case(query=read.query, texts=read.texts[:40], relevant=read.relevant) for read in chats
        ]
    for name, cases in groups.items():
        measure(name, cases, topics)
    path = folder / "persistbench" / "beneficial_samples.jsonl" if folder else None
    if path and path.is_file():
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        cases = [
            Case(query=row["query"], texts=row["memories"], relevant=frozenset()) for row in rows
        ]
        for query, text in measure("PersistBench, beneficial", cases, topics):
            print(f"    {query[:90]!r} <- {text[:90]!r}")


if __name__ == "__main__":
    main()
