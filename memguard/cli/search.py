"""`memguard search QUERY`: the stored memories that are nearest to a query."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memguard.cli import options
from memguard.cli.opening import open_store
from memguard.cli.options import namespace_of
from memguard.cli.output import console, print_json, print_table, provenance_of

if TYPE_CHECKING:
    from langgraph.store.base import SearchItem


def search(
    query: Annotated[str, typer.Argument(help="Text to search for.", metavar="QUERY")],
    store: options.StoreOption = "memory",
    embed: options.EmbedOption = None,
    user: options.UserOption = None,
    namespace: options.NamespaceOption = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of memories.")] = 10,
    as_json: options.JsonOption = False,
) -> None:
    """Print the stored memories nearest to a query.

    Only memories of exactly the namespace are printed, the nearest first.
    """
    from memguard.paging import search_exactly
    from memguard.portal import run_sync

    labels = namespace_of(user, namespace)
    # A misspelled name must not create an empty store, which would answer "no memories".
    with open_store(store, embed=embed, create=False) as opened:
        items = run_sync(search_exactly(opened, labels, query=query, limit=limit))
    memories = [_body(item) for item in items]
    if as_json:
        print_json({"namespace": list(labels), "memories": memories})
        return
    title = " / ".join(labels)
    if not memories:
        console().print(f"nothing stored in {title}")
        return
    rows = [
        (
            # An item that was stored without a vector has no score.
            "" if memory["score"] is None else f"{memory['score']:.2f}",
            str(memory["said_at"] or "")[:10],
            str(memory["receipt"] or "")[:8],
            str(memory["text"]),
        )
        for memory in memories
    ]
    print_table(f"{title}: {query}", ("score", "said", "receipt", "memory"), rows)


def _body(item: "SearchItem") -> dict[str, Any]:
    provenance = provenance_of(item.value)
    return {
        "score": item.score,
        "text": item.value.get("content", ""),
        "said_at": provenance.get("said_at"),
        "receipt": provenance.get("receipt_id"),
        "key": item.key,
    }
