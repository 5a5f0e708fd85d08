"""Fuzzes the readers of outside text, guided by coverage; optional, with `pip install atheris`.

    python -m tests.fuzz.run_atheris -max_total_time=300 [CORPUS_FOLDER]

The options are those of libFuzzer. A crash is written to a file `crash-...`, which the same command
reads again if it is given as the last argument.
"""

import json
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

# It has no types, and is not among the dependencies.
atheris: Any = import_module("atheris")

# Before they are imported: what is not instrumented does not guide.
with atheris.instrument_imports(include=["memguard"]):
    from tests.fuzz import targets


def run(data: bytes) -> None:
    """One input: the first byte chooses the target."""
    provider = atheris.FuzzedDataProvider(data)
    choice = provider.ConsumeIntInRange(0, len(targets.TEXT_TARGETS))
    text = provider.ConsumeUnicode(4_000)
    if choice < len(targets.TEXT_TARGETS):
        targets.TEXT_TARGETS[choice](text)
        return
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        targets.filter_values(value)


if __name__ == "__main__":
    atheris.Setup(sys.argv, run)
    atheris.Fuzz()
