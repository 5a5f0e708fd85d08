"""`memguard bench ...`: measurements that you can repeat."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memguard.cli.options import BaseUrlOption, JsonOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memguard.bench.verifier.report import SetMeasurement

_WIDE = 160
"""Columns of the tables in a file or a pipe: no figure is cut there."""

app = typer.Typer(help="Measurements that you can repeat.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measurements that you can repeat."""


@app.command("verifier")
def verifier(
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            envvar="MEMGUARD_DATA",
            help="Folder with locomo/locomo10.json and msc/msc_personasummary.",
            file_okay=False,
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="A language model to put beside it.")
    ] = None,
    base_url: BaseUrlOption = None,
    variant: Annotated[
        Literal["soft", "logprob"], typer.Option("--variant", help="How the model is asked.")
    ] = "soft",
    k: Annotated[int, typer.Option("--k", min=1, max=64, help="Samples per claim.")] = 5,
    limit: Annotated[
        int | None, typer.Option("--limit", min=2, help="Facts of each set; all if left out.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the local judge on sets nothing was trained on, beside simpler ones."""
    from memguard.bench.verifier.measure import measure_locally, measure_model, read_sets
    from memguard.bench.verifier.report import SetMeasurement
    from memguard.cli.opening import open_model
    from memguard.local import MiniLmEncoder, SupportVerifier
    from memguard.portal import run_sync
    from memguard.schema.config import ConsistencyGate

    beside = None if model is None else open_model(model, base_url=base_url)
    encoder = MiniLmEncoder(threads=1)
    judge = SupportVerifier(encoder=encoder)
    judge.warm()
    measured: list[SetMeasurement] = []
    for chosen in read_sets(data, limit=limit, skipped=_note):
        judged = measure_locally(chosen, verifier=judge, encoder=encoder)
        if beside is not None:
            spec = ConsistencyGate(variant=variant, k=k)
            judged.append(run_sync(measure_model(chosen, beside, spec=spec, name=beside.name)))
        measured.append(SetMeasurement(evaluation_set=chosen, judges=judged))
    _show(measured, judge=judge, as_json=as_json)


def _note(text: str) -> None:
    typer.echo(text, err=True)


def _show(measured: "Sequence[SetMeasurement]", *, judge: Any, as_json: bool) -> None:
    from memguard.bench.verifier import report
    from memguard.cli.output import console, print_json, print_table

    if as_json:
        body = {"version": judge.version, "tau": judge.tau, "sets": report.as_values(measured)}
        print_json(body)
        return
    names = tuple(each.name for each in measured)
    out = console()
    out.print(f"{judge.version}, threshold {judge.tau:.2f}; 95 % Wilson intervals in brackets")
    print_table("judges", report.JUDGE_COLUMNS, report.judge_rows(measured), least_width=_WIDE)
    title = "wrong claims the verifier admits, by what was changed"
    print_table(title, ("changed", *names), report.kind_rows(measured), least_width=_WIDE)
    title = "contamination / recall of the verifier, %, as the threshold moves"
    print_table(title, ("threshold", *names), report.threshold_rows(measured), least_width=_WIDE)
    out.print(report.cpu_line(measured))
