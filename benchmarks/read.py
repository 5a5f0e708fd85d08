"""Overhead of a guarded read beyond the model and the store.

```text
python -m benchmarks.read cpu       # CPU of a read without its model call and its search
python -m benchmarks.read search    # recall among 10,000 memories of one namespace
python -m benchmarks.read calls     # model calls of a first read and of later ones
python -m benchmarks.read large     # calls and prompts of a read of 200 memories
```

CPU time is that of the process, which a busy machine distorts less than wall time. Model and
embedder are scripted, so their cost is not included. `benchmarks.render` measures policy and
rendering alone.
"""

import argparse
import asyncio
import json
import re
import statistics
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TypedDict

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langgraph.graph import START, StateGraph
from langgraph.store.base import PutOp, SearchOp

from benchmarks.timing import cpu_milliseconds
from memguard.portal import dual
from memguard.read.graph import create_read_guard
from memguard.read.recall import SAFETY_QUERIES, recall
from memguard.schema.read import PermissionSemantic, Recall
from memguard.stores import ChromaStore
from memguard.testing import ScriptedChatModel
from memguard.testing.embeddings import HashEmbeddings

NAMESPACE = ("memories", "bench")
NOW = datetime(2026, 3, 1, tzinfo=UTC)
_TEXT = (
    "The user went to market number {n} and bought {n} apples. The user likes market {n}. "
    "The user pays there with coins."
)
_QUERY = "Which market should I go to, and what should I buy?"
_UNIT = {
    "kind": "fact",
    "subject": "user",
    "epistemic": "stated",
    "temporality": "current",
    "relevance": "direct",
    "evidence_conflict": False,
    "conflicts_with": [],
    "influence": 0.5,
}


class _CachedEmbeddings(HashEmbeddings):
    """Caches the vectors of queries, so that no embedder is measured."""

    def __init__(self) -> None:
        super().__init__(dims=384)
        self._vectors: dict[str, list[float]] = {}

    async def aembed_query(self, text: str) -> list[float]:
        """The vector of a query, computed once."""
        if text not in self._vectors:
            self._vectors[text] = self._vector(text)
        return self._vectors[text]


def _adjudication(messages: Sequence[BaseMessage]) -> str:
    if "<request>" not in str(messages[-1].content):
        # The question about conflicts between the units of different calls.
        return json.dumps({"conflicts": []})
    names = re.findall(r"^\[(u\d+)\] ", str(messages[-1].content), re.MULTILINE)
    situation = {"target": "user", "mode": "recommendation", "asks_view": False}
    units = [{"unit": name, "reason": "near", **_UNIT} for name in names]
    return json.dumps({"situation": situation, "units": units})


def _decomposition(messages: Sequence[BaseMessage]) -> str:
    # The prompt lists memories as `[m1] (2026-03-01) "text"`, the date only if it is known.
    text = str(messages[-1].content)
    matches = re.findall(r'^\[(m\w+)\] (?:\([^)]*\) )?(".*")$', text, re.MULTILINE)
    memories: list[dict[str, Any]] = []
    for name, quoted in matches:
        sentences = re.findall(r"[^.]+\.", json.loads(quoted))
        units = [{"text": sentence.strip(), "kind": "fact"} for sentence in sentences]
        memories.append({"memory": name, "units": units})
    return json.dumps({"memories": memories})


READ_RULES = (("<units>", _adjudication), ("<memories>", _decomposition))
"""Replies of a scripted model to the two prompts of a read: every unit is a relevant fact."""


def _model() -> ScriptedChatModel:
    return ScriptedChatModel(rules=list(READ_RULES))


async def _fill(store: ChromaStore, *, records: int) -> None:
    # 500 at a time: one write per record would take minutes.
    for start in range(0, records, 500):
        ops = [
            PutOp(NAMESPACE, f"k{n}", {"content": _TEXT.format(n=n)}, index=["content"])
            for n in range(start, min(records, start + 500))
        ]
        await store.abatch(ops)


class _EmptyState(TypedDict, total=False):
    count: int


def _empty_graph() -> Any:
    """A graph of the read guard's shape whose nodes do nothing, to measure LangGraph itself."""

    async def nothing(_: _EmptyState) -> dict[str, Any]:
        return {}

    # The method is a subgraph, as in the read guard: entering it has a cost of its own.
    inner: Any = StateGraph(_EmptyState)
    names = ("decompose", "adjudicate", "compile", "render")
    for before, name in zip((START, *names), names, strict=False):
        inner.add_node(name, dual(nothing, name=name))
        inner.add_edge(before, name)
    method = inner.compile()

    async def ask(state: _EmptyState) -> dict[str, Any]:
        await method.ainvoke(state)
        return {}

    outer: Any = StateGraph(_EmptyState)
    for before, name, node in (
        (START, "recall", nothing),
        ("recall", "admit", ask),
        ("admit", "report", nothing),
    ):
        outer.add_node(name, dual(node, name=name))
        outer.add_edge(before, name)
    return outer.compile()


async def measure_cpu(*, rounds: int, times: int) -> None:
    """Print the overhead of a read: the whole less the same model call and the same searches."""
    with tempfile.TemporaryDirectory() as folder:
        async with ChromaStore.local(folder, embed=_CachedEmbeddings()) as store:
            await _fill(store, records=200)
            model = _model()
            guard = create_read_guard(model, store=store, namespace=NAMESPACE)
            read = (await guard.ainvoke({"query": _QUERY}))["read"]
            # A second read, so that the units of all memories are cached.
            await guard.ainvoke({"query": _QUERY})
            prompt: list[list[BaseMessage]] = [
                [SystemMessage(model.calls[-1].text), HumanMessage("<units>")]
            ]
            # The searches that recall makes: the query and the lists of safety words.
            ops = [SearchOp(NAMESPACE, limit=20, query=text) for text in (_QUERY, *SAFETY_QUERIES)]
            bare = _empty_graph()
            works = (
                lambda: guard.ainvoke({"query": _QUERY}),
                lambda: model.agenerate(prompt),
                lambda: store.abatch(ops),
                lambda: bare.ainvoke({"count": 1}),
            )
            rows = [
                [await cpu_milliseconds(work, times=times) for work in works] for _ in range(rounds)
            ]
    overhead = [whole - alone - search for whole, alone, search, _ in rows]
    columns = zip(*rows, strict=True)
    whole, alone, search, empty = (statistics.median(column) for column in columns)
    print(
        f"a read of {len(read.memories)} memories in {len(read.ledger.verdicts)} units, cached: "
        f"overhead min {min(overhead):.2f} median {statistics.median(overhead):.2f} ms "
        f"(whole {whole:.2f}, model {alone:.2f}, store {search:.2f}; included: "
        f"LangGraph's loop over empty nodes {empty:.2f})"
    )


async def measure_search(*, rounds: int, times: int, records: int) -> None:
    """Print the CPU time of recall from one large namespace, with and without safety search."""
    with tempfile.TemporaryDirectory() as folder:
        async with ChromaStore.local(folder, embed=_CachedEmbeddings()) as store:
            await _fill(store, records=records)
            for safety_k, what in ((5, "with safety constraints"), (0, "the nearest alone")):
                spec = Recall(safety_k=safety_k)

                async def work(spec: Recall = spec) -> None:
                    await recall(
                        store, query=_QUERY, namespaces=[NAMESPACE], spec=spec, k=10, now=NOW
                    )

                # The first run loads the vectors of the namespace.
                await work()
                costs = [await cpu_milliseconds(work, times=times) for _ in range(rounds)]
                print(
                    f"recall among {records:,} memories, {what}: CPU min {min(costs):.2f} "
                    f"median {statistics.median(costs):.2f} ms"
                )


async def count_calls() -> None:
    """Print the model calls of a first read, of the same again, and of another query."""
    with tempfile.TemporaryDirectory() as folder:
        async with ChromaStore.local(folder, embed=_CachedEmbeddings()) as store:
            await _fill(store, records=10)
            guard = create_read_guard(_model(), store=store, namespace=NAMESPACE)
            for query in (_QUERY, _QUERY, "What did I buy?"):
                read = (await guard.ainvoke({"query": query}))["read"]
                print(
                    f"{query!r}: {read.usage.calls} model calls, units of {read.cached} memories "
                    f"from the cache, {read.decomposed} memories decomposed"
                )


_CITIES = ("Porto", "Lyon", "Graz", "Leeds", "Turin", "Ghent", "Malaga", "Basel")
_WORDINGS = ("The user visited {}.", "I visited {}.", "I'm fond of {}.", "The user likes {}.")


async def measure_large(*, records: int) -> None:
    """Print the calls and the longest prompt of a read of many memories, with their account."""
    texts = [_TEXT.format(n=n) for n in range(records - len(_CITIES) * len(_WORDINGS))]
    texts += [wording.format(city) for city in _CITIES for wording in _WORDINGS]
    ops = [
        PutOp(NAMESPACE, f"k{n}", {"content": text}, index=["content"])
        for n, text in enumerate(texts)
    ]
    with tempfile.TemporaryDirectory() as folder:
        async with ChromaStore.local(folder, embed=_CachedEmbeddings()) as store:
            await store.abatch(ops)
            model = _model()
            guard = create_read_guard(
                model, store=store, namespace=NAMESPACE, admission=PermissionSemantic(k=records)
            )
            evidence = "The market opens at nine. " * 2_000
            for turn in ("first", "second"):
                before = len(model.calls)
                output = await guard.ainvoke({"query": _QUERY, "evidence": evidence})
                calls = model.calls[before:]
                prompts = [sum(len(str(m.content)) for m in call.messages) for call in calls]
                judging = sum("<request>" in str(call.messages[-1].content) for call in calls)
                splitting = sum("<memories>" in call.text for call in calls)
                read = output["read"]
                accounted = {verdict.unit.memory_id for verdict in read.ledger.verdicts}
                rows = Counter(
                    verdict.withheld if verdict.withheld == "duplicate" else verdict.row
                    for verdict in read.ledger.verdicts
                )
                print(
                    f"{turn} read of {len(read.memories)} memories in "
                    f"{len(read.ledger.verdicts)} units: {judging} calls judge, {splitting} split, "
                    f"{len(calls) - judging - splitting} compare; longest prompt "
                    f"{max(prompts):,} characters; {len(accounted)} memories on the receipt; "
                    f"units by rule: {dict(rows)}; flags: {', '.join(read.flags) or 'none'}"
                )


def main() -> None:
    """Run the benchmark that was named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("cpu", "search", "calls", "large"))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--records", type=int, default=10_000)
    options = parser.parse_args()
    rounds, times = options.rounds, options.times
    match options.what:
        case "cpu":
            asyncio.run(measure_cpu(rounds=rounds, times=times))
        case "search":
            asyncio.run(measure_search(rounds=rounds, times=times, records=options.records))
        case "large":
            asyncio.run(measure_large(records=min(options.records, 200)))
        case _:
            asyncio.run(count_calls())


if __name__ == "__main__":
    main()
