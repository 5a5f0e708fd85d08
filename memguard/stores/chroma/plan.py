"""A batch of LangGraph operations, checked and sorted before anything is done.

What is wrong with a value, a namespace or a filter is said here: before an embedder is paid and
before anything is written. Pure but for the names of LangGraph's operations.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp

from memguard.errors import ErrorCode, InvalidInputError
from memguard.stores.chroma.filters import check_filter
from memguard.stores.chroma.namespaces import check_labels, check_namespace, check_writable
from memguard.stores.chroma.texts import texts_of
from memguard.stores.chroma.values import Address, encode_value, is_finite_ttl


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedPut:
    """One put, last of its address in the batch."""

    address: Address
    text: str
    """The value as JSON."""
    texts: tuple[str, ...]
    """What to embed."""
    ttl: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedSearch:
    """One search."""

    op: SearchOp
    """With its prefix and filter checked."""
    query: str | None
    """What to embed; `None` if nothing is to be ranked."""


Planned = PlannedPut | PlannedSearch | GetOp | ListNamespacesOp


class Rules(Protocol):
    """What planning must know about the store."""

    @property
    def fields(self) -> Sequence[str]:
        """Indexed paths."""
        ...

    @property
    def is_indexed(self) -> bool:
        """Whether anything is ever embedded."""
        ...


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A batch: reads in their order, and the writes that follow them."""

    reads: list[tuple[int, PlannedSearch | GetOp | ListNamespacesOp]] = field(
        default_factory=list[Any]
    )
    puts: list[PlannedPut] = field(default_factory=list[PlannedPut])
    deletions: list[Address] = field(default_factory=list[Address])
    size: int = 0
    """Operations in the batch."""

    @property
    def texts(self) -> list[str]:
        """Every text to store a vector of, once."""
        return list(dict.fromkeys(text for put in self.puts for text in put.texts))

    @property
    def queries(self) -> list[str]:
        """Every search text, once."""
        found = (each.query for _, each in self.reads if isinstance(each, PlannedSearch))
        return list(dict.fromkeys(query for query in found if query))


def make_plan(ops: Iterable[Op], *, rules: Rules) -> Plan:
    """Check operations and sort them into reads and writes; the last put of an address counts.

    Raises:
        InvalidInputError: If any operation cannot be carried out; none is then.
    """
    plan = Plan()
    writes: dict[Address, PlannedPut | None] = {}
    size = 0
    for place, op in enumerate(ops):
        size = place + 1
        if isinstance(op, PutOp):
            address, put = _plan_put(op, rules)
            writes.pop(address, None)
            writes[address] = put
        else:
            plan.reads.append((place, _plan_read(op, rules)))
    plan.puts.extend(put for put in writes.values() if put is not None)
    plan.deletions.extend(address for address, put in writes.items() if put is None)
    return replace(plan, size=size)


def check_ttl(ttl: object) -> float | None:
    """Minutes to live, or `None` for ever.

    Raises:
        InvalidInputError: If it is no positive, finite number.
    """
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not is_finite_ttl(ttl):
        msg = f"`ttl` is a positive number of minutes or None, not {ttl!r}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    return float(ttl)


def _plan_put(op: PutOp, rules: Rules) -> tuple[Address, PlannedPut | None]:
    if op.value is None:
        return Address(check_namespace(op.namespace), str(op.key)), None
    address = Address(check_writable(op.namespace), str(op.key))
    text = encode_value(op.value, address=address)
    texts = texts_of(op.value, op.index, rules.fields) if rules.is_indexed else ()
    return address, PlannedPut(address=address, text=text, texts=texts, ttl=check_ttl(op.ttl))


def _plan_read(op: object, rules: Rules) -> PlannedSearch | GetOp | ListNamespacesOp:
    if isinstance(op, GetOp):
        return op._replace(namespace=check_namespace(op.namespace), key=str(op.key))
    if isinstance(op, SearchOp):
        _check_page(op.limit, op.offset)
        checked = op._replace(
            namespace_prefix=check_labels(op.namespace_prefix), filter=check_filter(op.filter)
        )
        query = op.query if rules.is_indexed and op.query else None
        return PlannedSearch(op=checked, query=query)
    if isinstance(op, ListNamespacesOp):
        _check_page(op.limit, op.offset)
        conditions = tuple(
            MatchCondition(each.match_type, check_labels(each.path))
            for each in op.match_conditions or ()
        )
        return op._replace(match_conditions=conditions)
    msg = f"{op!r} is no operation of a store. Pass GetOp, SearchOp, PutOp or ListNamespacesOp"
    raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)


def _check_page(limit: object, offset: object) -> None:
    for name, number in (("limit", limit), ("offset", offset)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            msg = f"`{name}` is a whole number from 0 up, not {number!r}"
            raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
