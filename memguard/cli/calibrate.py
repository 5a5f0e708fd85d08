"""`memguard calibrate`: how well a model judges, and which threshold suits it."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memguard.cli.options import BaseUrlOption, JsonOption, ModelOption, StoreOption

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from memguard.calibration import CalibrationRecord, JudgeMeasurement, LabelledMemory
    from memguard.llm.models import Model
    from memguard.policy.calibration import CurvePoint, JudgeCalibration, Proportion
    from memguard.schema.config import ConsistencyGate

_ALL = 60
_MOST_REASONS = 3
"""Reasons printed for memories without a score."""


def calibrate(
    store: StoreOption = "memory",
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    variant: Annotated[
        Literal["soft", "logprob"], typer.Option("--variant", help="How the model is asked.")
    ] = "soft",
    k: Annotated[int, typer.Option("--k", min=1, max=64, help="Samples per memory.")] = 5,
    tau: Annotated[
        float | None,
        typer.Option(
            "--tau", min=0, max=1, help="The threshold you use; the gate's own if left out."
        ),
    ] = None,
    target: Annotated[
        float, typer.Option("--target", min=0, max=1, help="Contamination aimed at.")
    ] = 0.1,
    limit: Annotated[
        int, typer.Option("--limit", min=2, help="Judge only the first so many memories.")
    ] = _ALL,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="Threads of a llamacpp: model.")
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", min=1, help="Longest answer of a llamacpp: model, in tokens."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a judge on labelled memories, and note the result beside the store."""
    from memguard.calibration import keep_record, load_pairs
    from memguard.cli.opening import journal_path, pick_model
    from memguard.schema.config import ConsistencyGate

    settings: dict[str, Any] = {"variant": variant, "k": k}
    if tau is not None:
        settings["tau"] = tau
    judge = _tuned(pick_model(model, base_url=base_url), n_threads=threads, max_tokens=max_tokens)
    spec = ConsistencyGate(**settings)
    measured = _measure(judge, load_pairs(limit), spec=spec, target=target, quiet=as_json)
    name = judge if isinstance(judge, str) else judge.name
    record = _record(name, measured, spec=spec)
    path = None if record is None else keep_record(journal_path(store).parent, record)
    if as_json:
        _print_for_programs(name, measured, record=record)
    else:
        _print_for_people(name, measured, path=path)


def _tuned(judge: "Model | str", **settings: int | None) -> "Model | str":
    """The judge with these settings of a model in this process, where any is given."""
    from dataclasses import replace

    from memguard.errors import ErrorCode, InvalidInputError

    given = {name: value for name, value in settings.items() if value is not None}
    if not given:
        return judge
    if isinstance(judge, str) or not judge.name.startswith("llamacpp:"):
        name = judge if isinstance(judge, str) else judge.name
        msg = f"--threads and --max-tokens are for a llamacpp: model, not for {name!r}: leave them"
        raise InvalidInputError(msg, code=ErrorCode.SPEC_INVALID)
    return replace(judge, chat=judge.chat.model_copy(update=given))


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
    """What is noted; nothing when there are no figures."""
    from datetime import UTC, datetime

    from memguard.calibration import CalibrationRecord

    found = measured.calibration
    if found is None:
        return None
    return CalibrationRecord(
        model=name,
        variant=spec.variant,
        k=spec.k,
        prompt=measured.prompt_digest,
        at=datetime.now(UTC),
        memories=len(measured.judged),
        inconclusive=sum(measured.inconclusive.values()),
        auc=found.auc,
        auc_low=found.interval.low,
        auc_high=found.interval.high,
        tau=measured.tau,
        suggested_tau=None if found.suggested is None else found.suggested.tau,
        target=found.target,
    )


def _print_for_programs(
    name: str, measured: "JudgeMeasurement", *, record: "CalibrationRecord | None"
) -> None:
    from memguard.cli.output import print_json

    found = measured.calibration
    print_json(
        {
            "model": name,
            "record": None if record is None else record.model_dump(mode="json"),
            "curve": [] if found is None else [_point(one) for one in found.curve],
            "warnings": _warnings(measured),
            "inconclusive": measured.inconclusive,
            "why_inconclusive": measured.why_inconclusive,
            "usage": measured.usage.model_dump(mode="json"),
            "notes": measured.notes,
            "judged": [
                {
                    "id": one.memory.id,
                    "change": one.memory.change,
                    "supported": one.memory.is_supported,
                    "score": one.score,
                }
                for one in measured.judged
            ],
        }
    )


def _print_for_people(name: str, measured: "JudgeMeasurement", *, path: "Path | None") -> None:
    from memguard.cli.output import console, print_table

    out, found = console(), measured.calibration
    if found is not None:
        ends = f"{found.interval.low:.2f} to {found.interval.high:.2f}"
        out.print(f"{name}: AUC {found.auc:.3f} (95 %: {ends}; 0.5 is guessing)")
        print_table(
            f"what a threshold admits, of {found.now.recall.total} supported and "
            f"{found.changed} changed memories",
            ("tau", "recall", "contamination", ""),
            [_row(one, found) for one in found.curve],
        )
    for line in (*_warnings(measured), *_advice(measured)):
        out.print(line)
    usage, missing = measured.usage, measured.inconclusive
    out.print(
        f"without a usable answer: {missing['supported']} supported, {missing['changed']} changed "
        f"(counted apart, not as 0)"
    )
    for reason in measured.why_inconclusive[:_MOST_REASONS]:
        out.print(f"  {reason}")
    cost = "" if usage.cost is None else f", cost {usage.cost:.4f}"
    out.print(
        f"{usage.calls} calls, {usage.prompt_tokens} tokens read, "
        f"{usage.completion_tokens} written{cost}"
    )
    for note in measured.notes:
        out.print(f"note: {note}")
    if path is not None:
        out.print(f"noted in {path}")


def _row(point: "CurvePoint", found: "JudgeCalibration") -> tuple[str, str, str, str]:
    marks = [
        mark
        for mark, one in (("in force", found.now), ("suggested", found.suggested))
        if one == point
    ]
    return (
        f"{point.tau:g}",
        _percent(point.recall),
        _percent(point.contamination),
        ", ".join(marks),
    )


def _percent(share: "Proportion") -> str:
    if share.value is None or share.interval is None:
        return "nothing admitted"
    ends = f"{share.interval.low:.0%} to {share.interval.high:.0%}"
    return f"{share.value:.0%} ({share.count} of {share.total}; {ends})"


def _point(point: "CurvePoint") -> dict[str, Any]:
    def body(share: "Proportion") -> dict[str, Any]:
        ends = share.interval
        return {
            "value": share.value,
            "count": share.count,
            "total": share.total,
            "interval": None if ends is None else [ends.low, ends.high],
        }

    return {
        "tau": point.tau,
        "recall": body(point.recall),
        "contamination": body(point.contamination),
    }


def _warnings(measured: "JudgeMeasurement") -> list[str]:
    """What speaks against letting this model judge, in plain words."""
    found = measured.calibration
    if found is None:
        return ["No figures: the model gave no usable answer for one of the two kinds of memory."]
    said: list[str] = []
    scored, asked = found.now.recall.total + found.changed, len(measured.judged)
    if scored * 2 < asked:
        said.append(
            f"Only {scored} of {asked} memories got a score; the figures are about those alone."
        )
    if found.is_chance:
        said.append(
            f"As far as {scored} scored memories can tell, this model ranks no better than chance: "
            f"let another one judge, or measure more."
        )
    if found.admits_nothing:
        said.append(f"At the threshold in force, {found.now.tau:g}, it admits nothing.")
    if found.admits_everything:
        said.append(
            f"At the threshold in force, {found.now.tau:g}, it admits everything, changed memories "
            f"included."
        )
    if found.suggested is None:
        said.append(f"No threshold keeps contamination at {found.target:.0%} or less.")
    return said


def _advice(measured: "JudgeMeasurement") -> list[str]:
    found = measured.calibration
    if found is None or found.suggested is None or found.is_chance:
        return []
    point = found.suggested
    shares = f"recall {_percent(point.recall)}, contamination {_percent(point.contamination)}"
    return [
        f"Suggested: ConsistencyGate(tau={point.tau:g}): {shares}.",
        "It was chosen on these same memories, so expect somewhat worse on yours.",
    ]
