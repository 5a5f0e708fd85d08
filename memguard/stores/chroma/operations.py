"""LangGraph's store methods without its ban on dots: labels go to the store's own check.

`BaseStore` refuses a label with a dot before a store sees it, and with it every e-mail address.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, cast

from langgraph.store.base import (
    NOT_PROVIDED,
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    NamespacePath,
    NotProvided,
    PutOp,
    SearchItem,
    SearchOp,
)

from memguard.schema.base import Namespace


class AnyLabelStore(BaseStore):
    """A store that checks namespaces in `batch` and `abatch`, by rules of its own."""

    accepts_any_label: ClassVar[bool] = True
    """Labels need no cleaning before they are used here, unlike in LangGraph's own stores."""

    def get(
        self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None
    ) -> Item | None:
        """One item, or `None`."""
        return self.batch([self._get_op(namespace, key, refresh_ttl)])[0]  # pyright: ignore[reportReturnType]

    async def aget(
        self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None
    ) -> Item | None:
        """One item, or `None`."""
        found = await self.abatch([self._get_op(namespace, key, refresh_ttl)])
        return cast("Item | None", found[0])

    def search(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002  # LangGraph's name
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """Items at or below a namespace; see the class for their order."""
        refresh = self._refreshes(refresh_ttl)
        op = SearchOp(namespace_prefix, filter, limit, offset, query, refresh)
        return cast("list[SearchItem]", self.batch([op])[0])

    async def asearch(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002  # LangGraph's name
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """As `search`."""
        refresh = self._refreshes(refresh_ttl)
        op = SearchOp(namespace_prefix, filter, limit, offset, query, refresh)
        return cast("list[SearchItem]", (await self.abatch([op]))[0])

    def put(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """Store an item, replacing the one of that key.

        Args:
            namespace: Where.
            key: Its key there.
            value: A dict of what JSON can say.
            index: Paths to embed instead of the store's; `False` for none.
            ttl: Minutes to live; the store's `default_ttl` when not given.
        """
        self.batch([self._put_op(namespace, key, value, index, ttl)])

    async def aput(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """As `put`."""
        await self.abatch([self._put_op(namespace, key, value, index, ttl)])

    def delete(self, namespace: tuple[str, ...], key: str) -> None:
        """Delete an item, if it is there."""
        self.batch([PutOp(namespace, str(key), None)])

    async def adelete(self, namespace: tuple[str, ...], key: str) -> None:
        """As `delete`."""
        await self.abatch([PutOp(namespace, str(key), None)])

    def list_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """Namespaces that hold an item, in order; `"*"` in a path matches any one label."""
        op = _list_op(prefix, suffix, max_depth, limit, offset)
        return cast("list[tuple[str, ...]]", self.batch([op])[0])

    async def alist_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """As `list_namespaces`."""
        op = _list_op(prefix, suffix, max_depth, limit, offset)
        return cast("list[tuple[str, ...]]", (await self.abatch([op]))[0])

    def _get_op(self, namespace: Namespace, key: str, refresh_ttl: bool | None) -> GetOp:
        return GetOp(namespace, str(key), self._refreshes(refresh_ttl))

    def _put_op(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None,
        ttl: float | NotProvided | None,
    ) -> PutOp:
        default = (self.ttl_config or {}).get("default_ttl")
        lives = default if isinstance(ttl, NotProvided) else ttl
        return PutOp(namespace, str(key), value, index=index, ttl=lives)

    def _refreshes(self, refresh_ttl: bool | None) -> bool:
        if refresh_ttl is not None:
            return refresh_ttl
        return (self.ttl_config or {}).get("refresh_on_read", True)


def _list_op(
    prefix: NamespacePath | None,
    suffix: NamespacePath | None,
    max_depth: int | None,
    limit: int,
    offset: int,
) -> ListNamespacesOp:
    conditions = (
        *((MatchCondition("prefix", prefix),) if prefix else ()),
        *((MatchCondition("suffix", suffix),) if suffix else ()),
    )
    return ListNamespacesOp(conditions, max_depth, limit, offset)
