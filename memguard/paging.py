"""Searches of exactly one namespace, in any LangGraph store.

A store searches by the prefix of a namespace, and applies `limit` before the caller can leave out
what is below it. Records of other users would therefore crowd out those that are looked for.
"""

from typing import cast

from langgraph.store.base import BaseStore, SearchItem, SearchOp

from memguard.portal import call_store
from memguard.schema.base import Namespace

_MIN_PAGE = 20
_MAX_PAGE = 1_000
_PAGE_GROWTH = 4
"""How many times as long the next page is: few of a page may be of the namespace itself."""


async def search_exactly(
    store: BaseStore, namespace: Namespace, *, limit: int, query: str | None = None
) -> list[SearchItem]:
    """The first items of exactly this namespace, in the store's order.

    Reads page after page until there are enough items, or no more.

    Args:
        store: Any LangGraph store.
        namespace: The namespace; items below it are left out.
        limit: Maximum number of items.
        query: The text to rank by; without it the store lists in its own order.
    """
    items: list[SearchItem] = []
    offset, size = 0, min(max(limit, _MIN_PAGE), _MAX_PAGE)
    while len(items) < limit:
        # Looking is not reading: it must not prolong the life of an item that expires.
        op = SearchOp(namespace, query=query, limit=size, offset=offset, refresh_ttl=False)
        page = cast("list[SearchItem]", (await call_store(store, [op]))[0])
        items += [item for item in page if tuple(item.namespace) == namespace]
        if len(page) < size:
            break
        offset, size = offset + size, min(_PAGE_GROWTH * size, _MAX_PAGE)
    return items[:limit]
