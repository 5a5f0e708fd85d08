"""`memguard search QUERY`: what is stored, nearest first."""

from typing import Annotated, Any

import typer

from memguard.cli.options import (
    EmbedOption,
    JsonOption,
    NamespaceOption,
    StoreOption,
    UserOption,
    namespace_of,
)


def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    store: StoreOption = "memory",
    embed: EmbedOption = None,
    user: UserOption = None,
    namespace: NamespaceOption = None,
    limit: Annotated[int, typer.Option(min=1, help="Memories to print.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Print stored memories of exactly one namespace, nearest to the query first."""
    from memguard.cli.opening import open_store
    from memguard.cli.output import console, print_json, print_table

    place = namespace_of(user, namespace)
    with open_store(store, embed=embed, make=False) as opened:
        # `search` takes a prefix; memories of other users below it are none of this one's.
        found = [
            item
            for item in opened.search(place, query=query, limit=limit)
            if tuple(item.namespace) == place
        ]
    rows: list[dict[str, Any]] = [
        {
            "score": item.score,
            "text": item.value.get("content", ""),
            "said_at": _provenance(item.value).get("said_at"),
            "receipt": _provenance(item.value).get("receipt_id"),
            "key": item.key,
        }
        for item in found
    ]
    if as_json:
        print_json({"namespace": list(place), "memories": rows})
        return
    if not rows:
        console().print(f"nothing stored in {' / '.join(place)}")
        return
    print_table(
        f"{' / '.join(place)}: {query}",
        ("score", "said", "receipt", "memory"),
        [
            (
                "" if row["score"] is None else f"{row['score']:.2f}",
                str(row["said_at"] or "")[:10],
                str(row["receipt"] or "")[:8],
                str(row["text"]),
            )
            for row in rows
        ],
    )


def _provenance(value: dict[str, Any]) -> dict[str, Any]:
    found = value.get("memguard")
    return found if isinstance(found, dict) else {}
