"""`memguard chat`: talk to an agent with memory, and inspect and correct what it remembers."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from memguard.cli import options
from memguard.cli.opening import create_journal, open_store, pick_model
from memguard.cli.options import actor_of, namespace_of, template_of
from memguard.cli.output import (
    console,
    counts_line,
    print_decisions,
    print_table,
    provenance_of,
)
from memguard.cli.show import print_read
from memguard.errors import ErrorCode, GuardError, InvalidInputError, ModelConfigurationError

if TYPE_CHECKING:
    from memguard.journal.journal import Journal
    from memguard.schema.base import Namespace
    from memguard.schema.read import ReadReport
    from memguard.stores import ChromaStore
    from memguard.uncheckpointed import Graph
    from memguard.write.report import WriteReport

_QUIT = ("/quit", "/exit")
_MAX_LISTED = 100
"""Memories that `/memories` prints, and that the other commands can number."""
_HELP = """\
/why            what the last answer used, what was withheld, and what was remembered
/memories       the stored memories, numbered
/forget N       erase memory N, from the store and from the log; cannot be undone
/edit N TEXT    replace memory N by your own text
/undo           delete what the last turn or edit stored
/quit           end"""


def chat(
    store: options.StoreOption = "memory",
    model: options.ModelOption = None,
    base_url: options.BaseUrlOption = None,
    embed: options.EmbedOption = None,
    user: options.UserOption = None,
    namespace: options.NamespaceOption = None,
    judge: Annotated[
        str | None,
        typer.Option(help="Model that judges memories, or local; the answering model by default."),
    ] = None,
    gate: options.GateOption = None,
    admission: Annotated[
        str, typer.Option(help="How memories are admitted: ps, fc or relevance.")
    ] = "ps",
    preset: options.PresetOption = None,
    system: Annotated[str, typer.Option(help="System prompt of the agent.")] = "",
) -> None:
    """Talk to an agent with memory.

    `/why` prints what the last answer used and what was remembered. `/help` lists all commands.
    """
    from langgraph.checkpoint.memory import InMemorySaver

    from memguard.agent import create_memory_agent
    from memguard.llm.models import MODEL_HINT
    from memguard.presets import choose_admission, choose_gates, split_presets

    answering = pick_model(model, base_url=base_url)
    # `pick_model` falls back to "local", which can judge but not answer.
    if isinstance(answering, str):
        msg = f"chat needs a model that answers; {MODEL_HINT}"
        raise ModelConfigurationError(msg, code=ErrorCode.MODEL_MISSING)
    gates = gate or ["consistency"]
    for_gates, for_admission = split_presets(preset or (), gates=gates, admission=admission)
    labels = namespace_of(user, namespace)
    with open_store(store, embed=embed) as opened, create_journal(store) as journal:
        agent = create_memory_agent(
            answering,
            judge=None if judge is None else pick_model(judge, base_url=base_url),
            gates=choose_gates(gates, presets=for_gates),
            admission=choose_admission(admission, presets=for_admission),
            store=opened,
            namespace=template_of(labels),
            receipts=journal,
            system=system,
            # The conversation ends with the program; only memories outlast it.
            checkpointer=InMemorySaver(),
        )
        session = _ChatSession(agent=agent, store=opened, journal=journal, namespace=labels)
        _talk(session, thread=uuid.uuid4().hex)


def _talk(session: "_ChatSession", *, thread: str) -> None:
    out = console()
    out.print(f"memories of {' / '.join(session.namespace)}; /help lists the commands, /quit ends")
    for line in _lines():
        if line in _QUIT:
            return
        try:
            if line.startswith("/"):
                if not session.command(line):
                    out.print(_HELP)
            else:
                _turn(session, line, thread=thread)
        except (GuardError, InvalidInputError) as error:
            # One failure must not end the conversation, which exists in this process only.
            out.print(f"not done: {error.message}")


def _lines() -> Iterator[str]:
    """The lines that the person types, until the end of the input."""
    while True:
        try:
            line = console().input("\nyou  ").strip()
        except EOFError:
            return
        if line:
            yield line


def _turn(session: "_ChatSession", text: str, *, thread: str) -> None:
    """Run one turn and print the answer while it is streamed."""
    out = console()
    out.print("agent ", end="")
    stream: Any = session.agent.stream(
        {"messages": [("user", text)]},
        {"configurable": {"thread_id": thread}},
        stream_mode=["messages", "values"],
    )
    is_streamed = False
    state: dict[str, Any] = {}
    for mode, data in stream:
        if mode == "values":
            state = data
            continue
        chunk, metadata = data
        # Writer and judge send chunks too; only those of the answer are printed.
        if metadata.get("langgraph_node") == "answer" and chunk.text:
            out.out(chunk.text, end="", highlight=False)
            is_streamed = True
    # A model that cannot stream sends its whole answer with the state.
    out.print("" if is_streamed else state["messages"][-1].text)
    session.record(state)


@dataclass(frozen=True, kw_only=True)
class _Change:
    """A change that `/undo` can take back."""

    stored: tuple[str, ...]
    """Ids of the receipts of what was stored."""
    replaced: str = ""
    """The text of the memory that was replaced."""


@dataclass(kw_only=True)
class _ChatSession:
    """A conversation in the terminal, with the reports of its last turn.

    The methods named like commands run them; `command` finds the one that a line names.
    """

    agent: "Graph"
    store: "ChromaStore"
    journal: "Journal"
    namespace: "Namespace"
    read: "ReadReport | None" = None
    writes: "WriteReport | None" = None
    changes: list[_Change] = field(default_factory=list[_Change])

    def record(self, state: dict[str, Any]) -> None:
        """Record the reports of a turn, and print them in one line."""
        from rich.text import Text

        self.read, self.writes = state.get("read"), state.get("writes")
        parts: list[str] = []
        if self.read is not None and (self.read.admitted or self.read.withheld):
            parts.append(f"used {len(self.read.admitted)}, withheld {len(self.read.withheld)}")
        if self.writes is not None:
            stored = tuple(r.id for r in self.writes.receipts if r.outcome == "stored")
            if stored:
                self.changes.append(_Change(stored=stored))
            if self.writes.receipts:
                parts.append(counts_line(dict(self.writes.counts)))
            parts.extend(f"not done: {failure.message}" for failure in self.writes.failures)
        if parts:
            console().print(Text(f"      memory: {'; '.join(parts)} (/why)", style="dim"))

    def command(self, line: str) -> bool:
        """Run a command; `False` if there is none with that name.

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
        """Print what the last answer used, and what was remembered of the turn."""
        if self.read is None and self.writes is None:
            console().print("nothing was said yet")
        if self.read is not None:
            print_read(self.read)
        if self.writes is not None:
            title = f"\nRemembering: {len(self.writes.receipts)} candidates"
            print_decisions(self.writes.receipts, title=title)

    def list_memories(self) -> None:
        """Print what is stored, with the numbers that `/forget` and `/edit` take."""
        items = self._items()
        if not items:
            console().print("nothing is stored")
            return
        rows = [(str(n), str(item.value.get("content", ""))) for n, item in enumerate(items, 1)]
        print_table("", ("", "memory"), rows)

    def forget(self, number: str) -> None:
        """Erase a memory from the store, and its text from the log."""
        from memguard.stores import forget_memory

        item = self._item(number)
        self._remove(forget_memory, _receipt_of(item), item=item, reason="asked in the chat")
        # An undo could store the erased text again.
        self.changes.clear()
        console().print("forgotten")

    def edit(self, arguments: str) -> None:
        """Replace a memory by a text of the person."""
        number, _, rest = arguments.partition(" ")
        item, text = self._item(number), rest.strip()
        if not text:
            _refuse("an edit needs the new text: /edit 2 I live in Porto now.")
        old = str(item.value.get("content", ""))
        # Stored before the old one is deleted: if this fails, the old one is still there.
        receipt = self._store_text(text, replaced=old)
        # The key of a memory is derived from its text: deleting an unchanged one would delete both.
        if text != old:
            self._delete(_receipt_of(item), item=item)
            self.changes.append(_Change(stored=(receipt,), replaced=old))
        console().print("stored in your words")

    def undo(self) -> None:
        """Delete what the last turn or edit stored, and restore what an edit replaced."""
        if not self.changes:
            _refuse("there is nothing to undo")
        last = self.changes.pop()
        for receipt in last.stored:
            self._delete(receipt)
        if last.replaced:
            self._store_text(last.replaced, replaced="")
        console().print(f"taken back: {len(last.stored)}")

    def _store_text(self, text: str, *, replaced: str) -> str:
        """Store what a person wrote, without a judge; returns the id of the receipt."""
        from memguard.portal import run_sync
        from memguard.write.review import store_wording

        stored = store_wording(
            self.journal,
            self.store,
            text,
            namespace=self.namespace,
            actor=actor_of(),
            instead_of=replaced,
        )
        return run_sync(stored).id

    def _delete(self, receipt: str, *, item: Any = None) -> None:
        from memguard.stores import delete_memory

        self._remove(delete_memory, receipt, item=item, reason="changed in the chat")

    def _remove(self, remove: Any, receipt: str, *, item: Any, reason: str) -> None:
        from memguard.portal import run_sync

        if receipt:
            run_sync(remove(self.journal, self.store, receipt, actor=actor_of(), reason=reason))
        elif item is not None:
            # Another program stored the item, so the log does not contain its text.
            self.store.delete(tuple(item.namespace), item.key)

    def _items(self) -> list[Any]:
        """The items of exactly this namespace, oldest first."""
        from memguard.paging import search_exactly
        from memguard.portal import run_sync

        items = run_sync(search_exactly(self.store, self.namespace, limit=_MAX_LISTED))
        # A fixed order, so that a number means the same memory in the next command.
        return sorted(items, key=lambda item: (item.created_at, item.key))

    def _item(self, number: str) -> Any:
        items = self._items()
        if not number.isdecimal() or not 1 <= int(number) <= len(items):
            advice = f"use a number from 1 to {len(items)}" if items else "nothing is stored"
            _refuse(f"{number!r} is not the number of a memory: {advice}; see /memories")
        return items[int(number) - 1]


def _receipt_of(item: Any) -> str:
    """The id of the receipt of an item; empty for an item of another program."""
    return str(provenance_of(item.value).get("receipt_id", ""))


def _refuse(message: str) -> NoReturn:
    raise InvalidInputError(message, code=ErrorCode.INPUT_INVALID)
