"""Speed of the local embedder on this machine: `python -m benchmarks.embedder`.

Prints short facts per second, milliseconds per text by token length (one at a time and in lists),
the time to the first vector, and the resident memory. The embedder's cache is off.
"""

import argparse
import time
from collections.abc import Callable, Sequence

import psutil
from rich.console import Console
from rich.table import Table

from memguard.local import LocalEmbeddings

_PEOPLE = ("Ana", "Bob", "Chiara", "Dmitri", "Elif", "Farid", "Grace", "Hiro")
_FACTS = (
    "{} works as a nurse in Lyon since {}.",
    "{} is allergic to peanuts and told us so in {}.",
    "{} moved to Berlin in March {}.",
    "{} prefers tea over coffee, at least since {}.",
)
_LENGTHS = (8, 16, 32, 64, 128, 256)


def short_facts(count: int) -> list[str]:
    """Distinct sentences like those of memories, of about 12 tokens each."""
    return [
        _FACTS[n % len(_FACTS)].format(_PEOPLE[n % len(_PEOPLE)], 1900 + n) for n in range(count)
    ]


def texts_of(tokens: int, *, count: int) -> list[str]:
    """Distinct texts of `tokens` tokens: words of one token between `[CLS]` and `[SEP]`."""
    words = ("river", "stone", "garden", "winter", "letter", "music", "paper", "window")
    # The digits of `n` in base 8 make each text unique; a repeated one would not be encoded.
    return [
        " ".join(words[(n // 8 ** (k % 4)) % 8] for k in range(tokens - 2)) for n in range(count)
    ]


def best_seconds(run: Callable[[], object], *, repeats: int) -> tuple[float, float]:
    """Wall and CPU seconds of the fastest of several runs."""
    # The fastest is the one that other processes disturbed least.
    runs: list[tuple[float, float]] = []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        runs.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(runs)


def length_table(embeddings: LocalEmbeddings, *, repeats: int) -> Table:
    """A table of milliseconds per text by length in tokens."""
    table = Table("tokens", "alone, ms", "alone, CPU ms", "in a list, ms", "in a list, CPU ms")
    for tokens in _LENGTHS:
        texts = texts_of(tokens, count=max(8, 512 // tokens))
        alone = best_seconds(
            lambda batch=texts: [embeddings.embed_query(text) for text in batch], repeats=repeats
        )
        listed = best_seconds(
            lambda batch=texts: embeddings.embed_documents(batch), repeats=repeats
        )
        row = (1000 * seconds / len(texts) for seconds in (*alone, *listed))
        table.add_row(str(tokens), *(f"{milliseconds:.1f}" for milliseconds in row))
    return table


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.embedder")
    parser.add_argument("--threads", type=int, default=None, help="threads of one run")
    parser.add_argument("--facts", type=int, default=400, help="how many short facts")
    parser.add_argument("--repeats", type=int, default=3, help="the fastest of so many runs")
    options = parser.parse_args(argv)

    start = time.perf_counter()
    # No cache, since repeated runs embed the same texts.
    embeddings = LocalEmbeddings(threads=options.threads, cache_size=0)
    weights = embeddings.warm()
    loaded = time.perf_counter() - start
    console = Console()
    console.print(f"{embeddings.name}, weights {weights.precision} from {weights.source}")
    console.print(f"threads {options.threads or 'default'}; to the first vector {loaded:.2f} s")
    facts = short_facts(options.facts)
    wall, cpu = best_seconds(lambda: embeddings.embed_documents(facts), repeats=options.repeats)
    console.print(
        f"short facts in a list: {len(facts) / wall:.0f}/s, {1000 * cpu / len(facts):.1f} CPU-ms"
    )
    console.print(length_table(embeddings, repeats=options.repeats))
    resident = psutil.Process().memory_info().rss / 1024**2
    console.print(f"resident memory at the end {resident:.0f} MB")


if __name__ == "__main__":
    main()
