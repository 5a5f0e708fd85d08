"""`memguard calibrate`: measure how well a model judges, and suggest a threshold."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memguard.cli.opening import journal_path, pick_model
from memguard.cli.options import (
    BaseUrlOption,
    JsonOption,
    ModelOption,
    PresetOption,
    StoreOption,
)
from memguard.cli.output import console, print_json, print_table
from memguard.errors import ErrorCode, InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from memguard.calibration import CalibrationRecord, JudgeMeasurement, LabelledMemory
    from memguard.calibration.rules import CurvePoint, JudgeCalibration, Proportion
    from memguard.llm.models import Model
    from memguard.methods.consistency_gate.config import ConsistencyGate


def calibrate(
    store: StoreOption = "memory",
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    preset: PresetOption = None,
    variant: Annotated[
        Literal["soft", "logprob"] | None,
        typer.Option(
            "--variant",
            help="Read a score from the answer, or log-probabilities; the preset's by default.",
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "--k", min=1, max=64, help="Samples for each memory; those of the preset by default."
        ),
    ] = None,
    tau: Annotated[
        float | None,
        typer.Option("--tau", min=0, max=1, help="Threshold in use; the preset's by default."),
    ] = None,
    target: Annotated[
        float,
        typer.Option(
            "--target",
            min=0,
            max=1,
            help="Highest acceptable share of wrong memories among the admitted.",
        ),
    ] = 0.1,
    limit: Annotated[int, typer.Option("--limit", min=2, help="Number of memories to judge.")] = 60,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="Threads, for a model in this process.")
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens",
            min=1,
            help="Maximum length of an answer in tokens, for a model in this process.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how well a model judges, and suggest a threshold.

    The model judges labelled memories that ship with memguard. The result is saved next to the
    store, where `memguard doctor` finds it.
    """
    from memguard.calibration import keep_record, load_pairs

    # What is left out is the preset's: no second copy of it is here.
    options = {"variant": variant, "k": k, "tau": tau}
    settings = {name: value for name, value in options.items() if value is not None}
    judge = _tuned(pick_model(model, base_url=base_url), n_threads=threads, max_tokens=max_tokens)
    spec = _gate(preset or (), settings)
    measured = _measure(judge, load_pairs(limit), spec=spec, target=target, quiet=as_json)
    name = judge if isinstance(judge, str) else judge.name
    record = _record(name, measured, spec=spec)
    # Without figures, a record would look like a measurement to `memguard doctor`.
    path = None if record is None else keep_record(journal_path(store).parent, record)
    if as_json:
        _print_for_programs(name, measured, record=record)
    else:
        _print_for_people(name, measured, path=path)


def _gate(presets: "Sequence[str]", settings: dict[str, Any]) -> "ConsistencyGate":
    """The gate that is measured. Its threshold is fixed: there is no namespace to count."""
    from memguard.methods.consistency_gate.config import ConsistencyGate
    from memguard.presets import choose_gates

    (spec,) = choose_gates(["consistency"], presets=presets)
    # From what is set only, so that the local judge can tell a threshold that the user chose.
    chosen = spec.model_dump(include=spec.model_fields_set - {"threshold"})
    return ConsistencyGate.model_validate({**chosen, **settings})


def _tuned(judge: "Model | str", **settings: int | None) -> "Model | str":
    """The judge with settings that only a model in this process has."""
    from dataclasses import replace

    overrides = {name: value for name, value in settings.items() if value is not None}
    if not overrides:
        return judge
    if isinstance(judge, str) or not judge.name.startswith(("llamacpp:", "local:")):
        name = judge if isinstance(judge, str) else judge.name
        msg = (
            "--threads and --max-tokens are for a model in this process (llamacpp:FILE or "
            f"local:NAME), not for {name!r}: omit them"
        )
        raise InvalidInputError(msg, code=ErrorCode.SPEC_INVALID)
    # A copy, because other users of the same model keep its settings.
    return replace(judge, chat=judge.chat.model_copy(update=overrides))


def _measure(
    judge: "Model | str",
    memories: "Sequence[LabelledMemory]",
    *,
    spec: "ConsistencyGate",
    target: float,
    quiet: bool,
) -> "JudgeMeasurement":
    from rich.console import Console
    from rich.progress import Progress

    from memguard.calibration import measure_judge
    from memguard.portal import run_sync

    # On standard error, so that the result can be piped.
    with Progress(console=Console(stderr=True), disable=quiet) as bars:
        bar = bars.add_task("memories judged", total=len(memories))
        return run_sync(
            measure_judge(
                judge,
                memories=memories,
                spec=spec,
                target=target,
                on_judged=lambda _: bars.advance(bar),
            )
        )


def _record(
    name: str, measured: "JudgeMeasurement", *, spec: "ConsistencyGate"
) -> "CalibrationRecord | None":
    """The result to save; `None` if there are no figures."""
    from datetime import UTC, datetime

    from memguard.calibration import CalibrationRecord

    calibration = measured.calibration
    if calibration is None:
        return None
    return CalibrationRecord(
        model=name,
        variant=spec.variant,
        k=spec.k,
        prompt=measured.prompt_digest,
        at=datetime.now(UTC),
        memories=len(measured.judged),
        inconclusive=sum(measured.inconclusive.values()),
        auc=calibration.auc,
        auc_low=calibration.interval.low,
        auc_high=calibration.interval.high,
        tau=measured.tau,
        suggested_tau=None if calibration.suggested is None else calibration.suggested.tau,
        target=calibration.target,
    )


def _print_for_programs(
    name: str, measured: "JudgeMeasurement", *, record: "CalibrationRecord | None"
) -> None:
    calibration = measured.calibration
    print_json(
        {
            "model": name,
            "record": record,
            "curve": [] if calibration is None else [_point(point) for point in calibration.curve],
            "warnings": _warnings(measured),
            "inconclusive": measured.inconclusive,
            "why_inconclusive": measured.why_inconclusive,
            "usage": measured.usage,
            "notes": measured.notes,
            "judged": [
                {
                    "id": result.memory.id,
                    "change": result.memory.change,
                    "supported": result.memory.is_supported,
                    "score": result.score,
                }
                for result in measured.judged
            ],
        }
    )


def _print_for_people(name: str, measured: "JudgeMeasurement", *, path: "Path | None") -> None:
    out, calibration = console(), measured.calibration
    if calibration is not None:
        ends = f"{calibration.interval.low:.2f} to {calibration.interval.high:.2f}"
        out.print(f"{name}: AUC {calibration.auc:.3f} (95 %: {ends}; 0.5 is guessing)")
        print_table(
            f"what a threshold admits, of {calibration.now.recall.total} supported and "
            f"{calibration.changed} changed memories",
            ("tau", "recall", "contamination", ""),
            [_row(point, calibration) for point in calibration.curve],
        )
    for line in (*_warnings(measured), *_advice(measured)):
        out.print(line)
    usage, unscored = measured.usage, measured.inconclusive
    # Counted as 0, a model that fails to answer would look like one that rejects everything.
    out.print(
        f"without a usable answer: {unscored['supported']} supported, {unscored['changed']} "
        "changed (counted separately, not as 0)"
    )
    for reason in measured.why_inconclusive[:3]:
        out.print(f"  {reason}")
    cost = "" if usage.cost is None else f", cost {usage.cost:.4f}"
    out.print(
        f"{usage.calls} calls, {usage.prompt_tokens} tokens read, "
        f"{usage.completion_tokens} written{cost}"
    )
    for note in measured.notes:
        out.print(f"note: {note}")
    if path is not None:
        out.print(f"saved in {path}")


def _row(point: "CurvePoint", calibration: "JudgeCalibration") -> tuple[str, str, str, str]:
    # Both marks are on one row if the threshold in force is the one to suggest.
    marked = (("in force", calibration.now), ("suggested", calibration.suggested))
    marks = [mark for mark, marked_point in marked if marked_point == point]
    recall, contamination = _percent(point.recall), _percent(point.contamination)
    return f"{point.tau:g}", recall, contamination, ", ".join(marks)


def _percent(share: "Proportion") -> str:
    if share.value is None or share.interval is None:
        return "nothing admitted"
    ends = f"{share.interval.low:.0%} to {share.interval.high:.0%}"
    return f"{share.value:.0%} ({share.count} of {share.total}; {ends})"


def _point(point: "CurvePoint") -> dict[str, Any]:
    def body(share: "Proportion") -> dict[str, Any]:
        # No interval where nothing was counted; JSON has `null` for that, and no NaN.
        ends = share.interval
        return {
            "value": share.value,
            "count": share.count,
            "total": share.total,
            "interval": None if ends is None else [ends.low, ends.high],
        }

    shares = {"recall": body(point.recall), "contamination": body(point.contamination)}
    return {"tau": point.tau, **shares}


def _warnings(measured: "JudgeMeasurement") -> list[str]:
    """Reasons not to let this model judge."""
    calibration = measured.calibration
    if calibration is None:
        return ["No figures: the model gave no usable answer for one of the two kinds of memory."]
    warnings: list[str] = []
    scored, judged = calibration.now.recall.total + calibration.changed, len(measured.judged)
    # Whether a memory gets a score may depend on the answer, so a small share is a biased sample.
    if scored * 2 < judged:
        warnings.append(
            f"Only {scored} of {judged} memories got a score; the figures describe only those."
        )
    if calibration.is_chance:
        warnings.append(
            f"On {scored} scored memories, this model ranks no better than chance: "
            "use another model as the judge, or measure more memories."
        )
    if calibration.admits_nothing:
        warnings.append(f"At the threshold in force, {calibration.now.tau:g}, it admits nothing.")
    if calibration.admits_everything:
        warnings.append(
            f"At the threshold in force, {calibration.now.tau:g}, it admits everything, changed "
            "memories included."
        )
    if calibration.suggested is None:
        warnings.append(f"No threshold keeps contamination at {calibration.target:.0%} or less.")
    return warnings


def _advice(measured: "JudgeMeasurement") -> list[str]:
    calibration = measured.calibration
    if calibration is None or calibration.suggested is None or calibration.is_chance:
        return []
    point = calibration.suggested
    shares = f"recall {_percent(point.recall)}, contamination {_percent(point.contamination)}"
    return [
        f"Suggested: ConsistencyGate(tau={point.tau:g}): {shares}.",
        "It was chosen on these same memories, so expect somewhat worse on yours.",
    ]
