"""Options that several commands share. A value given on the line beats the environment."""

from typing import Annotated

import typer

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
        help="Who writes and judges, for example openai:gpt-5-mini.",
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
        help="Embedding model, for example openai:text-embedding-3-small; built in if left out.",
    ),
]
UserOption = Annotated[
    str | None,
    typer.Option("--user", help="Whose memories: the namespace is memories/USER."),
]
NamespaceOption = Annotated[
    list[str] | None,
    typer.Option("--namespace", help="A label of the namespace; give it once per label."),
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
        help="Named settings, see `memguard presets`; every gate takes the ones that it has.",
    ),
]
ConversationOption = Annotated[
    str | None,
    typer.Option("--conversation", help="Which one, in a file of several, for example conv-26."),
]
ActorOption = Annotated[
    str | None, typer.Option("--actor", help="Who acts, for the log; your user name if left out.")
]


def namespace_of(user: str | None, namespace: list[str] | None) -> tuple[str, ...]:
    """The namespace that the options name.

    Raises:
        InvalidInputError: If a label is blank; such a namespace would be shared by everybody.
    """
    place = tuple(namespace) if namespace else ("memories",)
    if user is not None and not namespace:
        place = (*place, user)
    if any(not label.strip() for label in place):
        from memguard.errors import ErrorCode, InvalidInputError

        msg = f"the namespace {place!r} has a blank label: give --user and --namespace a value"
        raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
    return place


def template_of(place: tuple[str, ...]) -> tuple[str, ...]:
    """The namespace as guards take it: braces that a person typed stand for themselves."""
    return tuple(label.replace("{", "{{").replace("}", "}}") for label in place)


def actor_of(actor: str | None) -> str:
    """Who acts."""
    import getpass

    return actor or getpass.getuser()
