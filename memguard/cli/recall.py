"""`memguard recall QUERY`: what memory may add to an answer, what is withheld, and why."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memguard.cli.options import (
    BaseUrlOption,
    EmbedOption,
    JsonOption,
    ModelOption,
    NamespaceOption,
    StoreOption,
    UserOption,
    namespace_of,
    template_of,
)

if TYPE_CHECKING:
    from memguard.schema.recall import Recall


_DEADLINE = 300.0
"""Seconds; an agent's own reads have the admission's deadline."""


def recall(
    query: Annotated[str, typer.Argument(help="What is asked.")],
    store: StoreOption = "memory",
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    embed: EmbedOption = None,
    user: UserOption = None,
    namespace: NamespaceOption = None,
    admission: Annotated[
        str, typer.Option(help="ps (units), fc (whole entries) or relevance (nearness alone).")
    ] = "ps",
    rendering: Annotated[
        str, typer.Option(help="channels, permission_notes or neutral.")
    ] = "channels",
    preset: Annotated[
        str, typer.Option("--preset", help="default, or paper: none of our own rules.")
    ] = "default",
    evidence: Annotated[
        str | None, typer.Option(help="A file that comes with the query, or its text.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Memories to look at.")] = 10,
    since: Annotated[str | None, typer.Option(help="Only what was said from this day on.")] = None,
    until: Annotated[str | None, typer.Option(help="Only what was said before this day.")] = None,
    latest: Annotated[
        bool, typer.Option("--latest", help="Look at what was said last, not at the nearest.")
    ] = False,
    superseded: Annotated[
        bool, typer.Option("--superseded", help="Look at superseded records too.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print what may enter the prompt, what is withheld and why, and the exact section.

    Without a model, rules and the built-in embedder judge: no key, no network, and weaker.
    """
    from memguard.cli.opening import make_journal, open_store, pick_model
    from memguard.guard import create_read_guard

    settings = _recall(limit, since=since, until=until, latest=latest, superseded=superseded)
    spec = _admission(admission, rendering=rendering, preset=preset)
    place, given = namespace_of(user, namespace), _evidence(evidence)
    judge = pick_model(model, base_url=base_url)
    with (
        open_store(store, embed=embed, make=False) as opened,
        make_journal(store) as journal,
    ):
        guard = create_read_guard(
            judge,
            store=opened,
            namespace=template_of(place),
            admission=spec,
            recall=settings,
            receipts=journal,
            # No answer waits here, and a first read loads what judges it.
            deadline=_DEADLINE,
            on_failure="raise",
        )
        read = guard.invoke({"query": query, "evidence": given})["read"]
    if as_json:
        from memguard.cli.output import print_json

        print_json(read.model_dump(mode="json"))
        return
    from memguard.cli.output import console
    from memguard.cli.show_read import print_read

    print_read(read)
    console().print(f"\nsee `memguard receipts show {read.id[:8]} --store {store}` for all of it")


def _recall(
    limit: int, *, since: str | None, until: str | None, latest: bool, superseded: bool
) -> "Recall":
    from pydantic import ValidationError

    from memguard.errors import ErrorCode, InvalidInputError
    from memguard.schema.recall import Recall

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
        where = ".".join(str(part) for part in first["loc"])
        msg = f"{where or 'the time window'}: {first['msg']}; give days as 2026-03-01"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID) from None


def _admission(name: str, *, rendering: str, preset: str) -> Any:
    from typing import get_args

    from memguard.errors import ErrorCode, InvalidInputError
    from memguard.guard.admission import BY_NAME
    from memguard.schema.read_config import READ_PRESETS, Rendering

    for value, known, what in (
        (name, tuple(BY_NAME), "admission"),
        (rendering, get_args(Rendering), "rendering"),
        (preset, tuple(READ_PRESETS), "preset"),
    ):
        if value not in known:
            msg = f"there is no {what} {value!r}: use one of {', '.join(known)}"
            raise InvalidInputError(msg, code=ErrorCode.SPEC_INVALID)
    kind = type(BY_NAME[name])
    if "rendering" not in kind.model_fields:
        return kind()  # nothing of it is ours, and it knows one rendering
    return kind.model_validate({"preset": preset, "rendering": rendering})


def _evidence(evidence: str | None) -> Any:
    from memguard.cli.opening import named_file

    if evidence is None:
        return ()
    file = named_file(evidence)
    if file is None:
        return evidence
    return {"text": file.read_text(encoding="utf-8", errors="replace"), "source": evidence}
