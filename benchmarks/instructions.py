"""How many instructions are recognised, and how many other memories are taken for one.

`python -m benchmarks.instructions [--data FOLDER]` counts the sentences in `tests/data`: those that
the rules were written with, and those that were written afterwards and changed nothing. With data
sets it also counts real memories that would be withheld; none of them was planted.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memguard.instructions import find_instruction

SENTENCES = Path(__file__).parents[1] / "tests" / "data"
SETS = {
    "written with the rules": "instructions.json",
    "written afterwards": "instructions_held_out.json",
}
# By data set: its files, and a part of the names of the fields that hold memories.
MEMORIES = {
    "persistbench": ("persistbench/**/*.json*", "memor"),
    "locomo": ("locomo/locomo10.json", "observation"),
    "halumem": ("halumem_pilot/**/*.json*", "memory"),
    "msc": ("msc/**/*.txt", "persona"),
}


def texts_in(value: Any, *, field: str, inside: bool = False) -> Iterator[str]:
    """All texts below the fields with this name."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from texts_in(inner, field=field, inside=inside or field in str(name).lower())
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner, field=field, inside=inside)
    elif isinstance(value, str) and inside:
        yield value


def objects_in(path: Path) -> Iterator[Any]:
    """The JSON of a file, or of each of its lines."""
    text = path.read_text(encoding="utf-8")
    try:
        yield json.loads(text)
    except json.JSONDecodeError:
        for line in text.splitlines():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:  # a line of another form
                continue


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="where the data sets are")
    folder = parser.parse_args().data
    for name, file in SETS.items():
        sentences = json.loads((SENTENCES / file).read_text(encoding="utf-8"))
        planted, legitimate = (
            [find_instruction(text) for texts in sentences[kind].values() for text in texts]
            for kind in ("planted", "legitimate")
        )
        recognised = sum(one is not None for one in planted)
        print(f"{name}: {recognised} of {len(planted)} instructions recognised")
        mistaken = sum(one is not None for one in legitimate)
        print(f"{name}: {mistaken} of {len(legitimate)} wishes and facts taken for one")
    for name, (files, field) in MEMORIES.items() if folder else ():
        texts = {
            text
            for path in sorted(folder.glob(files))
            for value in objects_in(path)
            for text in texts_in(value, field=field)
        }
        count = sum(find_instruction(text) is not None for text in texts)
        print(f"{name}: {count} of {len(texts)} memories taken for an instruction")


if __name__ == "__main__":
    main()
