"""All commands, and what happens when one fails."""

import io
import sys
from typing import Any

import typer

from memguard.cli import (
    bench,
    calibrate,
    chat,
    check,
    demo,
    doctor,
    graph,
    presets,
    quarantine,
    recall,
    receipts,
    rescore,
    search,
    write,
)

INTERRUPTED = 130

app = typer.Typer(
    name="memguard",
    help="Checks memories before an agent stores them, and says why.",
    no_args_is_help=True,
    # Plain help needs no rich, which would double the time to the first character.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("write")(write.write)
app.command("check")(check.check)
app.command("chat")(chat.chat)
app.command("recall")(recall.recall)
app.command("search")(search.search)
app.add_typer(receipts.app, name="receipts")
app.add_typer(quarantine.app, name="quarantine")
app.command("rescore")(rescore.rescore)
app.command("demo")(demo.demo)
app.command("presets")(presets.presets)
app.command("calibrate")(calibrate.calibrate)
app.add_typer(bench.app, name="bench")
app.command("doctor")(doctor.doctor)
app.command("graph")(graph.graph)


def run() -> None:
    """Run the command line as a program: exit code 2 is your mistake, 1 is a failed run."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that lacks a letter of a memory shows its escape, and the rest.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        ended = app(standalone_mode=False)
    except KeyboardInterrupt:
        ended = INTERRUPTED
    except typer.Abort:  # the input ended where an answer was wanted
        ended = INTERRUPTED
    except Exception as error:
        ended = _explain(error)
    if ended == INTERRUPTED:
        sys.stderr.write("stopped; what was done is kept\n")
    sys.exit(ended or 0)


def _explain(error: Exception) -> int:
    """Say what went wrong, to a person or to a program; what is a defect of ours is raised."""
    # Only now: a run that succeeds need not load the error tree and pydantic with it.
    from memguard.cli.output import YOUR_MISTAKE, error_body, exit_code, print_json
    from memguard.errors import ErrorCode, InvalidInputError, MemguardError

    # A command line that cannot be read; typer has no public name for this error.
    unreadable: Any = error if hasattr(error, "format_message") else None
    known = error
    if unreadable is not None:
        known = InvalidInputError(unreadable.format_message(), code=ErrorCode.INPUT_INVALID)
    if not isinstance(known, MemguardError):
        raise error
    if "--json" in sys.argv:
        print_json(error_body(known))
    elif unreadable is not None:
        unreadable.show()
        return YOUR_MISTAKE
    else:
        sys.stderr.write(f"memguard: {known.message}\n  code {known.code}, see docs/errors.md\n")
    return exit_code(known)
