"""Options that several commands share. A value on the command line overrides the environment."""

import getpass
import shlex
from typing import Annotated

import typer

from memguard.errors import ErrorCode, InvalidInputError

StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="MEMGUARD_STORE",
        help="Folder of the memory store, or HOST:PORT of a Chroma server.",
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        envvar="MEMGUARD_MODEL",
        help="Model that writes and judges, for example openai:gpt-5-mini, or local.",
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        envvar="MEMGUARD_BASE_URL",
        help="Address of an OpenAI-compatible server, for example http://localhost:11434/v1.",
    ),
]
EmbedOption = Annotated[
    str | None,
    typer.Option(
        "--embed",
        envvar="MEMGUARD_EMBED",
        help="Embedding model, for example openai:text-embedding-3-small; built in by default.",
    ),
]
UserOption = Annotated[
    str | None,
    typer.Option("--user", help="User whose memories are meant: the namespace memories/USER."),
]
NamespaceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace",
        metavar="LABEL",
        help="Label of the namespace; repeat the option for each label.",
    ),
]
RepairOption = Annotated[
    bool,
    typer.Option(
        "--repair",
        help="Finish interrupted writes, restore memories from the receipts, and set damaged "
        "files aside.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
GateOption = Annotated[
    list[str] | None,
    typer.Option("--gate", help="consistency or conmem; repeat it for several, in order."),
]
PresetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--preset",
        help="Named settings, see `memguard presets`; each gate uses those that it has.",
    ),
]
ConversationOption = Annotated[
    str | None,
    typer.Option("--conversation", help="Id of one conversation in a file of several: conv-26."),
]
ActorOption = Annotated[
    str | None, typer.Option("--actor", help="Name for the log; your login name by default.")
]
MemoryArgument = Annotated[
    str, typer.Argument(help="Id of the memory, or its first characters.", metavar="ID")
]
ReasonOption = Annotated[
    str, typer.Option("--reason", help="Why, for the history; it stays in the log.")
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask before it is done.")]
ReceiptArgument = Annotated[
    str, typer.Argument(help="Id of the receipt, or its first characters.", metavar="ID")
]


def namespace_of(user: str | None, namespace: list[str] | None) -> tuple[str, ...]:
    """The namespace that the options name; `--namespace` overrides `--user`.

    Raises:
        InvalidInputError: If a label is blank. All users would share such a namespace.
    """
    labels = tuple(namespace) if namespace else ("memories",)
    if user is not None and not namespace:
        labels = (*labels, user)
    if any(not label.strip() for label in labels):
        msg = f"the namespace {labels!r} has a blank label: give --user and --namespace a value"
        raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
    return labels


def same_place(store: str, user: str | None, namespace: list[str] | None) -> str:
    """The options of a command that is about the same namespace, for a hint; begins with a space.

    Options with their default are left out.
    """
    words = ["--store", store] if store != "memory" else []
    if namespace:
        words += [word for label in namespace for word in ("--namespace", label)]
    elif user is not None:
        words += ["--user", user]
    return "".join(f" {shlex.quote(word)}" for word in words)


def template_of(namespace: tuple[str, ...]) -> tuple[str, ...]:
    """A namespace as the template that guards take, in which typed braces are plain text."""
    # A label such as `{user_id}` would otherwise be filled from the run, which has no such value.
    return tuple(label.replace("{", "{{").replace("}", "}}") for label in namespace)


def actor_of(actor: str | None = None) -> str:
    """The name for the log: the option, else the login name."""
    return actor or getpass.getuser()
