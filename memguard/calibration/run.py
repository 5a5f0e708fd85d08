"""Running a judge over labelled memories, through the same graph that guards a store."""

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
class Judged:
    """What the judge made of one labelled memory."""

    memory: LabelledMemory
    """The memory."""
    score: float | None
    """Its score; `None` if the judge gave nothing usable."""
    report: MethodReport
    """The whole account of it."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A judge's work on all memories."""

    judged: tuple[Judged, ...]
    """One per memory, in their order."""
    tau: float
    """The threshold in force."""
    calibration: JudgeCalibration | None
    """The figures; `None` if one label has no score at all."""

    @property
    def usage(self) -> Usage:
        """What it cost."""
        return sum((one.report.usage for one in self.judged), Usage())

    @property
    def inconclusive(self) -> dict[str, int]:
        """Memories without a score, by label."""
        missing = Counter(
            "supported" if one.memory.is_supported else "changed"
            for one in self.judged
            if one.score is None
        )
        return {label: missing[label] for label in ("supported", "changed")}

    @property
    def why_inconclusive(self) -> tuple[str, ...]:
        """What the samples of memories without a score were, the most frequent first."""
        reasons = Counter(
            f"{sample['inconclusive']}: {sample.get('detail') or 'an empty answer'}"
            for one in self.judged
            if one.score is None
            for sample in cast("list[Any]", one.report.evidence.get("samples", []))
            if sample.get("inconclusive")
        )
        return tuple(reason for reason, _ in reasons.most_common())

    @property
    def prompt_digest(self) -> str:
        """Of the judge's prompt; empty for a judge without one."""
        return next((stamp.digest for one in self.judged for stamp in one.report.prompts), "")

    @property
    def notes(self) -> tuple[str, ...]:
        """What the model layer had to do differently, each once."""
        return tuple(dict.fromkeys(note for one in self.judged for note in one.report.notes))


async def measure_judge(
    model: ModelLike,
    *,
    memories: Sequence[LabelledMemory],
    spec: ConsistencyGate,
    target: float = TARGET,
    on_judged: Callable[[Judged], None] | None = None,
) -> Measured:
    """Judge every memory and do the sums. Stores nothing.

    Args:
        model: The judge, as `create_consistency_gate_graph` takes it.
        memories: What to judge.
        spec: Settings of the gate. Early stopping is off here: a mean of fewer samples would be
            another score than the one that is measured.
        target: Contamination that a suggested threshold may have at most.
        on_judged: Told of each memory when it is judged.

    Raises:
        ConfigurationError: If the model cannot be used.
    """
    # In a thread: it reads the prompt, and may import a provider's SDK.
    gate = await asyncio.to_thread(
        create_consistency_gate_graph, model, spec=_without_early_stop(spec)
    )

    async def judge(memory: LabelledMemory) -> Judged:
        found = await gate.ainvoke({"candidate": memory.text, "context": memory.source})
        judged = _read(memory, found)
        if on_judged is not None:
            on_judged(judged)
        return judged

    # One meter for all, so that a wrong key costs one request: those that wait learn of it there.
    with use_meter(Meter()):
        tasks = [asyncio.create_task(judge(memory)) for memory in memories]
    try:
        judged = tuple(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    # The local judge has a threshold of its own.
    told = (_number(one.report, "tau") for one in judged)
    tau = next((one for one in told if one is not None), spec.tau)
    return Measured(
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
    # `model_copy` keeps which fields were set: the local judge has a threshold of its own unless
    # one was named.
    return spec.model_copy(update={"early_stop": False})


def _read(memory: LabelledMemory, found: dict[str, Any]) -> Judged:
    report: MethodReport = found["report"]
    usable = report.decision.reason != "inconclusive"
    return Judged(memory=memory, score=_number(report, "score") if usable else None, report=report)


def _number(report: MethodReport, name: str) -> float | None:
    value = report.evidence.get(name)
    return float(value) if isinstance(value, int | float) else None


def _scores(judged: Sequence[Judged], *, supported: bool) -> list[float]:
    return [
        one.score
        for one in judged
        if one.score is not None and one.memory.is_supported == supported
    ]
