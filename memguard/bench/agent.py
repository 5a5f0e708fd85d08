"""What a turn with memory costs over the same turn without, the model at 0 ms.

```text
python -m memguard.bench.agent           # CPU per turn, with and without memory
python -m memguard.bench.agent prefix    # how much of a prompt the turn before it began with
```

One candidate is written per turn and ten memories are recalled. CPU is that of the process; the two
agents take turns in one run.
"""

import argparse
import asyncio
import json
import re
import statistics
import time
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from memguard.guard.agent import create_memory_agent
from memguard.journal.journal import Journal
from memguard.testing import ScriptedChatModel
from memguard.testing.embeddings import HashEmbeddings

PLACE = ("memories", "bench")
_MEMORIES = 10
_SYSTEM = "You are a careful assistant who plans evenings for small groups. " * 40
_UNIT = {
    "kind": "fact",
    "subject": "user",
    "epistemic": "stated",
    "temporality": "current",
    "relevance": "direct",
}
_SITUATION = {"target": "user", "mode": "planning", "asks_view": False}


def _adjudicated(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    names = re.findall(r"^\[(u?\w+)\] (?:\([^)]*\) )?\"", str(messages[-1].content), re.MULTILINE)
    return {"situation": _SITUATION, "units": [{"unit": name, **_UNIT} for name in names]}


def _decomposed(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    found = re.findall(
        r"^\[(\w+)\] (?:\([^)]*\) )?(\".*\")$", str(messages[-1].content), re.MULTILINE
    )
    units = [(name, [{"text": json.loads(said), "kind": "fact"}]) for name, said in found]
    return {"memories": [{"memory": name, "units": cut} for name, cut in units]}


def _written(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    number = re.findall(r"number (\d+)", str(messages[-1].content))[-1]
    fact = {"text": f"The user paid bill number {number}.", "about": "the user", "turns": [1]}
    return {"facts": [fact]}


def _model() -> ScriptedChatModel:
    verdict = {"reason": "the user says so", "turns": [1], "score": 0.9}
    return ScriptedChatModel(
        rules=[
            ("<new_turns>", _written),
            ("<memories>", _decomposed),
            ("<units>", _adjudicated),
            ("<memory>", verdict),
            ("", "Gladly."),
        ],
        supports_n=True,
    )


async def _agents() -> tuple[Any, Any, ScriptedChatModel, Journal]:
    model = _model()
    store = InMemoryStore(index={"dims": 64, "embed": HashEmbeddings()})
    for n in range(_MEMORIES):
        await store.aput(PLACE, f"m{n}", {"content": f"The user likes dish {n} of the house."})
    journal = Journal.memory()
    settings: dict[str, Any] = {"store": store, "namespace": PLACE, "system": _SYSTEM}
    guarded = create_memory_agent(model, receipts=journal, checkpointer=InMemorySaver(), **settings)
    plain = create_memory_agent(
        model, read=False, write=False, checkpointer=InMemorySaver(), **settings
    )
    return guarded, plain, model, journal


async def _turn(agent: Any, number: int, *, thread: str) -> dict[str, Any]:
    said = f"I paid bill number {number}. Which dish of the house do I like?"
    config = {"configurable": {"thread_id": thread}}
    return await agent.ainvoke({"messages": [("user", said)]}, config)


async def measure_cpu(*, rounds: int) -> None:
    """CPU of a turn in a thread of its own, with memory and without."""
    guarded, plain, _, journal = await _agents()
    for n in range(5):
        for agent in (guarded, plain):
            await _turn(agent, n, thread=f"warm-{n}")
    costs: dict[str, list[float]] = {"guarded": [], "plain": []}
    for n in range(rounds):
        for name, agent in (("guarded", guarded), ("plain", plain)):
            began = time.process_time()
            out = await _turn(agent, 100 + n, thread=f"{name}-{n}")
            costs[name].append((time.process_time() - began) * 1000)
            if name == "guarded" and not (out["writes"].receipts and out["read"].memories):
                msg = f"nothing was written or recalled: {out['writes']!r}"
                raise AssertionError(msg)
    await journal.aclose()
    added = [a - b for a, b in zip(costs["guarded"], costs["plain"], strict=True)]
    for name, values in (*costs.items(), ("added by memory", added)):
        print(f"{name:<16} min {min(values):.1f} median {statistics.median(values):.1f} ms CPU")


async def measure_prefix(*, turns: int) -> None:
    """The share of each prompt's characters that the turn before it began with."""
    guarded, plain, model, journal = await _agents()
    shares: dict[str, list[float]] = {}
    for name, agent in (("guarded", guarded), ("plain", plain)):
        before = ""
        shares[name] = []
        for n in range(turns):
            asked = len(model.calls)
            await _turn(agent, n, thread=name)
            (prompt,) = [c.text for c in model.calls[asked:] if c.text.startswith(_SYSTEM[:40])]
            if before:
                common = next(
                    (i for i, (a, b) in enumerate(zip(before, prompt, strict=False)) if a != b),
                    min(len(before), len(prompt)),
                )
                shares[name].append(common / len(prompt))
            before = prompt
        print(f"{name:<8} shared prefix of consecutive prompts {statistics.mean(shares[name]):.3f}")
    ratio = statistics.mean(shares["guarded"]) / statistics.mean(shares["plain"])
    print(f"guarded over plain {ratio:.3f}")
    await journal.aclose()


def main() -> None:
    """Run what was named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("what", nargs="?", choices=("cpu", "prefix"), default="cpu")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--turns", type=int, default=8)
    given = parser.parse_args()
    if given.what == "cpu":
        asyncio.run(measure_cpu(rounds=given.rounds))
    else:
        asyncio.run(measure_prefix(turns=given.turns))


if __name__ == "__main__":
    main()
