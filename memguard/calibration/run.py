"""Measures a judge on labelled memories, and stores the results in `calibration.json`."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import Field

from memguard.calibration.pairs import LabelledMemory
from memguard.calibration.rules import TARGET, JudgeCalibration, calibrate_scores
from memguard.errors import ErrorCode, StoreConfigurationError
from memguard.llm.limits import Meter, use_meter
from memguard.llm.models import ModelLike
from memguard.methods.consistency_gate import build_consistency_gate_graph, build_judge
from memguard.methods.consistency_gate.config import ConsistencyGate
from memguard.private_files import create_file, create_folder
from memguard.schema.base import Frozen
from memguard.schema.memory import Moment
from memguard.schema.receipt import MethodReport, Usage

RECORD_FILE = "calibration.json"
"""Name of the file with all measurements, in the folder of the store."""


class CalibrationRecord(Frozen):
    """The latest measurement of one judge."""

    model: str
    """The judge's name, as on receipts."""
    variant: str
    """`soft` or `logprob`."""
    k: int
    """Samples per memory."""
    prompt: str
    """Digest of the judge's prompt; empty for the local judge."""
    at: Moment
    """The time of the measurement."""
    memories: int
    """Number of labelled memories that were judged."""
    inconclusive: int
    """Number of memories without a score."""
    auc: float
    """The area under the curve."""
    auc_low: float
    """Lower end of the AUC's 95 % interval."""
    auc_high: float
    """Upper end of the AUC's 95 % interval."""
    tau: float
    """The threshold in use."""
    suggested_tau: float | None
    """The suggested threshold; `None` if no threshold meets the target."""
    target: float
    """Maximum contamination of the suggested threshold."""


class _RecordsFile(Frozen):
    version: int = 1
    records: tuple[CalibrationRecord, ...] = Field(default=())


def find_records(folder: Path, *, model: str) -> tuple[CalibrationRecord, ...]:
    """The measurements of one model, the latest last.

    Raises:
        StoreConfigurationError: If the file exists and cannot be read.
    """
    records = [record for record in _read(folder / RECORD_FILE).records if record.model == model]
    # As text, because a time may be missing.
    return tuple(sorted(records, key=lambda record: str(record.at)))


def keep_record(folder: Path, record: CalibrationRecord) -> Path:
    """Store a measurement, replacing an earlier one of the same model and variant.

    Returns:
        The path of the file.

    Raises:
        StoreConfigurationError: If the file cannot be read or written.
    """
    path = folder / RECORD_FILE
    others = tuple(
        other
        for other in _read(path).records
        if (other.model, other.variant) != (record.model, record.variant)
    )
    body = _RecordsFile(records=(*others, record)).model_dump_json(indent=1)
    try:
        create_folder(folder)
        # Written to another file first, so that a reader never sees half a file.
        draft = path.with_name(f".{RECORD_FILE}.{os.getpid()}")
        create_file(draft)
        draft.write_text(body + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        msg = f"{str(path)!r} cannot be written ({error.strerror}); name another --store"
        raise StoreConfigurationError(msg, code=ErrorCode.STORE_PATH) from error
    return path


def _read(path: Path) -> _RecordsFile:
    try:
        return _RecordsFile.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return _RecordsFile()
    except OSError as error:
        reason, advice = error.strerror, "check its rights, or name another --store"
    except ValueError as error:  # not JSON, or another layout
        reason, advice = str(error).splitlines()[0], "delete it and calibrate again"
    msg = f"{str(path)!r} cannot be read ({reason}); {advice}"
    raise StoreConfigurationError(msg, code=ErrorCode.STORE_PATH)


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
    """One result per memory, in the order of the memories."""
    tau: float
    """The threshold in use."""
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
    judge_of_gate = await asyncio.to_thread(
        build_judge,
        model,
        # `model_copy` preserves which fields were set: without a `tau` from the caller, the local
        # judge uses its own.
        spec=spec.model_copy(update={"early_stop": False}),
    )
    # As inside a guard, where nothing is withheld from the judge: the judge alone is measured.
    gate = build_consistency_gate_graph(judge_of_gate, store=None)

    async def judge(memory: LabelledMemory) -> JudgedMemory:
        out = await gate.ainvoke({"candidate": memory.text, "context": memory.source})
        report: MethodReport = out["report"]
        usable = report.decision.reason != "inconclusive"
        score = _number(report, "score") if usable else None
        judged = JudgedMemory(memory=memory, score=score, report=report)
        if on_judged is not None:
            on_judged(judged)
        return judged

    # One meter for all calls: after one call fails because of a wrong key, the others are not made.
    with use_meter(Meter()):
        tasks = [asyncio.create_task(judge(memory)) for memory in memories]
    try:
        judged = tuple(await asyncio.gather(*tasks))
    finally:
        # After one failure, `gather` leaves the other tasks running.
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    # The local judge has its own threshold, which is in its reports.
    taus = (_number(result.report, "tau") for result in judged)
    tau = next((value for value in taus if value is not None), spec.tau)
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


def _number(report: MethodReport, name: str) -> float | None:
    value = report.evidence.get(name)
    return float(value) if isinstance(value, int | float) else None


def _scores(judged: Sequence[JudgedMemory], *, supported: bool) -> list[float]:
    return [
        result.score
        for result in judged
        if result.score is not None and result.memory.is_supported == supported
    ]
