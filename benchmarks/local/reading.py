"""What the read-time methods let into the prompt, on the hand-written reads and on LoCoMo."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.local.sets import NOW, RECALLED, LabelledMemory, LabelledRead, Question
from memguard import create_factor_compiled_graph, create_permission_semantic_graph
from memguard.local import LocalEmbeddings
from memguard.schema.memory import Provenance
from memguard.schema.read import RecalledMemory

METHODS: dict[str, Callable[..., Any]] = {
    "PS": create_permission_semantic_graph,
    "FC": create_factor_compiled_graph,
}


@dataclass(frozen=True, kw_only=True)
class ReadResult:
    """What happened to one memory of a read."""

    read: LabelledRead
    memory: LabelledMemory
    admitted: bool
    """Whether what is labelled of it entered the prompt; of a memory with `part`, that part."""
    explanation: str
    """Permission and explanation of each of its units."""


@dataclass(frozen=True, kw_only=True)
class QuestionResult:
    """What happened to the memories of one LoCoMo question."""

    question: Question
    lost: tuple[str, ...]
    """Evidence turns of which no observation entered the prompt."""
    others: int
    """Recalled memories that are no evidence."""
    others_admitted: int
    """Those of them that entered the prompt."""


def measure_reads(method: str, reads: Sequence[LabelledRead]) -> list[ReadResult]:
    """Run a method on the hand-written reads.

    Args:
        method: A key of `METHODS`.
        reads: The reads.
    """
    graph = METHODS[method]("local")
    results: list[ReadResult] = []
    for read in reads:
        recalled = [_recalled(memory, name=str(n)) for n, memory in enumerate(read.memories)]
        output = graph.invoke(
            {
                "query": read.query,
                "memories": recalled,
                "dialogue": list(read.dialogue),
                "evidence": read.evidence,
                "now": NOW,
            }
        )
        verdicts = (*output["admitted"], *output["withheld"])
        for name, memory in enumerate(read.memories):
            own_verdicts = [v for v in verdicts if v.unit.memory_id == str(name)]
            shown = [v.unit.text for v in own_verdicts if v.shown]
            results.append(
                ReadResult(
                    read=read,
                    memory=memory,
                    admitted=_is_shown(memory, shown),
                    explanation="; ".join(f"{v.permission} {v.explanation}" for v in own_verdicts),
                )
            )
    return results


def _recalled(memory: LabelledMemory, *, name: str) -> RecalledMemory:
    origin = Provenance(
        candidate_id=name, receipt_id=name, said_by=memory.said_by, said_at=memory.said_at
    )
    return RecalledMemory(
        id=name,
        key=name,
        text=memory.text,
        said_at=memory.said_at,
        superseded=memory.superseded,
        provenance=origin,
    )


def _is_shown(memory: LabelledMemory, shown: Sequence[str]) -> bool:
    part = _plain(memory.part)
    if memory.label == "must":
        # All of the part; a constraint of which half is left out is lost.
        return bool(shown) and part in _plain(" ".join(shown))
    # Any piece of what must not be there counts, but not the greeting before it.
    pieces = [_plain(text) for text in shown]
    return any(not part or piece in part or part in piece for piece in pieces)


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def measure_questions(method: str, questions: Sequence[Question]) -> list[QuestionResult]:
    """Run a method on questions of LoCoMo, each with `RECALLED` observations.

    The nearest observations by the store's embedder are recalled; those with the evidence take the
    last ranks if they are not among them, so that recall alone loses nothing.
    """
    graph = METHODS[method]("local")
    embedder = LocalEmbeddings()
    vectors: dict[tuple[str, ...], Any] = {}
    results: list[QuestionResult] = []
    for question in questions:
        texts = tuple(observation.text for observation in question.observations)
        if texts not in vectors:
            vectors[texts] = np.asarray(embedder.embed_documents(list(texts)))
        scores = vectors[texts] @ np.asarray(embedder.embed_query(question.text))
        ranks = _with_evidence(question, np.argsort(-scores, kind="stable").tolist())
        memories = [
            RecalledMemory(
                id=str(rank),
                key=str(rank),
                text=texts[rank],
                said_at=question.observations[rank].at,
                score=max(0.0, min(1.0, float(scores[rank]))),
            )
            for rank in ranks
        ]
        output = graph.invoke({"query": question.text, "memories": memories, "now": question.now})
        shown = {int(verdict.unit.memory_id) for verdict in output["admitted"]}
        results.append(_question_result(question, ranks=ranks, shown=shown))
    return results


def _with_evidence(question: Question, ranking: list[int]) -> list[int]:
    chosen = ranking[:RECALLED]
    for turn in sorted(question.evidence):
        citing = [n for n in ranking if turn in question.observations[n].turns]
        if not any(n in chosen for n in citing):
            # The last one that is no evidence itself makes room.
            spare = [n for n in chosen if not question.observations[n].turns & question.evidence]
            if spare:
                chosen.remove(spare[-1])
            chosen.append(citing[0])
    return chosen


def _question_result(question: Question, *, ranks: list[int], shown: set[int]) -> QuestionResult:
    evidence = {n for n in ranks if question.observations[n].turns & question.evidence}
    present = frozenset[str]().union(*(question.observations[n].turns for n in evidence & shown))
    others = set(ranks) - evidence
    return QuestionResult(
        question=question,
        lost=tuple(sorted(question.evidence - present)),
        others=len(others),
        others_admitted=len(others & shown),
    )


def cpu_of_reads(reads: Sequence[LabelledRead]) -> dict[str, tuple[float, float]]:
    """Mean CPU milliseconds of a read of 15 memories, by method.

    Run it before any other measurement: the encoder caches what it has embedded.

    Args:
        reads: Reads to take queries and memories from.

    Returns:
        For reads whose memories were never embedded in this process, and for later reads of the
        same memories with another query.
    """
    english = [read for read in reads if read.language == "en"]
    memories = [memory for read in english for memory in read.memories]
    groups = [memories[n : n + RECALLED] for n in range(0, len(memories), RECALLED)]
    groups = [group for group in groups if len(group) == RECALLED]
    # Each method has memories of its own; the first group loads the model.
    shares = {"PS": groups[1::2], "FC": groups[2::2]}
    means: dict[str, tuple[float, float]] = {}
    for method, create in METHODS.items():
        graph = create("local")
        _seconds_of(graph, groups[:1], queries=[english[0].query])
        first, later = (
            _seconds_of(graph, shares[method], queries=[read.query for read in english[shift::2]])
            for shift in (0, 1)
        )
        means[method] = (1000 * first, 1000 * later)
    return means


def _seconds_of(
    graph: Any, groups: Sequence[Sequence[LabelledMemory]], *, queries: Sequence[str]
) -> float:
    start = time.process_time()
    for group, query in zip(groups, queries, strict=False):
        recalled = [_recalled(memory, name=str(n)) for n, memory in enumerate(group)]
        graph.invoke({"query": query, "memories": recalled, "now": NOW})
    return (time.process_time() - start) / len(groups)
