"""`memguard search QUERY`: what is stored, nearest first."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memguard.cli.options import (
    EmbedOption,
    JsonOption,
    NamespaceOption,
    StoreOption,
    UserOption,
    namespace_of,
)

if TYPE_CHECKING:
    from langgraph.store.base import SearchItem

    from memguard.stores import ChromaStore

_MOST_PAGE = 1_000
"""Items looked through at once."""


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
        found = _exactly(opened, place=place, query=query, limit=limit)
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


def _exactly(
    store: "ChromaStore", *, place: tuple[str, ...], query: str, limit: int
) -> "list[SearchItem]":
    """The nearest of exactly this namespace.

    A store searches by prefix, and memories of other users below are none of this one's: pages are
    looked through until there are enough, or no more.
    """
    found: list[SearchItem] = []
    seen, size = 0, min(limit, _MOST_PAGE)
    while len(found) < limit:
        page = store.search(place, query=query, limit=size, offset=seen)
        found += [item for item in page if tuple(item.namespace) == place]
        if len(page) < size:
            break
        seen, size = seen + size, min(4 * size, _MOST_PAGE)
    return found[:limit]


def _provenance(value: dict[str, Any]) -> dict[str, Any]:
    found = value.get("memguard")
    return found if isinstance(found, dict) else {}
