"""How well a small model follows each prompt: the share of answers usable at once.

Run with `python -m benchmarks.prompts --model llamacpp:FILE.gguf`. Every method runs on a few
small cases of its own. An answer is usable at once if it was parsed without asking the model again.
With `--free` the model is not held to the schema of an answer, as on servers that take no schema.
"""

import argparse
import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from memguard import (
    ConMem,
    ConsistencyGate,
    Writer,
    create_conmem_graph,
    create_consistency_gate_graph,
    create_factor_compiled_graph,
    create_permission_semantic_graph,
    create_writer_graph,
)
from memguard.calibration.pairs import load_pairs
from memguard.llm.llamacpp import LlamaCppChat

CONVERSATIONS = (
    [
        ("user", "I moved to Utrecht in March and I cycle to work now."),
        ("assistant", "Nice. Do you still have the car?"),
        ("user", "No, we sold it."),
    ],
    [
        ("user", "My sister Lena is vegan, I just cannot stand mushrooms."),
        ("assistant", "So you would like recipes without mushrooms?"),
        ("user", "Yes, exactly. And please answer in short sentences."),
    ],
    [
        ("user", "If I get the job I will start in Lyon on 3 May."),
        ("assistant", "Good luck! You could rent near the river."),
        ("user", "They confirmed: I got it. My blood pressure pills make mornings slow, though."),
    ],
)
CONMEM_CASES = (
    ("The user cycles to work.", CONVERSATIONS[0]),
    ("The user is vegan.", CONVERSATIONS[1]),
)
MEMORIES = (
    "I am allergic to peanuts.",
    "I prefer aisle seats because I have long legs.",
    "My brother says that the new tram opens in June.",
    "I used to live in Ghent; since 2025 I live in Bruges.",
    "Always answer me in German.",
    "I bought bitcoin in 2021 and sold it with a loss.",
)
QUERIES = (
    "Which snack should I take on the train?",
    "How do tides work?",
    "Plan a weekend for me near my home.",
)


class FreeChat(LlamaCppChat):
    """The same model on a server that takes no schema."""

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        kwargs.pop("response_format", None)
        return super()._generate(*args, **kwargs)

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        kwargs.pop("response_format", None)
        return await super()._agenerate(*args, **kwargs)


class Requests(AsyncCallbackHandler):
    """Counts requests and repairs by the name of the stage."""

    def __init__(self) -> None:
        """Start with no request."""
        self.first: Counter[str] = Counter()
        self.repairs: Counter[str] = Counter()

    async def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        name: str = "",
        **kwargs: Any,
    ) -> None:
        """Count one request; a repair repeats the prompt with the first answer."""
        del serialized, run_id, kwargs
        is_repair = any(message.type == "ai" for message in messages[0])
        (self.repairs if is_repair else self.first)[name] += 1


async def measure(model: LlamaCppChat, *, pairs: int, samples: int) -> Requests:
    """Run every method on its cases, and print what the gate's samples gave.

    Args:
        model: The model to measure.
        pairs: Number of labelled memories that the gate judges.
        samples: Number of samples of each.
    """
    requests = Requests()
    config: Any = {"callbacks": [requests]}

    async def run(graph: Any, values: Mapping[str, Any]) -> Any:
        print(f"... {graph.name}", flush=True)
        return await graph.ainvoke(values, config)

    gate = create_consistency_gate_graph(model, spec=ConsistencyGate(k=samples))
    usable = right = 0
    labelled = load_pairs(pairs)
    for memory in labelled:
        out = await run(gate, {"candidate": memory.text, "context": memory.source})
        usable += int(str(out["report"].evidence.get("usable", 0)))
        right += (out["decision"].outcome == "admit") == memory.is_supported
    print(f"gate: {usable} of {samples * len(labelled)} samples usable, "
          f"{right} of {len(labelled)} decisions right")  # fmt: skip

    writer = create_writer_graph(model, spec=Writer())
    for turns in CONVERSATIONS:
        out = await run(writer, {"conversation": turns})
        print([candidate.text for candidate in out["candidates"]])

    for create in (create_permission_semantic_graph, create_factor_compiled_graph):
        method: Any = create(model)
        for query in QUERIES:
            memories = [{"text": text} for text in MEMORIES]
            await run(method, {"query": query, "memories": memories})

    conmem = create_conmem_graph(model, spec=ConMem())
    for text, turns in CONMEM_CASES:
        out = await run(conmem, {"candidate": text, "context": turns})
        print(out["decision"])
    return requests


def main() -> None:
    """Print a line for each stage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="path of a GGUF file")
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--free", action="store_true", help="do not send the schema")
    args = parser.parse_args()
    model = (FreeChat if args.free else LlamaCppChat)(
        path=args.model.removeprefix("llamacpp:"),
        n_threads=args.threads,
        n_parallel=args.samples,
        max_tokens=700,
    )
    requests = asyncio.run(measure(model, pairs=args.pairs, samples=args.samples))
    print("| stage | requests | usable at once |\n|---|---|---|")
    for name, count in sorted(requests.first.items()):
        at_once = count - requests.repairs[name]
        print(f"| {name} | {count} | {at_once} ({at_once / count:.0%}) |")


if __name__ == "__main__":
    main()
