"""Runs a judge on labelled memories, through the same graph that guards a store."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from memguard.calibration.pairs import LabelledMemory
from memguard.llm.budget import Meter
from memguard.llm.metering import use_meter
from memguard.llm.models import ModelLike
from memguard.methods.consistency_gate import create_consistency_gate_graph
from memguard.policy.calibration import TARGET, JudgeCalibration, calibrate_scores
from memguard.schema.config import ConsistencyGate
from memguard.schema.receipt import MethodReport
from memguard.schema.usage import Usage


@dataclass(frozen=True, kw_only=True)
class JudgedMemory:
    """The judge's result for one labelled memory."""

    memory: LabelledMemory
    """The memory."""
    score: float | None
    """Its score; `None` if the result is inconclusive."""
    report: MethodReport
    """The full report of the gate."""


@dataclass(frozen=True, kw_only=True)
class JudgeMeasurement:
    """A judge's results for all memories."""

    judged: tuple[JudgedMemory, ...]
    """One result per memory, in their order."""
    tau: float
    """The threshold in force."""
    calibration: JudgeCalibration | None
    """The figures; `None` if all memories of one label are inconclusive."""

    @property
    def usage(self) -> Usage:
        """The total usage of all model calls."""
        return sum((result.report.usage for result in self.judged), Usage())

    @property
    def inconclusive(self) -> dict[str, int]:
        """Number of memories without a score, by label."""
        missing = Counter(
            "supported" if result.memory.is_supported else "changed"
            for result in self.judged
            if result.score is None
        )
        return {label: missing[label] for label in ("supported", "changed")}

    @property
    def why_inconclusive(self) -> tuple[str, ...]:
        """Reasons of the samples of memories without a score, the most frequent first."""
        reasons = Counter(
            f"{sample['inconclusive']}: {sample.get('detail') or 'an empty answer'}"
            for result in self.judged
            if result.score is None
            for sample in cast("list[Any]", result.report.evidence.get("samples", []))
            if sample.get("inconclusive")
        )
        return tuple(reason for reason, _ in reasons.most_common())

    @property
    def prompt_digest(self) -> str:
        """Digest of the judge's prompt; empty for a judge without one."""
        return next((stamp.digest for result in self.judged for stamp in result.report.prompts), "")

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of the model layer, without repeats."""
        return tuple(dict.fromkeys(note for result in self.judged for note in result.report.notes))


async def measure_judge(
    model: ModelLike,
    *,
    memories: Sequence[LabelledMemory],
    spec: ConsistencyGate,
    target: float = TARGET,
    on_judged: Callable[[JudgedMemory], None] | None = None,
) -> JudgeMeasurement:
    """Judge every memory and compute the figures. Stores nothing.

    Args:
        model: The judge, as `create_consistency_gate_graph` takes it.
        memories: The labelled memories.
        spec: Settings of the gate. Early stopping is switched off, because it would change the
            scores that are measured.
        target: Maximum contamination of a suggested threshold.
        on_judged: Called with each result.

    Raises:
        ConfigurationError: If the model cannot be used.
    """
    # In a thread: it reads the prompt, and may import a provider's SDK.
    gate = await asyncio.to_thread(
        create_consistency_gate_graph, model, spec=_without_early_stop(spec)
    )

    async def judge(memory: LabelledMemory) -> JudgedMemory:
        out = await gate.ainvoke({"candidate": memory.text, "context": memory.source})
        judged = _read(memory, out["report"])
        if on_judged is not None:
            on_judged(judged)
        return judged

    # One meter for all calls: after a wrong key fails once, the calls that wait are not made.
    with use_meter(Meter()):
        tasks = [asyncio.create_task(judge(memory)) for memory in memories]
    try:
        judged = tuple(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    # The local judge has a threshold of its own.
    reported = (_number(result.report, "tau") for result in judged)
    tau = next((value for value in reported if value is not None), spec.tau)
    return JudgeMeasurement(
        judged=judged,
        tau=tau,
        calibration=calibrate_scores(
            _scores(judged, supported=True),
            _scores(judged, supported=False),
            tau=tau,
            target=target,
        ),
    )


def _without_early_stop(spec: ConsistencyGate) -> ConsistencyGate:
    # `model_copy` preserves which fields were set: without a `tau` from the caller, the local judge
    # uses its own.
    return spec.model_copy(update={"early_stop": False})


def _read(memory: LabelledMemory, report: MethodReport) -> JudgedMemory:
    usable = report.decision.reason != "inconclusive"
    return JudgedMemory(
        memory=memory, score=_number(report, "score") if usable else None, report=report
    )


def _number(report: MethodReport, name: str) -> float | None:
    value = report.evidence.get(name)
    return float(value) if isinstance(value, int | float) else None


def _scores(judged: Sequence[JudgedMemory], *, supported: bool) -> list[float]:
    return [
        result.score
        for result in judged
        if result.score is not None and result.memory.is_supported == supported
    ]
