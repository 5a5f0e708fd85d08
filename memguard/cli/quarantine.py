"""`memguard quarantine list | show | release | discard`: what is held on doubt."""

from typing import Annotated

import typer

from memguard.cli.options import ActorOption, EmbedOption, JsonOption, StoreOption, actor_of

app = typer.Typer(help="Candidates held on doubt.", no_args_is_help=True)

IdArgument = Annotated[
    str, typer.Argument(help="The id of the receipt, or the beginning of it.", metavar="ID")
]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why, for the log.")]


@app.command("list")
def list_held(
    store: StoreOption = "memory",
    limit: Annotated[int, typer.Option(min=1, help="Entries to print.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """Print what is held now, newest first."""
    from memguard.cli.opening import open_journal
    from memguard.cli.output import print_decisions, print_json
    from memguard.journal.quarantine import Quarantine

    with open_journal(store) as journal:
        page = Quarantine(journal).list(limit=limit)
    if as_json:
        bodies = [receipt.model_dump(mode="json") for receipt in page.receipts]
        print_json({"held": bodies, "before": page.before})
        return
    print_decisions(page.receipts, title=f"{len(page.receipts)} held")


@app.command("show")
def show_held(
    receipt_id: IdArgument, store: StoreOption = "memory", as_json: JsonOption = False
) -> None:
    """Print one held candidate, with all that happened to it."""
    from memguard.cli.opening import open_journal
    from memguard.cli.output import console, print_json
    from memguard.cli.show import print_receipt
    from memguard.journal.quarantine import Quarantine

    with open_journal(store) as journal:
        held = Quarantine(journal).show(receipt_id)
    if as_json:
        events = [event.model_dump(mode="json") for event in held.history]
        body = {"state": held.state, "receipt": held.receipt.model_dump(mode="json")}
        print_json({**body, "history": events})
        return
    console().print(f"state: {held.state}")
    print_receipt(held.receipt, history=held.history)


@app.command("release")
def release_held(
    receipt_id: IdArgument,
    store: StoreOption = "memory",
    embed: EmbedOption = None,
    actor: ActorOption = None,
    reason: ReasonOption = "",
    as_json: JsonOption = False,
) -> None:
    """Store a held candidate after all."""
    from memguard.cli.opening import open_journal, open_store
    from memguard.cli.output import console, print_json
    from memguard.journal.quarantine import Quarantine

    with open_journal(store) as journal, open_store(store, embed=embed) as opened:
        released = Quarantine(journal).release(
            receipt_id, actor=actor_of(actor), store=opened, reason=reason
        )
    if as_json:
        record = released.record.model_dump(mode="json")
        print_json({"released": record, "already": released.already})
        return
    said = "was released before" if released.already else "stored"
    console().print(f"{said}: {released.record.text}")


@app.command("discard")
def discard_held(
    receipt_id: IdArgument,
    store: StoreOption = "memory",
    actor: ActorOption = None,
    reason: ReasonOption = "",
    as_json: JsonOption = False,
) -> None:
    """Throw a held candidate out; its receipt stays."""
    from memguard.cli.opening import open_journal
    from memguard.cli.output import console, print_json
    from memguard.journal.quarantine import Quarantine

    with open_journal(store) as journal:
        held = Quarantine(journal).discard(receipt_id, actor=actor_of(actor), reason=reason)
    if as_json:
        print_json({"state": held.state, "receipt": held.receipt.id})
        return
    console().print(f"{held.state}: {held.candidate.text}")
