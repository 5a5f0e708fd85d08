"""What a guarded read costs beyond the model and the store.

```text
python -m memguard.bench.read cpu       # own CPU of a read, beside its model call and its search
python -m memguard.bench.read policy    # policy and rendering of 10 memories in 30 units
python -m memguard.bench.read search    # recall among 10,000 memories of one namespace
python -m memguard.bench.read calls     # model calls of a first read and of later ones
```

CPU is that of the process, so a busy machine blurs it less than it blurs the clock. Model and
embedder are scripted; what they would take comes on top.
"""

import argparse
import asyncio
import gc
import json
import re
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypedDict

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langgraph.graph import START, StateGraph
from langgraph.store.base import PutOp, SearchOp

from memguard.adjudication.steps import costs_of
from memguard.guard import create_read_guard
from memguard.guard.recall import SAFETY_QUERIES, recall
from memguard.policy.ledger import compile_ledger, rule_on_units
from memguard.portal import dual
from memguard.rendering.memories import render_memories
from memguard.schema.ledger import Adjudication, Row
from memguard.schema.read import Situation
from memguard.schema.read_config import PermissionSemantic
from memguard.schema.recall import Recall
from memguard.schema.units import Unit, UnitAttributes
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


class _Known(HashEmbeddings):
    """Remembers the vectors of queries, so that no embedder is measured."""

    def __init__(self) -> None:
        super().__init__(dims=384)
        self._found: dict[str, list[float]] = {}

    async def aembed_query(self, text: str) -> list[float]:
        """The vector of a query, computed once."""
        if text not in self._found:
            self._found[text] = self._vector(text)
        return self._found[text]


def _judge(messages: list[BaseMessage]) -> str:
    names = re.findall(r"^\[(u\d+)\] ", str(messages[-1].content), re.MULTILINE)
    situation = {"target": "user", "mode": "recommendation", "asks_view": False}
    units = [{"unit": name, "reason": "near", **_UNIT} for name in names]
    return json.dumps({"situation": situation, "units": units})


def _cut(messages: list[BaseMessage]) -> str:
    found = re.findall(r'^\[(m\d+)\] (".*")$', str(messages[-1].content), re.MULTILINE)
    memories: list[dict[str, Any]] = []
    for name, quoted in found:
        sentences = re.findall(r"[^.]+\.", json.loads(quoted))
        units = [{"text": each.strip(), "kind": "fact"} for each in sentences]
        memories.append({"memory": name, "units": units})
    return json.dumps({"memories": memories})


def _model() -> ScriptedChatModel:
    return ScriptedChatModel(rules=[("<units>", _judge), ("<memories>", _cut)])


async def _filled(store: ChromaStore, *, records: int) -> None:
    for start in range(0, records, 500):
        ops = [
            PutOp(NAMESPACE, f"k{n}", {"content": _TEXT.format(n=n)}, index=["content"])
            for n in range(start, min(records, start + 500))
        ]
        await store.abatch(ops)


async def _cpu_of(work: Callable[[], Awaitable[Any]], *, times: int) -> float:
    """CPU milliseconds of one piece of work, the mean of several."""
    gc.collect()
    began = time.process_time()
    for _ in range(times):
        await work()
    return (time.process_time() - began) / times * 1000


class _Empty(TypedDict, total=False):
    seen: int


def _bare() -> Any:
    """A graph of the same shape whose nodes do nothing: what LangGraph itself takes."""

    async def nothing(_: _Empty) -> dict[str, Any]:
        return {}

    inner: Any = StateGraph(_Empty)
    names = ("decompose", "adjudicate", "compile", "render")
    for before, name in zip((START, *names), names, strict=False):
        inner.add_node(name, dual(nothing, name=name))
        inner.add_edge(before, name)
    method = inner.compile()

    async def ask(state: _Empty) -> dict[str, Any]:
        await method.ainvoke(state)
        return {}

    outer: Any = StateGraph(_Empty)
    for before, name, node in (
        (START, "recall", nothing),
        ("recall", "admit", ask),
        ("admit", "report", nothing),
    ):
        outer.add_node(name, dual(node, name=name))
        outer.add_edge(before, name)
    return outer.compile()


async def measure_cpu(*, rounds: int, times: int) -> None:
    """Own CPU of a read: the whole, less the same model call and the same searches alone."""
    with tempfile.TemporaryDirectory() as folder:
        async with ChromaStore.local(folder, embed=_Known()) as store:
            await _filled(store, records=200)
            model = _model()
            guard = create_read_guard(model, store=store, namespace=NAMESPACE)
            read = (await guard.ainvoke({"query": _QUERY}))["read"]
            await guard.ainvoke({"query": _QUERY})
            prompt: list[list[BaseMessage]] = [
                [SystemMessage(model.calls[-1].text), HumanMessage("<units>")]
            ]
            ops = [SearchOp(NAMESPACE, limit=20, query=text) for text in (_QUERY, *SAFETY_QUERIES)]
            bare = _bare()
            works = (
                lambda: guard.ainvoke({"query": _QUERY}),
                lambda: model.agenerate(prompt),
                lambda: store.abatch(ops),
                lambda: bare.ainvoke({"seen": 1}),
            )
            rows = [[await _cpu_of(work, times=times) for work in works] for _ in range(rounds)]
    own = [whole - alone - search for whole, alone, search, _ in rows]
    columns = zip(*rows, strict=True)
    whole, alone, search, empty = (statistics.median(column) for column in columns)
    print(
        f"a read of {len(read.memories)} memories in {len(read.ledger.verdicts)} units, cached: "
        f"own CPU min {min(own):.2f} median {statistics.median(own):.2f} ms "
        f"(whole {whole:.2f}, model {alone:.2f}, store {search:.2f}; of its own, "
        f"LangGraph's loop over empty nodes {empty:.2f})"
    )


async def measure_policy(*, rounds: int, times: int) -> None:
    """Policy and rendering alone: 10 memories in 30 units."""
    units = [
        Unit(id=f"m{n // 3}.{n % 3}", memory_id=f"m{n // 3}", text=_TEXT.format(n=n), said_at=NOW)
        for n in range(30)
    ]
    found = UnitAttributes.model_validate(
        {name: _UNIT[name] for name in UnitAttributes.model_fields}
    )
    adjudication = Adjudication(
        situation=Situation(target="user", mode="recommendation"),
        rows=tuple(Row(unit_id=unit.id, attributes=found) for unit in units),
    )
    spec = PermissionSemantic()

    async def work() -> None:
        rulings = rule_on_units(units, adjudication=adjudication, spec=spec)
        compiled = compile_ledger(
            rulings,
            adjudication=adjudication,
            spec=spec,
            scheme="units",
            costs=costs_of(rulings),
            repeats={},
        )
        render_memories(compiled.ledger, rendering="channels")

    costs = [await _cpu_of(work, times=times) for _ in range(rounds)]
    print(
        f"policy and rendering of 30 units: CPU min {min(costs):.2f} "
        f"median {statistics.median(costs):.2f} ms"
    )


async def measure_search(*, rounds: int, times: int, records: int) -> None:
    """Recall from one namespace of many memories, the search for safety constraints included."""
    with tempfile.TemporaryDirectory() as folder:
        async with ChromaStore.local(folder, embed=_Known()) as store:
            await _filled(store, records=records)
            for safety_k, what in ((5, "with safety constraints"), (0, "the nearest alone")):
                spec = Recall(safety_k=safety_k)

                async def work(spec: Recall = spec) -> None:
                    await recall(
                        store, query=_QUERY, namespaces=[NAMESPACE], spec=spec, k=10, now=NOW
                    )

                await work()
                costs = [await _cpu_of(work, times=times) for _ in range(rounds)]
                print(
                    f"recall among {records:,} memories, {what}: CPU min {min(costs):.2f} "
                    f"median {statistics.median(costs):.2f} ms"
                )


async def count_calls() -> None:
    """Model calls of a first read, of a second one, and of one with another query."""
    with tempfile.TemporaryDirectory() as folder:
        async with ChromaStore.local(folder, embed=_Known()) as store:
            await _filled(store, records=10)
            guard = create_read_guard(_model(), store=store, namespace=NAMESPACE)
            for query in (_QUERY, _QUERY, "What did I buy?"):
                read = (await guard.ainvoke({"query": query}))["read"]
                print(
                    f"{query!r}: {read.usage.calls} model calls, units of {read.cached} memories "
                    f"kept, of {read.decomposed} cut"
                )


def main() -> None:
    """Run one of the benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("cpu", "policy", "search", "calls"))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--records", type=int, default=10_000)
    options = parser.parse_args()
    rounds, times = options.rounds, options.times
    match options.what:
        case "cpu":
            asyncio.run(measure_cpu(rounds=rounds, times=times))
        case "policy":
            asyncio.run(measure_policy(rounds=rounds, times=times))
        case "search":
            asyncio.run(measure_search(rounds=rounds, times=times, records=options.records))
        case _:
            asyncio.run(count_calls())


if __name__ == "__main__":
    main()
