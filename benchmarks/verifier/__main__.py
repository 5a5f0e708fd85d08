"""Measures the local judge: `python -m benchmarks.verifier --data FOLDER`."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memguard.cli.options import BaseUrlOption, JsonOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.verifier.report import SetMeasurement

_WIDE = "160"
"""Columns of the tables in a file or a pipe, wide enough for every figure."""

app = typer.Typer(add_completion=False)


@app.command()
def verifier(
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            envvar="MEMGUARD_DATA",
            help="Folder with the data sets locomo/locomo10.json and msc/msc_personasummary.",
            file_okay=False,
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Language model to compare with.")
    ] = None,
    base_url: BaseUrlOption = None,
    variant: Annotated[
        Literal["soft", "logprob"],
        typer.Option("--variant", help="Read a score from the answer, or log-probabilities."),
    ] = "soft",
    k: Annotated[int, typer.Option("--k", min=1, max=64, help="Samples for each claim.")] = 5,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=2, help="Number of facts from each data set; all by default."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the local judge on data that it was not trained on.

    Simpler judges, and a language model if one is named, are measured on the same data.
    """
    from benchmarks.verifier.measure import measure_locally, measure_model, read_sets
    from benchmarks.verifier.report import SetMeasurement
    from memguard.llm.models import resolve_model
    from memguard.local import MiniLmEncoder, SupportVerifier
    from memguard.methods.consistency_gate.config import ConsistencyGate
    from memguard.portal import run_sync

    opponent = None if model is None else resolve_model(model, base_url=base_url)
    # The report has CPU times, which several threads would blur.
    encoder = MiniLmEncoder(threads=1)
    judge = SupportVerifier(encoder=encoder)
    judge.warm()  # loading the model does not count as judging
    measured: list[SetMeasurement] = []
    for chosen in read_sets(data, limit=limit, skipped=_note):
        judged = measure_locally(chosen, verifier=judge, encoder=encoder)
        if opponent is not None:
            spec = ConsistencyGate(variant=variant, k=k)
            judged.append(run_sync(measure_model(chosen, opponent, spec=spec, name=opponent.name)))
        measured.append(SetMeasurement(evaluation_set=chosen, judges=judged))
    _show(measured, judge=judge, as_json=as_json)


def _note(text: str) -> None:
    typer.echo(text, err=True)


def _show(measured: "Sequence[SetMeasurement]", *, judge: Any, as_json: bool) -> None:
    from benchmarks.verifier import report
    from memguard.cli.output import console, print_json, print_table

    if as_json:
        body = {"version": judge.version, "tau": judge.tau, "sets": report.as_values(measured)}
        print_json(body)
        return
    names = tuple(result.name for result in measured)
    # A file and a pipe have no width of their own; rich then takes that of the environment.
    if not sys.stdout.isatty():
        os.environ.setdefault("COLUMNS", _WIDE)
    out = console()
    out.print(f"{judge.version}, threshold {judge.tau:.2f}; 95 % Wilson intervals in brackets")
    print_table("judges", report.JUDGE_COLUMNS, report.judge_rows(measured))
    title = "wrong claims the verifier admits, by what was changed"
    print_table(title, ("changed", *names), report.kind_rows(measured))
    title = "contamination / recall of the verifier, %, as the threshold moves"
    print_table(title, ("threshold", *names), report.threshold_rows(measured))
    out.print(report.cpu_line(measured))


if __name__ == "__main__":
    app(prog_name="python -m benchmarks.verifier")
