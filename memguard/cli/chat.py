"""`memguard chat`: talk to an agent with memory, and see what it remembers, withholds and why."""

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memguard.cli.options import (
    BaseUrlOption,
    EmbedOption,
    ModelOption,
    NamespaceOption,
    StoreOption,
    UserOption,
    namespace_of,
    template_of,
)

if TYPE_CHECKING:
    from memguard.cli.chat_commands import Conversation

_GOODBYE = ("/quit", "/exit")


def chat(
    store: StoreOption = "memory",
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    embed: EmbedOption = None,
    user: UserOption = None,
    namespace: NamespaceOption = None,
    judge: Annotated[
        str | None,
        typer.Option(
            help="Who judges memories: a model, or local; the answering model if left out."
        ),
    ] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option("--gate", help="consistency or conmem; repeat it for several, in order."),
    ] = None,
    admission: Annotated[
        str, typer.Option(help="How memories are admitted: ps, fc or relevance.")
    ] = "ps",
    system: Annotated[str, typer.Option(help="Instructions for the agent.")] = "",
) -> None:
    """Talk to an agent with memory. `/why` says what it used and kept, `/help` lists the rest."""
    from langgraph.checkpoint.memory import InMemorySaver

    from memguard.cli.chat_commands import Conversation
    from memguard.cli.opening import make_journal, open_store, pick_model
    from memguard.errors import ErrorCode, ModelConfigurationError
    from memguard.guard.agent import create_memory_agent
    from memguard.llm.models import HOW_TO_GIVE_ONE

    answering = pick_model(model, base_url=base_url)
    if isinstance(answering, str):
        msg = f"chat needs a model that answers; {HOW_TO_GIVE_ONE}"
        raise ModelConfigurationError(msg, code=ErrorCode.MODEL_MISSING)
    place = namespace_of(user, namespace)
    with open_store(store, embed=embed) as opened, make_journal(store) as journal:
        agent = create_memory_agent(
            answering,
            judge=None if judge is None else pick_model(judge, base_url=base_url),
            gates=gate,
            admission=admission,
            store=opened,
            namespace=template_of(place),
            receipts=journal,
            system=system,
            checkpointer=InMemorySaver(),
        )
        talk = Conversation(agent=agent, store=opened, journal=journal, namespace=place)
        _talk(talk, thread=uuid.uuid4().hex)


def _talk(talk: "Conversation", *, thread: str) -> None:
    from memguard.cli.chat_commands import print_help
    from memguard.cli.output import console
    from memguard.errors import GuardError, InvalidInputError

    out = console()
    out.print(f"memories of {' / '.join(talk.namespace)}; /help lists the commands, /quit ends")
    for line in _lines():
        if line in _GOODBYE:
            return
        try:
            if line.startswith("/"):
                if not talk.command(line):
                    print_help()
            else:
                _turn(talk, line, thread=thread)
        except (GuardError, InvalidInputError) as error:
            out.print(f"not done: {error.message}")


def _lines() -> Iterator[str]:
    """What the person types, until the end of the input."""
    from memguard.cli.output import console

    while True:
        try:
            line = console().input("\nyou  ").strip()
        except EOFError:
            return
        if line:
            yield line


def _turn(talk: "Conversation", said: str, *, thread: str) -> None:
    """One turn, its answer printed as it comes."""
    from memguard.cli.output import console

    out = console()
    out.print("agent ", end="")
    stream: Any = talk.agent.stream(
        {"messages": [("user", said)]},
        {"configurable": {"thread_id": thread}},
        stream_mode=["messages", "values"],
    )
    shown = False
    state: dict[str, Any] = {}
    for mode, data in stream:
        if mode == "values":
            state = data
            continue
        chunk, metadata = data
        if metadata.get("langgraph_node") == "answer" and chunk.text:
            out.out(chunk.text, end="", highlight=False)
            shown = True
    out.print("" if shown else state["messages"][-1].text)
    talk.note(state)
