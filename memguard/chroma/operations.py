"""LangGraph's store operations: the methods that create them, and the plan of a batch of them.

A wrong value, namespace or filter is reported when the batch is planned. That is before an embedder
is paid and before anything is written, so a batch with a mistake changes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
    Op,
    PutOp,
    SearchItem,
    SearchOp,
    get_text_at_path,
    tokenize_path,
)

from memguard.chroma.settings import WHOLE, Settings, check_fields, check_ttl, check_whole
from memguard.chroma.values import (
    Address,
    check_filter,
    check_labels,
    check_namespace,
    check_writable,
    encode_value,
)
from memguard.errors import ErrorCode, InvalidInputError
from memguard.schema.base import Namespace, is_blank


class AnyLabelStore(BaseStore):
    """A store that checks namespaces in `batch` and `abatch`, by its own rules.

    The methods of `BaseStore` refuse a label with a dot before the store sees it, and so refuse
    every e-mail address. Those below create the same operations without that check.
    """

    accepts_any_label: ClassVar[bool] = True
    """Labels need not be replaced before they are used here, unlike in LangGraph's own stores."""

    def get(
        self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None
    ) -> Item | None:
        """One item, or `None`."""
        op = GetOp(namespace, str(key), self._refreshes(refresh_ttl))
        return cast("Item | None", self.batch([op])[0])

    async def aget(
        self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None
    ) -> Item | None:
        """As `get`."""
        op = GetOp(namespace, str(key), self._refreshes(refresh_ttl))
        return cast("Item | None", (await self.abatch([op]))[0])

    def search(
        self,
        namespace_prefix: Namespace,
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002  # LangGraph's name
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """Items at or below a namespace; see the class for their order."""
        refreshes = self._refreshes(refresh_ttl)
        op = SearchOp(namespace_prefix, filter, limit, offset, query, refreshes)
        return cast("list[SearchItem]", self.batch([op])[0])

    async def asearch(
        self,
        namespace_prefix: Namespace,
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002  # LangGraph's name
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """As `search`."""
        refreshes = self._refreshes(refresh_ttl)
        op = SearchOp(namespace_prefix, filter, limit, offset, query, refreshes)
        return cast("list[SearchItem]", (await self.abatch([op]))[0])

    def put(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """Store an item, replacing the one of that key.

        Args:
            namespace: The namespace of the item.
            key: Its key in the namespace.
            value: A dict that JSON can represent.
            index: Paths to embed instead of the store's; `False` for none.
            ttl: Minutes to live; by default the store's `default_ttl`, and `None` for ever.
        """
        self.batch([PutOp(namespace, str(key), value, index, self._minutes(ttl))])

    async def aput(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """As `put`."""
        await self.abatch([PutOp(namespace, str(key), value, index, self._minutes(ttl))])

    def delete(self, namespace: Namespace, key: str) -> None:
        """Delete an item, if it is there."""
        self.batch([PutOp(namespace, str(key), None)])

    async def adelete(self, namespace: Namespace, key: str) -> None:
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
    ) -> list[Namespace]:
        """Namespaces that hold an item, in order; `"*"` in a path matches any one label."""
        op = _list_op(prefix, suffix, max_depth, limit, offset)
        return cast("list[Namespace]", self.batch([op])[0])

    async def alist_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Namespace]:
        """As `list_namespaces`."""
        op = _list_op(prefix, suffix, max_depth, limit, offset)
        return cast("list[Namespace]", (await self.abatch([op]))[0])

    def _minutes(self, ttl: float | NotProvided | None) -> float | None:
        # `None` is a choice of the caller, so only an omitted argument takes the default.
        default = (self.ttl_config or {}).get("default_ttl")
        return default if isinstance(ttl, NotProvided) else ttl

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


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedPut:
    """The put of one address that is carried out: the last one in the batch."""

    address: Address
    text: str
    """The value as JSON."""
    texts: tuple[str, ...]
    """The texts to embed, each with a vector of its own; empty for an item without an index."""
    ttl: float | None
    """Minutes to live; `None` for ever."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedSearch:
    """One search, checked."""

    op: SearchOp
    """With its prefix and filter checked."""
    query: str | None
    """The text to embed; `None` for a search without ranking."""


PlannedRead = PlannedSearch | GetOp | ListNamespacesOp


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A batch, sorted into the reads and the writes that follow them."""

    reads: list[tuple[int, PlannedRead]] = field(default_factory=list[Any])
    """Each with its index in the batch, which is the index of its result."""
    puts: list[PlannedPut] = field(default_factory=list[PlannedPut])
    deletions: list[Address] = field(default_factory=list[Address])
    size: int = 0
    """Operations in the batch."""

    @property
    def texts(self) -> list[str]:
        """Every text to store a vector of, once."""
        # Without repeats, because a hosted embedder is paid by the text.
        return list(dict.fromkeys(text for planned in self.puts for text in planned.texts))

    @property
    def queries(self) -> list[str]:
        """Every search text, once."""
        queries = (read.query for _, read in self.reads if isinstance(read, PlannedSearch))
        return list(dict.fromkeys(query for query in queries if query))


def make_plan(ops: Iterable[Op], *, settings: Settings) -> Plan:
    """Check operations and sort them into reads and writes; the last put of an address counts.

    Raises:
        InvalidInputError: If any operation cannot be carried out; none is then.
    """
    batch = tuple(ops)
    plan = Plan(size=len(batch))
    writes: dict[Address, PlannedPut | None] = {}
    for index, op in enumerate(batch):
        if isinstance(op, PutOp):
            address, planned = _plan_put(op, settings)
            # Removed first, so that the last put of an address is also last in the order.
            writes.pop(address, None)
            writes[address] = planned
        else:
            plan.reads.append((index, _plan_read(op, settings)))
    plan.puts.extend(planned for planned in writes.values() if planned is not None)
    plan.deletions.extend(address for address, planned in writes.items() if planned is None)
    return plan


def _plan_put(op: PutOp, settings: Settings) -> tuple[Address, PlannedPut | None]:
    if op.value is None:
        # Not `check_writable`: an item that another program wrote there can still be deleted.
        return Address(check_namespace(op.namespace), str(op.key)), None
    address = Address(check_writable(op.namespace), str(op.key))
    text = encode_value(op.value, address=address)
    texts = texts_of(op.value, op.index, settings.fields) if settings.embedder else ()
    return address, PlannedPut(address=address, text=text, texts=texts, ttl=check_ttl(op.ttl))


def _plan_read(op: object, settings: Settings) -> PlannedRead:
    if isinstance(op, GetOp):
        return op._replace(namespace=check_namespace(op.namespace), key=str(op.key))
    if isinstance(op, SearchOp | ListNamespacesOp):
        check_whole("limit", op.limit, 0, None)
        check_whole("offset", op.offset, 0, None)
    if isinstance(op, SearchOp):
        # A store without an index ignores the query, as LangGraph's own stores do.
        checked = op._replace(
            namespace_prefix=check_labels(op.namespace_prefix), filter=check_filter(op.filter)
        )
        query = op.query if settings.embedder and op.query else None
        return PlannedSearch(op=checked, query=query)
    if isinstance(op, ListNamespacesOp):
        conditions = tuple(
            MatchCondition(condition.match_type, check_labels(condition.path))
            for condition in op.match_conditions or ()
        )
        return op._replace(match_conditions=conditions)
    msg = f"{op!r} is not a store operation. Pass GetOp, SearchOp, PutOp or ListNamespacesOp"
    raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)


def texts_of(
    value: Mapping[str, Any], index: Literal[False] | list[str] | None, fields: Sequence[str]
) -> tuple[str, ...]:
    """The texts to embed for one item, without repetitions and blank ones.

    The put's own `index` is `False` for none, paths, or `None` for the store's paths.
    """
    if index is False:
        return ()
    paths = fields if index is None else check_fields(index)
    # LangGraph's own path syntax, so that a value is indexed here as it is in its stores.
    texts = (
        text
        for path in paths
        for text in get_text_at_path(value, path if path == WHOLE else tokenize_path(path))
    )
    return tuple(dict.fromkeys(text for text in texts if not is_blank(text)))
