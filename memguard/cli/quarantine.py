"""`memguard quarantine list | show | release | discard`: candidates that wait for a person."""

from typing import Annotated

import typer

from memguard.cli import options
from memguard.cli.opening import open_journal, open_store
from memguard.cli.output import console, print_decisions, print_json
from memguard.cli.show import print_receipt

app = typer.Typer(help="List, release or discard what is in quarantine.", no_args_is_help=True)

ReasonOption = Annotated[str, typer.Option("--reason", help="Reason for the log.")]


@app.command("list")
def list_quarantined(
    store: options.StoreOption = "memory",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries.")] = 50,
    as_json: options.JsonOption = False,
) -> None:
    """List what is in quarantine now, newest first."""
    from memguard.journal.quarantine import Quarantine

    with open_journal(store) as journal:
        page = Quarantine(journal).list(limit=limit)
    if as_json:
        # The key stays as it is, because programs read it.
        print_json({"held": page.receipts, "before": page.before})
        return
    print_decisions(page.receipts, title=f"{len(page.receipts)} in quarantine")


@app.command("show")
def show_quarantined(
    receipt_id: options.ReceiptArgument,
    store: options.StoreOption = "memory",
    as_json: options.JsonOption = False,
) -> None:
    """Print one candidate in quarantine, with its history."""
    from memguard.journal.quarantine import Quarantine

    with open_journal(store) as journal:
        entry = Quarantine(journal).show(receipt_id)
    if as_json:
        print_json({"state": entry.state, "receipt": entry.receipt, "history": entry.history})
        return
    console().print(f"state: {entry.state}")
    print_receipt(entry.receipt, history=entry.history)


@app.command("release")
def release_quarantined(
    receipt_id: options.ReceiptArgument,
    store: options.StoreOption = "memory",
    embed: options.EmbedOption = None,
    actor: options.ActorOption = None,
    reason: ReasonOption = "",
    as_json: options.JsonOption = False,
) -> None:
    """Store a candidate from quarantine."""
    from memguard.journal.quarantine import Quarantine

    # The journal first: without one, a misspelled name must not create a store.
    with open_journal(store) as journal, open_store(store, embed=embed) as opened:
        released = Quarantine(journal).release(
            receipt_id, actor=options.actor_of(actor), store=opened, reason=reason
        )
    if as_json:
        print_json({"released": released.record, "already": released.already})
        return
    state = "was released before" if released.already else "stored"
    console().print(f"{state}: {released.record.text}")


@app.command("discard")
def discard_quarantined(
    receipt_id: options.ReceiptArgument,
    store: options.StoreOption = "memory",
    actor: options.ActorOption = None,
    reason: ReasonOption = "",
    as_json: options.JsonOption = False,
) -> None:
    """Discard a candidate from quarantine; its receipt stays."""
    from memguard.journal.quarantine import Quarantine

    with open_journal(store) as journal:
        entry = Quarantine(journal).discard(
            receipt_id, actor=options.actor_of(actor), reason=reason
        )
    if as_json:
        print_json({"state": entry.state, "receipt": entry.receipt.id})
        return
    console().print(f"{entry.state}: {entry.candidate.text}")
