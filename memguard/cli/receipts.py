"""`memguard receipts list | show | rescore`: every decision and read, with the reason."""

from typing import TYPE_CHECKING, Annotated

import typer

from memguard.cli import options
from memguard.cli.opening import open_journal
from memguard.cli.output import console, counts_line, print_decisions, print_json
from memguard.cli.rescore import rescore
from memguard.cli.show import print_read, print_reads, print_receipt
from memguard.errors import ErrorCode, InvalidInputError

if TYPE_CHECKING:
    from memguard.journal.reads import ReadLog
    from memguard.journal.receipts import ReceiptFilter, ReceiptLog
    from memguard.schema.read import ReadReport
    from memguard.schema.receipt import WriteOutcome

app = typer.Typer(help="List and print the records of decisions and reads.", no_args_is_help=True)
app.command("rescore")(rescore)


@app.command("list")
def list_receipts(
    store: options.StoreOption = "memory",
    outcome: Annotated[
        str | None,
        typer.Option(
            help="Only stored, duplicate, quarantined, rejected, refused, deleted or undone."
        ),
    ] = None,
    run: Annotated[str | None, typer.Option(help="Only the run with this id.")] = None,
    user: options.UserOption = None,
    namespace: options.NamespaceOption = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of receipts.")] = 50,
    before: Annotated[
        int | None,
        typer.Option(help="Continue here: the number that the previous page ended with."),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """List decisions, newest first, and the latest reads."""
    from memguard.journal.reads import ReadFilter, ReadLog
    from memguard.journal.receipts import ReceiptLog

    chosen = _filter(outcome, run=run, user=user, namespace=namespace)
    read_filter = ReadFilter(namespace=chosen.namespace, run_id=chosen.run_id)
    with open_journal(store) as journal:
        log, read_log = ReceiptLog(journal), ReadLog(journal)
        page = log.list(chosen, limit=limit, before=before)
        counts = log.count(chosen)
        # A read has no outcome, and only the first page shows reads.
        with_reads = outcome is None and before is None
        reads = read_log.list(read_filter, limit=limit).reads if with_reads else ()
        n_reads = read_log.count(read_filter)
    if as_json:
        body = {"counts": counts, "receipts": page.receipts, "before": page.before}
        print_json({**body, "reads": reads})
        return
    print_decisions(page.receipts, title=counts_line(counts))
    if page.before is not None:
        console().print(f"more: --before {page.before}")
    if reads:
        print_reads(reads, title=f"\n{n_reads} reads, with units admitted of units judged")


@app.command("show")
def show_receipt(
    receipt_id: options.ReceiptArgument,
    store: options.StoreOption = "memory",
    as_json: options.JsonOption = False,
) -> None:
    """Print the full record of one decision or one read."""
    from memguard.journal.reads import ReadLog
    from memguard.journal.receipts import ReceiptLog

    with open_journal(store) as journal:
        log = ReceiptLog(journal)
        read = _find_read(receipt_id, log=ReadLog(journal), decisions=log)
        if read is not None:
            if as_json:
                print_json({"read": read})
            else:
                print_read(read, whole=True)
            return
        receipt = log.get(receipt_id)
        history = log.history(receipt.id)
    if as_json:
        print_json({"receipt": receipt, "history": history})
        return
    print_receipt(receipt, history=history)


def _find_read(receipt_id: str, *, log: "ReadLog", decisions: "ReceiptLog") -> "ReadReport | None":
    """The read with this id; `None` if the id names a decision, or nothing."""
    matches = log.matching(receipt_id)
    if not matches:
        return None
    # Ids of reads and of decisions look alike, so the same first characters may name both.
    try:
        decision = decisions.get(receipt_id)
    except InvalidInputError:
        return log.get(receipt_id)
    # A full id is exact, even if an id of the other kind begins like it.
    if receipt_id in {decision.id, *matches}:
        return None if receipt_id == decision.id else log.get(receipt_id)
    msg = (
        f"{receipt_id!r} matches decision {decision.id!r} and read {matches[0]!r}: "
        "pass more characters of the id"
    )
    raise InvalidInputError(msg, code=ErrorCode.RECEIPT_NOT_FOUND)


def _filter(
    outcome: str | None, *, run: str | None, user: str | None, namespace: list[str] | None
) -> "ReceiptFilter":
    from typing import cast, get_args

    from memguard.journal.receipts import ReceiptFilter
    from memguard.schema.receipt import WriteOutcome

    # Checked here and not by the option: its type would have to be imported, with pydantic.
    outcomes = get_args(WriteOutcome)
    if outcome is not None and outcome not in outcomes:
        msg = f"there is no outcome {outcome!r}: use one of {sorted(outcomes)}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    labels = options.namespace_of(user, namespace) if user is not None or namespace else ()
    return ReceiptFilter(outcome=cast("WriteOutcome | None", outcome), run_id=run, namespace=labels)
