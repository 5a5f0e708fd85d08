"""`memguard chat`: talk to an agent with memory, and inspect and correct what it remembers.

Without a model there is no answer: each line is stored by the local path, and what an answer would
use is printed with the reasons.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from memguard.cli import options
from memguard.cli.memories import print_detail, print_entries, print_history
from memguard.cli.opening import create_journal, open_store, pick_model
from memguard.cli.options import actor_of, namespace_of, template_of
from memguard.cli.output import console, counts_line, print_decisions
from memguard.cli.show import print_read, print_units
from memguard.errors import ErrorCode, GuardError, InvalidInputError

if TYPE_CHECKING:
    from memguard.llm.models import Model
    from memguard.memories.memories import Memories
    from memguard.memories.values import MemoryEntry
    from memguard.schema.read import ReadReport
    from memguard.uncheckpointed import Graph
    from memguard.write.report import WriteReport

_QUIT = ("/quit", "/exit")
_MAX_LISTED = 200
"""Memories that `/memories` prints, and that the other commands can number."""
_MAX_CHANGES = 20
"""Decisions that `/history` prints without a memory."""
_HELP = """\
/why              what the last answer used, what was withheld, and what was remembered
/memories         all memories, numbered; those that were replaced or deleted are marked
/history [N]      how memory N came to be; without N the latest decisions
/edit N TEXT      put your own text in the place of memory N
/delete N         take memory N out of use
/forget N         erase memory N, from the store and from the log; cannot be undone
/undo [RECEIPT]   take back the last turn or change, or the decision of a receipt
/export FILE      write all memories with their receipts to a file
/quit             end"""

AnswerTurn = Callable[[str], dict[str, Any]]
"""Answers a line of the person, prints the answer, and returns `read` and `writes`."""


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

    Without a model, what an answer would use is printed instead, and your lines are remembered by
    the local path. `/why` prints what the last answer used and what was remembered. `/help` lists
    all commands.
    """
    from memguard.memories.memories import Memories
    from memguard.presets import choose_admission, choose_gates, split_presets

    answering = pick_model(model, base_url=base_url)
    gates = gate or ["consistency"]
    for_gates, for_admission = split_presets(preset or (), gates=gates, admission=admission)
    labels = namespace_of(user, namespace)
    judging = None if judge is None else pick_model(judge, base_url=base_url)
    settings: dict[str, Any] = {
        "gates": choose_gates(gates, presets=for_gates),
        "admission": choose_admission(admission, presets=for_admission),
        "namespace": template_of(labels),
    }
    with open_store(store, embed=embed) as opened, create_journal(store) as journal:
        settings |= {"store": opened, "receipts": journal}
        # `pick_model` falls back to "local", which can judge but not answer.
        answer_turn = (
            _without_model("local" if judging is None else judging, settings)
            if isinstance(answering, str)
            else _with_model(answering, judge=judging, system=system, settings=settings)
        )
        memories = Memories(opened, namespace=labels, receipts=journal)
        if isinstance(answering, str):
            console().print("no model answers: what an answer would use is printed instead")
        _talk(_ChatSession(answer_turn=answer_turn, memories=memories))


def _with_model(model: "Model", *, judge: Any, system: str, settings: dict[str, Any]) -> AnswerTurn:
    """Turns of an agent, whose answer is printed while it is streamed."""
    from langgraph.checkpoint.memory import InMemorySaver

    from memguard.agent import create_memory_agent

    agent = create_memory_agent(
        model,
        judge=judge,
        system=system,
        # The conversation ends with the program; only memories outlast it.
        checkpointer=InMemorySaver(),
        **settings,
    )
    return partial(_stream_turn, agent, thread=uuid.uuid4().hex)


def _without_model(judge: Any, settings: dict[str, Any]) -> AnswerTurn:
    """Turns that only read and write memory."""
    from memguard.read.graph import create_read_guard
    from memguard.write.graph import create_write_guard

    shared = {name: settings[name] for name in ("store", "namespace", "receipts")}
    reader = create_read_guard(judge, admission=settings["admission"], **shared)
    # A line that cannot be remembered must not end the conversation.
    writer = create_write_guard(judge, gates=settings["gates"], on_failure="report", **shared)
    # The turns of this conversation: the writer reads each once, and the reader takes the earlier
    # ones as the dialogue.
    return partial(_local_turn, [], reader=reader, writer=writer)


def _stream_turn(agent: "Graph", text: str, *, thread: str) -> dict[str, Any]:
    out = console()
    out.print("agent ", end="")
    stream: Any = agent.stream(
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
    return state


def _local_turn(
    messages: list[Any], text: str, *, reader: "Graph", writer: "Graph"
) -> dict[str, Any]:
    messages.append(("user", text))
    read: ReadReport = reader.invoke({"messages": messages})["read"]
    if read.admitted:
        print_units(read, read.admitted, title="      an answer would use:")
    else:
        console().print("      an answer would use no memory")
    # Read before written: what is said now must not be its own memory.
    writes: WriteReport = writer.invoke({"messages": messages})["writes"]
    return {"read": read, "writes": writes}


def _talk(session: "_ChatSession") -> None:
    out = console()
    labels = " / ".join(session.memories.namespace)
    out.print(f"memories of {labels}; /help lists the commands, /quit ends")
    for line in _lines():
        if line in _QUIT:
            return
        try:
            if not line.startswith("/"):
                session.turn(line)
            elif not session.command(line):
                out.print(_HELP)
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


@dataclass(kw_only=True)
class _ChatSession:
    """A conversation in the terminal, with the reports of its last turn.

    The methods named like commands run them; `command` finds the one that a line names.
    """

    answer_turn: AnswerTurn
    memories: "Memories"
    read: "ReadReport | None" = None
    writes: "WriteReport | None" = None
    changes: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    """The receipts of each turn and command that changed something, for `/undo`."""

    def turn(self, text: str) -> None:
        """Answer a line, and print in one line what memory did."""
        from rich.text import Text

        state = self.answer_turn(text)
        self.read, self.writes = state.get("read"), state.get("writes")
        parts: list[str] = []
        if self.read is not None and (self.read.admitted or self.read.withheld):
            parts.append(f"used {len(self.read.admitted)}, withheld {len(self.read.withheld)}")
        if self.writes is not None:
            changed = tuple(
                receipt.id
                for receipt in self.writes.receipts
                if receipt.outcome == "stored" or receipt.changes
            )
            if changed:
                self.changes.append(changed)
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
            "/history": partial(self.history, rest.strip()),
            "/edit": partial(self.edit, rest.strip()),
            "/delete": partial(self.delete, rest.strip()),
            "/forget": partial(self.forget, rest.strip()),
            "/undo": partial(self.undo, rest.strip()),
            "/export": partial(self.export, rest.strip()),
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
        """Print all memories, with the numbers that the other commands take."""
        entries = self._entries()
        if entries:
            print_entries(entries, numbered=True)
        else:
            console().print("nothing is stored")

    def history(self, name: str) -> None:
        """Print the chain of corrections of a memory, or the latest decisions."""
        from memguard.stores import ReceiptFilter, ReceiptLog

        log = ReceiptLog(self.memories.journal)
        if name:
            entry = self._entry(name)
            print_detail(self.memories.show(entry.id))
            console().print("\nHistory", style="bold")
            print_history(self.memories.history(entry.id), log=log)
            return
        page = log.list(ReceiptFilter(namespace=self.memories.namespace), limit=_MAX_CHANGES)
        print_decisions(page.receipts, title="The latest decisions, newest first")

    def edit(self, arguments: str) -> None:
        """Put a text of the person in the place of a memory."""
        name, _, rest = arguments.partition(" ")
        entry, text = self._entry(name), rest.strip()
        if not text:
            _refuse("an edit needs the new text: /edit 2 I live in Porto now.")
        receipt = self.memories.edit(entry.id, text, actor=actor_of(), reason="")
        self.changes.append((receipt.id,))
        console().print("stored in your words")

    def delete(self, name: str) -> None:
        """Take a memory out of use."""
        receipt = self.memories.delete(self._entry(name).id, actor=actor_of())
        self.changes.append((receipt.id,))
        console().print("deleted; /undo brings it back, /forget erases it")

    def forget(self, name: str) -> None:
        """Erase a memory from the store, and its text from the log."""
        entry = self._entry(name)
        self.memories.forget(entry.id, actor=actor_of(), reason="asked in the chat")
        # An undo could store the erased text again.
        self.changes.clear()
        console().print("forgotten")

    def undo(self, receipt_id: str) -> None:
        """Take back a decision, or all decisions of the last turn or command."""
        if receipt_id:
            self.memories.undo(receipt_id, actor=actor_of())
            console().print("taken back: 1")
            return
        if not self.changes:
            _refuse("there is nothing to undo")
        # The last first: a later decision of a turn may build on an earlier one.
        receipt_ids = self.changes[-1]
        for last in reversed(receipt_ids):
            self.memories.undo(last, actor=actor_of())
        self.changes.pop()
        console().print(f"taken back: {len(receipt_ids)}")

    def export(self, file: str) -> None:
        """Write all memories to a file that does not exist yet."""
        if not file:
            _refuse("an export needs a file: /export memories.jsonl")
        if Path(file).exists():
            _refuse(f"{file!r} exists: name a new file")
        report = self.memories.export(file)
        console().print(f"{report.memories} memories and {report.receipts} receipts in {file}")

    def _entries(self) -> "Sequence[MemoryEntry]":
        """All memories, oldest first, so that a number means the same in the next command."""
        page = self.memories.list(limit=_MAX_LISTED, include_superseded=True)
        return sorted(page.memories, key=lambda entry: (entry.stored_at, entry.id))

    def _entry(self, name: str) -> "MemoryEntry":
        entries = self._entries()
        if name.isdecimal() and 1 <= int(name) <= len(entries):
            return entries[int(name) - 1]
        matches = [entry for entry in entries if name and entry.id.startswith(name)]
        if len(matches) == 1:
            return matches[0]
        advice = f"use a number from 1 to {len(entries)}" if entries else "nothing is stored"
        return _refuse(f"{name!r} is not the number of a memory: {advice}; see /memories")


def _refuse(message: str) -> NoReturn:
    raise InvalidInputError(message, code=ErrorCode.INPUT_INVALID)
