"""`memguard forget`: erase memories for good, after a look at how much that is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memguard.cli import options
from memguard.cli.opening import create_journal, open_store
from memguard.cli.output import console, print_json, print_table

if TYPE_CHECKING:
    from memguard.schema.forgetting import ForgetReport, ForgetSelection

_ROWS = (
    ("records", "current memories in the store"),
    ("superseded", "memories in the store that are no longer current"),
    ("receipts", "receipts of decisions on them"),
    ("quarantined", "of these, candidates in quarantine"),
    ("reads", "receipts of reads that recalled or repeat them"),
    ("extractions", "cached extractions"),
    ("decompositions", "cached units of memories"),
    ("quotes", "other receipts that quote them; only the quotes are erased"),
    ("marks", "other memories with marks that name or quote them"),
)


def forget(
    store: options.StoreOption = "memory",
    embed: options.EmbedOption = None,
    user: options.UserOption = None,
    namespace: options.NamespaceOption = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="ID", help="One memory: its key, or that of a receipt."),
    ] = None,
    contains: Annotated[
        str | None, typer.Option("--contains", metavar="TEXT", help="All memories with this text.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Erase; without it, memories are only counted.")
    ] = False,
    reason: Annotated[
        str, typer.Option("--reason", help="Why, for the log; do not repeat the text.")
    ] = "",
    server_data: Annotated[
        Path | None,
        typer.Option(
            "--server-data",
            metavar="DIR",
            help="Data folder of the Chroma server, if it is on this machine.",
        ),
    ] = None,
    actor: options.ActorOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Erase memories for good, after a count.

    That is a user's memories, one memory, or all with some text, and all that repeats them.
    `--user` or `--namespace` alone means everything there; with `--memory` or `--contains`, they
    say where to look. This cannot be undone.
    """
    from memguard.journal.forgetting import forget as forget_memories
    from memguard.portal import run_sync

    selection = _selection(user, namespace, memory=memory, contains=contains)
    with (
        open_store(store, embed=embed, create=False, data_path=server_data) as opened,
        create_journal(store) as journal,
    ):
        report = run_sync(
            forget_memories(
                journal,
                opened,
                selection=selection,
                actor=options.actor_of(actor),
                reason=reason,
                preview=not yes,
            )
        )
    if as_json:
        print_json({"count": report.count, **report.model_dump(mode="json")})
        return
    _print(report)


def _selection(
    user: str | None, namespace: list[str] | None, *, memory: str | None, contains: str | None
) -> "ForgetSelection":
    from memguard.errors import ErrorCode, InvalidInputError
    from memguard.schema.forgetting import ForgetSelection

    is_placed = user is not None or bool(namespace)
    if not is_placed and memory is None and contains is None:
        msg = "nothing is selected: pass --user, --namespace, --memory or --contains"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    where = options.namespace_of(user, namespace) if is_placed else ()
    if memory is None and contains is None:
        return ForgetSelection(namespace=where, everything=True)
    return ForgetSelection(namespace=where, memory=memory or "", contains=contains or "")


def _print(report: "ForgetReport") -> None:
    counts = report.model_dump()
    rows = [(str(counts[name]), meaning) for name, meaning in _ROWS if counts[name]]
    if report.is_empty:
        console().print("nothing to forget")
        return
    verb = "would be forgotten" if report.preview else "forgotten"
    print_table(f"memories {verb}: {report.count}", ("number", "what"), rows)
    if report.preview:
        console().print("nothing was changed; --yes erases them, which cannot be undone")
    else:
        console().print(f"receipt of the forgetting: {report.receipt_id}")
    for note in report.notes:
        console().print(f"note: {note}")
