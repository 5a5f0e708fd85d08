"""`memguard models list | pull | path | remove`: small models that run on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memguard.cli.options import JsonOption
from memguard.cli.output import console, print_indented, print_json

if TYPE_CHECKING:
    from memguard.llm.local_models import LocalModel, ModelFigures, StoredModel

app = typer.Typer(
    help="List, fetch or remove small models for --model local:NAME.",
    invoke_without_command=True,
)

NameArgument = Annotated[str, typer.Argument(help="Name of the model.", metavar="NAME")]

_STYLES = {"pulled": "green", "partial": "yellow", "absent": "dim"}
_UNMEASURED = "Not measured as a judge: run memguard calibrate."
_LABEL = 9
"""Columns of the state in front of a model."""


@app.callback()
def models(context: typer.Context, as_json: JsonOption = False) -> None:
    """List, fetch or remove small models for `--model local:NAME`. Without a command: list."""
    if context.invoked_subcommand is None:
        list_models(as_json=as_json)


@app.command("list")
def list_models(as_json: JsonOption = False) -> None:
    """List the models that can be pulled, how well they judge, and what is on this machine."""
    from rich.text import Text

    from memguard.llm.local_models import list_local_models, models_folder

    stored = list_local_models()
    if as_json:
        print_json({"folder": str(models_folder()), "models": stored})
        return

    out = console()
    for entry in stored:
        label = Text(f"{entry.state:<{_LABEL}}", style=_STYLES[entry.state])
        out.print(label.append(entry.model.name, style="bold").append(f"  {_facts(entry)}"))
        for line in _details(entry.model) or [_UNMEASURED]:
            print_indented(line, columns=_LABEL)
    out.print(f"in {models_folder()}")
    out.print("fetch one: memguard models pull NAME; use it: --model local:NAME")


@app.command("pull")
def pull(
    name: NameArgument,
    file: Annotated[
        Path | None,
        typer.Option("--from", help="GGUF file of this machine, copied in place of a download."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option("--url", help="Address of the file: a mirror, or a model of your own."),
    ] = None,
    sha256: Annotated[
        str | None,
        typer.Option("--sha256", help="Digest of a model of your own; required with --url."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch a model, or check the one that is there. An interrupted download is continued."""
    from importlib.util import find_spec

    from memguard.cli.progress import PullBar
    from memguard.llm.local_models import pull_model

    with PullBar(name, quiet=as_json) as bar:
        stored = pull_model(name, url=url, sha256=sha256, file=file, on_progress=bar.note)
    if as_json:
        print_json(stored)
        return
    out = console()
    out.print(f"{stored.path}: {_size(stored.arrived)}, sha256 {stored.model.sha256}")
    if find_spec("xllamacpp") is None:
        out.print("to run it, install llama.cpp: pip install 'langgraph-memguard[llama]'")
    out.print(f"use it: --model local:{name}")


@app.command("path")
def path(name: NameArgument) -> None:
    """Print the file of a model that was pulled."""
    from memguard.llm.local_models import path_of_model

    # Not through rich, which would break a long path into lines.
    typer.echo(path_of_model(name))


@app.command("remove")
def remove(name: NameArgument, as_json: JsonOption = False) -> None:
    """Delete the file of a model, and what has arrived of an interrupted download."""
    from memguard.llm.local_models import remove_model

    freed = remove_model(name)
    if as_json:
        print_json({"name": name, "freed": freed})
        return
    console().print(f"removed {name}: {_size(freed)} are free again")


def _size(count: int | None) -> str:
    """Bytes as people say them: `1.12 GB`."""
    if count is None:
        return "size unknown"
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"  # noqa: PLR2004


def _facts(entry: "StoredModel") -> str:
    """Size, licence and context of a model."""
    model = entry.model
    size = _size(model.size)
    if entry.state == "partial":
        size = f"{_size(entry.arrived)} of {size}"
    context = f"{model.context:,} tokens" if model.context else ""
    return ", ".join(filter(None, [size, model.licence or "licence unknown", context]))


def _details(model: "LocalModel") -> list[str]:
    """What a model is, and a sentence for each measurement."""
    measured = [_measured(figures) for figures in model.figures]
    return [line for line in (model.description, *measured) if line]


def _measured(figures: "ModelFigures") -> str:
    admitted = ", ".join(
        f"tau {point.tau:g} admits {point.true} and {point.wrong}" for point in figures.thresholds
    )
    return (
        f"{figures.gate}: AUC {figures.auc:.2f} ({figures.auc_low:.2f} to {figures.auc_high:.2f}). "
        f"Of {figures.supported} true and {figures.changed} wrong memories, {admitted}. "
        f"{figures.cpu_seconds:.1f} s of one core each ({figures.hardware}, {figures.on})."
    )
