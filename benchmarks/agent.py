"""CPU cost of memory per turn of an agent, and how much it shortens the shared prompt prefix.

```text
python -m benchmarks.agent           # CPU per turn, with and without memory
python -m benchmarks.agent prefix    # share of a prompt that equals the start of the last one
```

Per turn, one candidate is written and ten memories are recalled. The model answers at once. CPU
time is that of the process. The two agents alternate in one run.
"""

import argparse
import asyncio
import re
import statistics
import time
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from benchmarks.read import READ_RULES
from memguard.agent import create_memory_agent
from memguard.journal.journal import Journal
from memguard.testing import ScriptedChatModel
from memguard.testing.embeddings import HashEmbeddings

NAMESPACE = ("memories", "bench")
_MEMORY_COUNT = 10
# Long, as system prompts of real agents are: it is the prefix that providers cache.
_SYSTEM = "You are a careful assistant who plans evenings for small groups. " * 40


def _extraction(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    number = re.findall(r"number (\d+)", str(messages[-1].content))[-1]
    fact = {"text": f"The user paid bill number {number}.", "about": "the user", "turns": [1]}
    return {"facts": [fact]}


def _model() -> ScriptedChatModel:
    verdict = {"reason": "the user says so", "turns": [1], "score": 0.9}
    return ScriptedChatModel(
        rules=[
            ("<new_turns>", _extraction),
            *READ_RULES,
            ("<memory>", verdict),
            ("", "Gladly."),
        ],
        supports_n=True,
    )


async def _create_agents() -> tuple[Any, Any, ScriptedChatModel, Journal]:
    model = _model()
    store = InMemoryStore(index={"dims": 64, "embed": HashEmbeddings()})
    for n in range(_MEMORY_COUNT):
        await store.aput(NAMESPACE, f"m{n}", {"content": f"The user likes dish {n} of the house."})
    journal = Journal.memory()
    settings: dict[str, Any] = {"store": store, "namespace": NAMESPACE, "system": _SYSTEM}
    guarded = create_memory_agent(model, receipts=journal, checkpointer=InMemorySaver(), **settings)
    plain = create_memory_agent(
        model, read=False, write=False, checkpointer=InMemorySaver(), **settings
    )
    return guarded, plain, model, journal


async def _turn(agent: Any, number: int, *, thread: str) -> dict[str, Any]:
    text = f"I paid bill number {number}. Which dish of the house do I like?"
    config = {"configurable": {"thread_id": thread}}
    return await agent.ainvoke({"messages": [("user", text)]}, config)


async def measure_cpu(*, rounds: int) -> None:
    """Print the CPU time of a turn, with memory and without; every turn is a new thread."""
    guarded, plain, _, journal = await _create_agents()
    # The first runs load modules and fill caches.
    for n in range(5):
        for agent in (guarded, plain):
            await _turn(agent, n, thread=f"warm-{n}")
    costs: dict[str, list[float]] = {"guarded": [], "plain": []}
    for n in range(rounds):
        for name, agent in (("guarded", guarded), ("plain", plain)):
            start = time.process_time()
            out = await _turn(agent, 100 + n, thread=f"{name}-{n}")
            costs[name].append((time.process_time() - start) * 1000)
            # A run that did nothing would be fast.
            if name == "guarded" and not (out["writes"].receipts and out["read"].memories):
                msg = f"nothing was written or recalled: {out['writes']!r}"
                raise AssertionError(msg)
    await journal.aclose()
    # By round, so that a slow minute of the machine affects both sides of a difference.
    added = [a - b for a, b in zip(costs["guarded"], costs["plain"], strict=True)]
    for name, values in (*costs.items(), ("added by memory", added)):
        print(f"{name:<16} min {min(values):.1f} median {statistics.median(values):.1f} ms CPU")


async def measure_prefix(*, turns: int) -> None:
    """Print the share of a prompt's characters that equals the start of the prompt before it."""
    guarded, plain, model, journal = await _create_agents()
    shares: dict[str, list[float]] = {}
    for name, agent in (("guarded", guarded), ("plain", plain)):
        before = ""
        shares[name] = []
        for n in range(turns):
            calls_before = len(model.calls)
            await _turn(agent, n, thread=name)
            # The call of the agent itself, among those of writer, gates and adjudicator.
            (prompt,) = [
                c.text for c in model.calls[calls_before:] if c.text.startswith(_SYSTEM[:40])
            ]
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
    """Run the benchmark that was named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("what", nargs="?", choices=("cpu", "prefix"), default="cpu")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--turns", type=int, default=8)
    options = parser.parse_args()
    if options.what == "cpu":
        asyncio.run(measure_cpu(rounds=options.rounds))
    else:
        asyncio.run(measure_prefix(turns=options.turns))


if __name__ == "__main__":
    main()
