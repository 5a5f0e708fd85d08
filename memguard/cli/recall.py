"""`memguard recall QUERY`: which memories may enter the prompt for a query, and why."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memguard.cli import options
from memguard.cli.opening import create_journal, named_file, open_store, pick_model
from memguard.cli.options import namespace_of, template_of
from memguard.cli.output import console, print_json
from memguard.cli.show import print_read
from memguard.errors import ErrorCode, InvalidInputError

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from memguard.read.admission import AdmissionSpec
    from memguard.schema.read import Recall


def recall(
    query: Annotated[str, typer.Argument(help="What the user asks.", metavar="QUERY")],
    store: options.StoreOption = "memory",
    model: options.ModelOption = None,
    base_url: options.BaseUrlOption = None,
    embed: options.EmbedOption = None,
    user: options.UserOption = None,
    namespace: options.NamespaceOption = None,
    admission: Annotated[
        str, typer.Option(help="Method: ps (parts of memories), fc (whole memories) or relevance.")
    ] = "ps",
    rendering: Annotated[
        str, typer.Option(help="Form of the section: channels, permission_notes or neutral.")
    ] = "channels",
    preset: Annotated[
        str,
        typer.Option(
            "--preset",
            help="Preset of the method: default, or paper (only the rules of the paper).",
        ),
    ] = "default",
    evidence: Annotated[
        str | None, typer.Option(help="Document that comes with the query: a file, or its text.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=200, help="Maximum number of memories to recall.")
    ] = 10,
    since: Annotated[
        str | None, typer.Option(help="Only what was said on or after this day: 2026-03-01.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Only what was said before this day: 2026-06-01.")
    ] = None,
    latest: Annotated[
        bool, typer.Option("--latest", help="Recall the latest memories instead of the nearest.")
    ] = False,
    audience: Annotated[
        str,
        typer.Option(
            help="Who reads the answer: private, or group (sensitive memories, and those of other "
            "owners, are withheld)."
        ),
    ] = "private",
    superseded: Annotated[
        bool, typer.Option("--superseded", help="Include memories that a later one superseded.")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Print which memories may enter a prompt, and why.

    Also prints what is withheld, and the exact section of the prompt. Without a model, rules and
    the built-in embedder judge. They need no key and no network, and are weaker.
    """
    from memguard.read.audience import check_audience
    from memguard.read.graph import create_read_guard

    readers = check_audience(audience)
    settings = _recall(limit, since=since, until=until, latest=latest, superseded=superseded)
    spec = _admission(admission, rendering=rendering, preset=preset)
    labels, documents = namespace_of(user, namespace), _evidence(evidence)
    judge = pick_model(model, base_url=base_url)
    with (
        # A misspelled name must not create an empty store, which would answer "no memories".
        open_store(store, embed=embed, create=False) as opened,
        create_journal(store) as journal,
    ):
        guard = create_read_guard(
            judge,
            store=opened,
            namespace=template_of(labels),
            admission=spec,
            recall=settings,
            receipts=journal,
            # Seconds. No user waits for an answer here, and the first read loads the models.
            deadline=300.0,
            on_failure="raise",
            audience=readers,
        )
        # The user of the command asks; without one, nobody is known to.
        config: RunnableConfig = {"configurable": {"user_id": user} if user else {}}
        read = guard.invoke({"query": query, "evidence": documents}, config)["read"]
    if as_json:
        print_json(read)
        return

    print_read(read)
    command = f"memguard receipts show {read.id[:8]} --store {store}"
    console().print(f"\n`{command}` prints the full receipt")


def _recall(
    limit: int, *, since: str | None, until: str | None, latest: bool, superseded: bool
) -> "Recall":
    from pydantic import ValidationError

    from memguard.schema.read import Recall

    try:
        return Recall.model_validate(
            {
                "k": limit,
                "order": "latest" if latest else "similarity",
                "since": since,
                "until": until,
                "current_only": not superseded,
            }
        )
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        msg = f"{field or 'the time window'}: {first['msg']}; give days as 2026-03-01"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID) from None


def _admission(name: str, *, rendering: str, preset: str) -> "AdmissionSpec":
    from memguard.presets import choose_admission
    from memguard.schema.read import READ_PRESETS

    # Both presets exist for every method on the command line; on `relevance` they have no effect.
    presets = () if name == "relevance" and preset in READ_PRESETS else (preset,)
    return choose_admission(name, presets=presets, rendering=rendering)


def _evidence(evidence: str | None) -> Any:
    if evidence is None:
        return ()
    file = named_file(evidence)
    if file is None:
        return evidence
    return {"text": file.read_text(encoding="utf-8", errors="replace"), "source": evidence}
