"""`memguard export | import`: everything of a user as JSON lines, and back."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from memguard.cli import options
from memguard.cli.changes import confirm
from memguard.cli.opening import open_memories
from memguard.cli.options import actor_of
from memguard.cli.output import console, print_json

_STDOUT = "-"


def export(
    file: Annotated[
        str, typer.Argument(help="File to write, or - for standard output.", metavar="FILE")
    ],
    yes: options.YesOption = False,
    store: options.StoreOption = "memory",
    embed: options.EmbedOption = None,
    user: options.UserOption = None,
    namespace: options.NamespaceOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Write all memories with their receipts to a file.

    The file has a JSON object on each line: every memory, current or not, with its origin, and
    every receipt. Only memories of exactly the namespace are written, and only the owner of the
    file can read it.
    """
    path = Path(file)
    if file != _STDOUT and path.exists() and not yes:
        confirm(f"Replace the file {file}?", as_json=as_json)
    with open_memories(store, embed=embed, user=user, namespace=namespace) as memories:
        report = memories.export(sys.stdout if file == _STDOUT else path)
    if file == _STDOUT:
        return  # anything else on standard output would not be a line of the export
    if as_json:
        print_json(report)
        return
    out = console()
    out.print(f"{report.memories} memories and {report.receipts} receipts written to {file}")
    if report.left_out:
        out.print(f"left out: {report.left_out} receipts that quote a secret in quarantine")


def import_file(
    file: Annotated[str, typer.Argument(help="File that `export` wrote.", metavar="FILE")],
    on_conflict: Annotated[
        str,
        typer.Option(
            help="raise or skip: what to do if something else is stored under the same id."
        ),
    ] = "raise",
    store: options.StoreOption = "memory",
    embed: options.EmbedOption = None,
    user: options.UserOption = None,
    namespace: options.NamespaceOption = None,
    actor: options.ActorOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Restore an export of the same user.

    Memories keep their ids, origin and state, and receipts their ids. The file is checked as a
    whole before anything is written. Importing it again changes nothing.
    """
    from typing import cast

    from memguard.memories.imports import OnImportConflict

    with open_memories(store, embed=embed, user=user, namespace=namespace, create=True) as memories:
        report = memories.import_(
            file, actor=actor_of(actor), on_conflict=cast("OnImportConflict", on_conflict)
        )
    if as_json:
        print_json(report)
        return
    out = console()
    out.print(
        f"{report.memories} memories and {report.receipts} receipts restored; "
        f"{report.unchanged} were there already"
    )
    for reason in report.skipped:
        out.print(f"left out: {reason}")
