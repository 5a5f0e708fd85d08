"""All commands, and what happens when one fails."""

import sys

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

YOUR_MISTAKE = 2
RUN_FAILED = 1
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
    try:
        app()
    except KeyboardInterrupt:
        sys.stderr.write("stopped; what was done is kept\n")
        sys.exit(INTERRUPTED)
    except Exception as error:
        # Only now: a run that succeeds need not load the error tree and pydantic with it.
        from memguard.errors import ConfigurationError, MemguardError

        if not isinstance(error, MemguardError):
            raise
        _explain(error)
        sys.exit(YOUR_MISTAKE if isinstance(error, ConfigurationError) else RUN_FAILED)


def _explain(error: Exception) -> None:
    from memguard.errors import MemguardError

    if not isinstance(error, MemguardError):
        return
    if "--json" in sys.argv:
        import json

        body = {"error": {"code": error.code, "message": error.message}}
        sys.stdout.write(json.dumps(body, ensure_ascii=False) + "\n")
        return
    sys.stderr.write(f"memguard: {error.message}\n  code {error.code}, see docs/errors.md\n")
