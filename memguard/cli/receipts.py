"""`memguard receipts list | show | rescore`: what was decided, and why."""

from typing import TYPE_CHECKING, Annotated

import typer

from memguard.cli.options import JsonOption, NamespaceOption, StoreOption, UserOption
from memguard.cli.rescore import rescore

if TYPE_CHECKING:
    from memguard.journal.reads import ReadFilter, ReadLog
    from memguard.journal.receipts import ReceiptFilter, ReceiptLog
    from memguard.schema.ledger import ReadReport
    from memguard.schema.receipt import WriteOutcome

app = typer.Typer(help="Every decision, whole.", no_args_is_help=True)
app.command("rescore")(rescore)


@app.command("list")
def list_receipts(
    store: StoreOption = "memory",
    outcome: Annotated[
        str | None,
        typer.Option(help="stored, duplicate, quarantined, rejected or refused."),
    ] = None,
    run: Annotated[str | None, typer.Option(help="Only this run.")] = None,
    user: UserOption = None,
    namespace: NamespaceOption = None,
    limit: Annotated[int, typer.Option(min=1, help="Receipts to print.")] = 50,
    before: Annotated[int | None, typer.Option(help="Where the last page ended.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print decisions, newest first, and the latest reads."""
    from memguard.cli.opening import open_journal
    from memguard.cli.output import console, counts_line, print_decisions, print_json
    from memguard.cli.show_read import print_reads
    from memguard.journal.reads import ReadLog
    from memguard.journal.receipts import ReceiptLog

    with open_journal(store) as journal:
        log = ReceiptLog(journal)
        which = _filter(outcome, run=run, user=user, namespace=namespace)
        page = log.list(which, limit=limit, before=before)
        counts = log.count(which)
        # Reads have no outcome, and the first page shows the latest of them.
        with_reads = outcome is None and before is None
        found = _read_filter(which)
        reads = ReadLog(journal).list(found, limit=limit).reads if with_reads else ()
        all_reads = ReadLog(journal).count(found)
    if as_json:
        bodies = [receipt.model_dump(mode="json") for receipt in page.receipts]
        body = {"counts": counts, "receipts": bodies, "before": page.before}
        print_json({**body, "reads": [read.model_dump(mode="json") for read in reads]})
        return
    print_decisions(page.receipts, title=counts_line(counts))
    if page.before is not None:
        console().print(f"more: --before {page.before}")
    if reads:
        print_reads(reads, title=f"\n{all_reads} reads; units admitted of those looked at")


@app.command("show")
def show_receipt(
    receipt_id: Annotated[str, typer.Argument(help="The id, or the beginning of it.")],
    store: StoreOption = "memory",
    as_json: JsonOption = False,
) -> None:
    """Print the whole record of one decision, or of one read."""
    from memguard.cli.opening import open_journal
    from memguard.cli.output import print_json
    from memguard.cli.show import print_receipt
    from memguard.cli.show_read import print_read
    from memguard.journal.reads import ReadLog
    from memguard.journal.receipts import ReceiptLog

    with open_journal(store) as journal:
        read = _read_named(receipt_id, log=ReadLog(journal), decisions=ReceiptLog(journal))
        if read is not None:
            if as_json:
                print_json({"read": read.model_dump(mode="json")})
            else:
                print_read(read, whole=True)
            return
        log = ReceiptLog(journal)
        receipt = log.get(receipt_id)
        history = log.history(receipt.id)
    if as_json:
        events = [event.model_dump(mode="json") for event in history]
        print_json({"receipt": receipt.model_dump(mode="json"), "history": events})
        return
    print_receipt(receipt, history=history)


def _read_named(receipt_id: str, *, log: "ReadLog", decisions: "ReceiptLog") -> "ReadReport | None":
    """The read that is meant; `None` when a decision is, or nothing that is known."""
    from memguard.errors import ErrorCode, InvalidInputError

    found = log.matching(receipt_id)
    if not found:
        return None
    try:
        decision = decisions.get(receipt_id)
    except InvalidInputError:
        return log.get(receipt_id)
    if receipt_id in {decision.id, *found}:
        return None if receipt_id == decision.id else log.get(receipt_id)
    msg = f"{receipt_id!r} fits decision {decision.id!r} and read {found[0]!r}; give more of the id"
    raise InvalidInputError(msg, code=ErrorCode.RECEIPT_NOT_FOUND)


def _filter(
    outcome: str | None, *, run: str | None, user: str | None, namespace: list[str] | None
) -> "ReceiptFilter":
    from typing import cast, get_args

    from memguard.cli.options import namespace_of
    from memguard.errors import ErrorCode, InvalidInputError
    from memguard.journal.receipts import ReceiptFilter
    from memguard.schema.receipt import WriteOutcome

    known = get_args(WriteOutcome)
    if outcome is not None and outcome not in known:
        msg = f"there is no outcome {outcome!r}: use one of {sorted(known)}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    place = namespace_of(user, namespace) if user is not None or namespace else ()
    return ReceiptFilter(outcome=cast("WriteOutcome | None", outcome), run_id=run, namespace=place)


def _read_filter(which: "ReceiptFilter") -> "ReadFilter":
    from memguard.journal.reads import ReadFilter

    return ReadFilter(namespace=which.namespace, run_id=which.run_id)
