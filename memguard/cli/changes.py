"""`memguard add | edit | delete | undo`: a person's changes, each with a receipt and an undo."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from memguard.cli import options
from memguard.cli.memories import SHORT_ID, print_entries
from memguard.cli.opening import open_memories
from memguard.cli.options import actor_of, same_place
from memguard.cli.output import console, print_json
from memguard.errors import ErrorCode, InvalidInputError

if TYPE_CHECKING:
    from memguard.schema.receipt import Receipt


def add(
    text: Annotated[str, typer.Argument(help="The memory, one fact.", metavar="TEXT")],
    store: options.StoreOption = "memory",
    embed: options.EmbedOption = None,
    user: options.UserOption = None,
    namespace: options.NamespaceOption = None,
    actor: options.ActorOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Store a memory in your own words; no judge is asked.

    Secrets, instructions to the assistant and texts of more than one fact are refused. A text that
    is stored already is confirmed instead.
    """
    with open_memories(store, embed=embed, user=user, namespace=namespace, create=True) as memories:
        receipt = memories.add(text, actor=actor_of(actor))
    if as_json:
        print_json({"receipt": receipt})
        return
    verb = "stored" if receipt.outcome == "stored" else "already stored, and confirmed now"
    _print_done(f"{verb}: {receipt.candidate.text}", receipt, same_place(store, user, namespace))


def edit(
    memory_id: options.MemoryArgument,
    text: Annotated[str, typer.Argument(help="The new text, one fact.", metavar="TEXT")],
    reason: options.ReasonOption = "",
    store: options.StoreOption = "memory",
    embed: options.EmbedOption = None,
    user: options.UserOption = None,
    namespace: options.NamespaceOption = None,
    actor: options.ActorOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Put your own words in the place of a memory.

    The old text stays in the history.
    """
    with open_memories(store, embed=embed, user=user, namespace=namespace) as memories:
        old = memories.show(memory_id).memory
        receipt = memories.edit(old.id, text, actor=actor_of(actor), reason=reason)
    if as_json:
        print_json({"receipt": receipt, "replaced": old})
        return
    console().print(f"was: {old.text}", style="dim")
    _print_done(f"now: {receipt.candidate.text}", receipt, same_place(store, user, namespace))


def delete(
    memory_id: options.MemoryArgument,
    reason: options.ReasonOption = "",
    yes: options.YesOption = False,
    store: options.StoreOption = "memory",
    embed: options.EmbedOption = None,
    user: options.UserOption = None,
    namespace: options.NamespaceOption = None,
    actor: options.ActorOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Take a memory out of use.

    An undo brings it back: the text stays in the store and on the receipt. `memguard forget`
    erases it for good.
    """
    with open_memories(store, embed=embed, user=user, namespace=namespace) as memories:
        detail = memories.show(memory_id)
        if not yes:
            if not as_json:
                print_entries([detail.memory])
            confirm("Delete this memory?", as_json=as_json)
        receipt = memories.delete(detail.memory.id, actor=actor_of(actor), reason=reason)
    if as_json:
        print_json({"receipt": receipt})
        return
    where = same_place(store, user, namespace)
    _print_done(f"deleted: {receipt.candidate.text}", receipt, where)
    command = f"memguard forget --memory {detail.memory.id[:SHORT_ID]}{where}"
    console().print(f"to erase it for good: {command}", style="dim")


def undo(
    which: Annotated[
        str,
        typer.Argument(
            help="Id of the receipt, or of a memory whose last change is taken back.",
            metavar="RECEIPT",
        ),
    ],
    reason: options.ReasonOption = "",
    store: options.StoreOption = "memory",
    embed: options.EmbedOption = None,
    user: options.UserOption = None,
    namespace: options.NamespaceOption = None,
    actor: options.ActorOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Take back a decision or a change.

    What it stored is out of use, and what it replaced or deleted is current again. An undo has a
    receipt, too, and can be taken back.
    """
    with open_memories(store, embed=embed, user=user, namespace=namespace) as memories:
        receipt = memories.undo(which, actor=actor_of(actor), reason=reason)
    if as_json:
        print_json({"receipt": receipt})
        return
    _print_done(receipt.decision.explanation, receipt, same_place(store, user, namespace))


def confirm(question: str, *, as_json: bool = False) -> None:
    """Ask a person before something is done.

    Raises:
        InvalidInputError: If nobody can be asked, because a program reads the output or there is
            no terminal.
        Abort: If the answer is no.
    """
    if as_json or not sys.stdin.isatty():
        msg = f"{question} Nobody can be asked here: pass --yes to do it"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    typer.confirm(question, abort=True)


def _print_done(line: str, receipt: "Receipt", where: str) -> None:
    out = console()
    out.print(line)
    # Not wrapped, so that it can be copied.
    hint = f"to take it back: memguard undo {receipt.id[:SHORT_ID]}{where}"
    out.print(hint, style="dim", soft_wrap=True)
