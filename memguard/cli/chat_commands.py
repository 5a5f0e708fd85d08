"""What a person can ask of memory in the middle of a conversation."""

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from memguard.adjudication.uncheckpointed import Graph
    from memguard.schema.base import Namespace
    from memguard.schema.ledger import ReadReport
    from memguard.schema.write import WriteReport
    from memguard.stores import ChromaStore
    from memguard.stores.journal import Journal

_MOST_LISTED = 100
_HELP = """\
/why            what the last answer was given, what was withheld, and what was remembered
/memories       what is stored, numbered
/forget N       erase memory N, from the store and from the log; cannot be undone
/edit N TEXT    put your own words in place of memory N
/undo           take back what the last turn or edit stored
/quit           end"""


def print_help() -> None:
    """The commands."""
    from memguard.cli.output import console

    console().print(_HELP)


@dataclass(frozen=True, kw_only=True)
class _Done:
    """Something that `/undo` can take back."""

    stored: tuple[str, ...]
    """Receipts of what was stored."""
    instead_of: str = ""
    """The text that was there before."""


@dataclass(kw_only=True)
class Conversation:
    """A conversation in the terminal, with what memory did in its last turn."""

    agent: "Graph"
    store: "ChromaStore"
    journal: "Journal"
    namespace: "Namespace"
    read: "ReadReport | None" = None
    writes: "WriteReport | None" = None
    done: list[_Done] = field(default_factory=list[_Done])

    def note(self, state: dict[str, Any]) -> None:
        """Keep what memory did in a turn, and say it in one line."""
        from rich.text import Text

        from memguard.cli.output import console, counts_line

        self.read, self.writes = state.get("read"), state.get("writes")
        said: list[str] = []
        if self.read is not None and (self.read.admitted or self.read.withheld):
            said.append(f"used {len(self.read.admitted)}, withheld {len(self.read.withheld)}")
        if self.writes is not None:
            kept = tuple(r.id for r in self.writes.receipts if r.outcome == "stored")
            if kept:
                self.done.append(_Done(stored=kept))
            if self.writes.receipts:
                said.append(counts_line(dict(self.writes.counts)))
            said.extend(f"not done: {failure.message}" for failure in self.writes.failures)
        if said:
            console().print(Text(f"      memory: {'; '.join(said)} (/why)", style="dim"))

    def command(self, line: str) -> bool:
        """Carry out a command; `False` if there is none of that name.

        Raises:
            InvalidInputError: If it names no memory, or there is nothing to undo.
            GuardError: If the store or the log failed.
        """
        name, _, rest = line.partition(" ")
        commands = {
            "/why": self.why,
            "/memories": self.list_memories,
            "/forget": partial(self.forget, rest.strip()),
            "/edit": partial(self.edit, rest.strip()),
            "/undo": self.undo,
        }
        if name not in commands:
            return False
        commands[name]()
        return True

    def why(self) -> None:
        """What the last answer was given, and what was remembered of the turn."""
        from memguard.cli.output import console, print_decisions
        from memguard.cli.show_read import print_read

        if self.read is None and self.writes is None:
            console().print("nothing was said yet")
        if self.read is not None:
            print_read(self.read)
        if self.writes is not None:
            title = f"\nRemembering: {len(self.writes.receipts)} candidates"
            print_decisions(self.writes.receipts, title=title)

    def list_memories(self) -> None:
        """What is stored, numbered as `/forget` and `/edit` take it."""
        from memguard.cli.output import console, print_table

        items = self._items()
        if not items:
            console().print("nothing is stored")
            return
        rows = [(str(n), str(item.value.get("content", ""))) for n, item in enumerate(items, 1)]
        print_table("", ("", "memory"), rows)

    def forget(self, which: str) -> None:
        """Erase a memory and its text in the log."""
        from memguard.cli.output import console
        from memguard.portal import run_sync
        from memguard.stores import forget_memory

        item = self._item(which)
        receipt = self._receipt_of(item)
        if receipt:
            run_sync(
                forget_memory(
                    self.journal, self.store, receipt, actor=_person(), reason="asked in the chat"
                )
            )
        else:
            self.store.delete(tuple(item.namespace), item.key)
        self.done.clear()  # what is forgotten must not come back by an undo
        console().print("forgotten")

    def edit(self, words: str) -> None:
        """Store a person's own words in place of a memory."""
        from memguard.cli.output import console

        which, _, text = words.partition(" ")
        item = self._item(which)
        if not text.strip():
            _refuse("an edit needs the new words: /edit 2 I live in Porto now.")
        old = str(item.value.get("content", ""))
        stored = self._store_words(text.strip(), instead_of=old)
        if text.strip() != old:
            self._delete(self._receipt_of(item), item=item)
            self.done.append(_Done(stored=stored, instead_of=old))
        console().print("stored in your words")

    def undo(self) -> None:
        """Take back what the last turn or edit stored."""
        from memguard.cli.output import console

        if not self.done:
            _refuse("there is nothing to undo")
        last = self.done.pop()
        for receipt in last.stored:
            self._delete(receipt)
        if last.instead_of:
            self._store_words(last.instead_of, instead_of="")
        console().print(f"taken back: {len(last.stored)}")

    def _store_words(self, text: str, *, instead_of: str) -> tuple[str, ...]:
        """Store what a person wrote; nobody else has a say in it."""
        from memguard.guard.wording import store_wording
        from memguard.portal import run_sync

        receipt = run_sync(
            store_wording(
                self.journal,
                self.store,
                text,
                namespace=self.namespace,
                actor=_person(),
                instead_of=instead_of,
            )
        )
        return (receipt.id,)

    def _delete(self, receipt: str, *, item: Any = None) -> None:
        from memguard.portal import run_sync
        from memguard.stores import delete_memory

        if receipt:
            run_sync(
                delete_memory(
                    self.journal, self.store, receipt, actor=_person(), reason="changed in the chat"
                )
            )
        elif item is not None:
            self.store.delete(tuple(item.namespace), item.key)

    def _items(self) -> list[Any]:
        """What is stored in exactly this namespace, the oldest first."""
        found = self.store.search(self.namespace, limit=_MOST_LISTED)
        mine = [item for item in found if tuple(item.namespace) == self.namespace]
        return sorted(mine, key=lambda item: (item.created_at, item.key))

    def _item(self, which: str) -> Any:
        items = self._items()
        if not which.isdecimal() or not 1 <= int(which) <= len(items):
            known = f"give a number from 1 to {len(items)}" if items else "nothing is stored"
            _refuse(f"{which!r} names no memory: {known}; see /memories")
        return items[int(which) - 1]

    @staticmethod
    def _receipt_of(item: Any) -> str:
        found = item.value.get("memguard")
        return str(found.get("receipt_id", "")) if isinstance(found, dict) else ""


def _person() -> str:
    from memguard.cli.options import actor_of

    return actor_of(None)


def _refuse(message: str) -> NoReturn:
    from memguard.errors import ErrorCode, InvalidInputError

    raise InvalidInputError(message, code=ErrorCode.INPUT_INVALID)
