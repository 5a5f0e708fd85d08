"""All commands, and how the program ends when one of them fails.

Commands import what they need inside their functions: `--help` and a mistyped option then load
neither pydantic nor LangGraph. Errors, options and output are light and are imported at the top.
"""

import io
import sys
from typing import Annotated, Any

import typer

import memguard
from memguard.cli import (
    calibrate,
    changes,
    chat,
    check,
    demo,
    doctor,
    exchange,
    explain,
    forget,
    graph,
    memories,
    models,
    presets,
    quarantine,
    recall,
    receipts,
    rescore,
    scrub,
    search,
    write,
)
from memguard.cli.output import YOUR_MISTAKE, error_body, exit_code, print_json
from memguard.errors import ErrorCode, InvalidInputError, MemguardError

# What a shell reports for a program that SIGINT ended: 128 and the number of the signal.
INTERRUPTED = 130

EXIT_CODES = """\
Exit codes: 0 success; 1 the run failed, `write` left turns for a later run, or `doctor` found a
problem; 2 a mistake in the command, the settings or the input; 130 interrupted. `memguard explain`
describes every error code.
"""

app = typer.Typer(
    name="memguard",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    # Plain help needs no rich, which would double the time to the first character.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"memguard {memguard.__version__}")
        raise typer.Exit


@app.callback()
def memguard_program(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Check the memories of an agent before they are stored and before they are used."""
    del version  # the callback of the option has handled it


app.command("write")(write.write)
app.command("check")(check.check)
app.command("chat")(chat.chat)
app.command("recall")(recall.recall)
app.command("search")(search.search)
app.command("list")(memories.list_memories)
app.command("show")(memories.show)
app.command("history")(memories.history)
app.command("add")(changes.add)
app.command("edit")(changes.edit)
app.command("delete")(changes.delete)
app.command("undo")(changes.undo)
app.command("export")(exchange.export)
app.command("import")(exchange.import_file)
app.add_typer(receipts.app, name="receipts")
app.add_typer(quarantine.app, name="quarantine")
app.command("rescore")(rescore.rescore)
app.command("scrub")(scrub.scrub)
app.command("forget")(forget.forget)
app.command("demo")(demo.demo)
app.add_typer(models.app, name="models")
app.command("presets")(presets.presets)
app.command("calibrate")(calibrate.calibrate)
app.command("doctor")(doctor.doctor)
app.command("explain")(explain.explain)
app.command("graph")(graph.graph)


def run() -> None:
    """Run the command line as a program and exit with a code of `EXIT_CODES`."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that lacks a letter of a memory shows its escape, and the rest.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = app(standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):  # Abort: the input ended at a prompt
        code = INTERRUPTED
    except Exception as error:
        code = _report(error)
    if code == INTERRUPTED:
        sys.stderr.write("interrupted; finished work is kept\n")
    sys.exit(code or 0)


def _report(error: Exception) -> int:
    """Explain an error to a person or to a program; a defect of memguard is raised."""
    # A command line that cannot be parsed; typer has no public name for this error.
    usage_error: Any = error if hasattr(error, "format_message") else None
    if usage_error is not None:
        error = InvalidInputError(usage_error.format_message(), code=ErrorCode.INPUT_INVALID)
    if not isinstance(error, MemguardError):
        raise error
    # The options were parsed inside the command, which is over; only its arguments are left.
    if "--json" in sys.argv:
        print_json(error_body(error))
    elif usage_error is not None:
        usage_error.show()
        return YOUR_MISTAKE
    else:
        help_line = f"for details: memguard explain {error.code}\n             {error.url}"
        sys.stderr.write(f"memguard: {error.message}\n{help_line}\n")
    return exit_code(error)
