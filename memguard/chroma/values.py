"""What can be stored and asked for: namespaces, values and filters, and their form inside Chroma.

**Namespaces** become one ASCII string and back again. `("acme", "jo.doe@example.org")` is written
`acme/jo.doe@example.org`. Everything but ASCII letters, digits and `-_.@+` is escaped as `%XX` per
UTF-8 byte, so no label can hold a separator, two namespaces never share a text, and case is kept.

**Values** are checked before they are written, so that each comes back equal. One item is one row,
or one row per vector if several fields are indexed. The first row, the head, carries everything;
the others exist for their vector. Every row has the same metadata keys, because Chroma's upsert
merges metadata and would keep a key that the new row lacks.

**Filters** on stored values have the meaning that LangGraph's `InMemoryStore` gives them:

```text
{"kind": "note"}                 equal
{"score": {"$gte": 3, "$lt": 9}} operators: $eq $ne $gt $gte $lt $lte
{"meta": {"lang": "en"}}         into a nested object; other fields of it do not matter
{"tags": ["a", "b"]}             a list, item by item, of the same length
```

A field that is missing reads as `None`. `$gt`, `$gte`, `$lt` and `$lte` compare as numbers
(`float(...)` on both sides). A value that is not a number does not match, where `InMemoryStore`
raises `TypeError` because one stored item lacks the field. Two texts that are not numbers, such as
ISO dates, compare as text.
"""

import hashlib
import json
import operator
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, NoReturn, cast
from urllib.parse import unquote_to_bytes

from langgraph.store.base import (
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    SearchItem,
)

from memguard.errors import ErrorCode, InvalidInputError
from memguard.schema.base import Namespace

# -- namespaces -------------------------------------------------------------------------------

SEPARATOR = "/"
RESERVED_ROOT = "langgraph"
"""LangGraph keeps this root for itself and refuses writes to it; so do we."""

_UNSAFE = re.compile(r"[^A-Za-z0-9\-_.@+]")


class NamespaceError(InvalidInputError, InvalidNamespaceError):
    """A namespace that no item can be in; LangGraph's error too, for code that expects that."""


def check_labels(namespace: object) -> Namespace:
    """A namespace with every label a non-empty string.

    Any text may be a label: dots, spaces, `%`, `/`, any script. An integer is stored as its `str`,
    so `("users", 7)` and `("users", "7")` are the same namespace.

    Args:
        namespace: What a caller passed; may be empty, as the prefix of a search.

    Raises:
        NamespaceError: If it is not a sequence of labels, or a label is empty or of another type.
    """
    if isinstance(namespace, str) or not isinstance(namespace, Sequence):
        msg = f"A namespace is a tuple of labels, not {namespace!r}. Pass ('memories', 'ana')"
        raise NamespaceError(msg, code=ErrorCode.NAMESPACE_INVALID)
    labels: Sequence[object] = namespace  # pyright: ignore[reportUnknownVariableType]
    return tuple(_label(label, labels) for label in labels)


def check_namespace(namespace: object) -> Namespace:
    """As `check_labels`, for a namespace that items can be in: not empty.

    Raises:
        NamespaceError: If the namespace or one of its labels cannot be used.
    """
    checked = check_labels(namespace)
    if not checked:
        msg = "The namespace () is empty. Pass at least one label, such as ('memories', 'ana')"
        raise NamespaceError(msg, code=ErrorCode.NAMESPACE_INVALID)
    return checked


def check_writable(namespace: object) -> Namespace:
    """As `check_namespace`, for a put: not under the root LangGraph reserves.

    Raises:
        NamespaceError: If nothing may be written there.
    """
    checked = check_namespace(namespace)
    if checked[0] == RESERVED_ROOT:
        msg = f"The namespace {checked!r} starts with 'langgraph', which LangGraph reserves. Rename"
        raise NamespaceError(msg, code=ErrorCode.NAMESPACE_INVALID)
    return checked


def encode_namespace(namespace: Namespace) -> str:
    """The one text of a namespace; `decode_namespace` reads it back."""
    return SEPARATOR.join(_encode_label(label) for label in namespace)


def decode_namespace(text: str) -> Namespace:
    """The namespace that `encode_namespace` wrote."""
    return tuple(
        unquote_to_bytes(part).decode("utf-8", "surrogatepass") for part in text.split(SEPARATOR)
    )


def is_under(namespace: Namespace, prefix: Namespace) -> bool:
    """Whether a namespace lies at or below a prefix; labels are compared whole."""
    return namespace[: len(prefix)] == prefix


def select_namespaces(
    namespaces: Iterable[Namespace], conditions: Iterable[MatchCondition]
) -> list[Namespace]:
    """Those that meet every condition; `"*"` in a condition matches any one label."""
    criteria = tuple(conditions)
    return [
        namespace
        for namespace in namespaces
        if all(_meets(namespace, criterion) for criterion in criteria)
    ]


def page_namespaces(namespaces: Iterable[Namespace], op: ListNamespacesOp) -> list[Namespace]:
    """Clip to `max_depth`, drop repeats, sort, and take the page the operation asks for."""
    clipped = {namespace[: op.max_depth] for namespace in namespaces}
    return sorted(clipped)[op.offset : op.offset + op.limit]


def _label(label: object, namespace: Sequence[object]) -> str:
    if isinstance(label, int) and not isinstance(label, bool):
        return str(label)
    if not isinstance(label, str):
        kind = type(label).__name__
        msg = f"The label {label!r} in {namespace!r} is a {kind}. Pass a string or an integer"
        raise NamespaceError(msg, code=ErrorCode.NAMESPACE_INVALID)
    if not label:
        msg = f"A label in the namespace {namespace!r} is empty. Give every label a character"
        raise NamespaceError(msg, code=ErrorCode.NAMESPACE_INVALID)
    return str(label)


def _encode_label(label: str) -> str:
    return _UNSAFE.sub(_escape, label)


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match.group().encode("utf-8", "surrogatepass"))


def _meets(namespace: Namespace, condition: MatchCondition) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    if condition.match_type == "prefix":
        labels = namespace[: len(path)]
    elif condition.match_type == "suffix":
        labels = namespace[len(namespace) - len(path) :]
    else:
        msg = f"{condition.match_type!r} is not a way to match. Use 'prefix' or 'suffix'"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    return all(wanted in ("*", label) for wanted, label in zip(path, labels, strict=True))


# -- values -----------------------------------------------------------------------------------

NS = "ns"
"""Metadata: the encoded namespace, on every row."""
RANKED = "q"
"""Metadata: the encoded namespace again if the row's vector has a meaning, else empty.

Rows without one (`index=False`, or no text) hold a vector derived from their id, which a query
must never rank; one equality on this key says both whose and whether.
"""
RECORD = "rec"
"""Metadata: the record as ASCII JSON on the head, the revision alone on the other rows."""
EXPIRES = "exp"
"""Metadata: when the item expires, in seconds since 1970; `NEVER` if it does not."""

NEVER = 4e18
"""Beyond any clock; Chroma drops infinity silently, so a finite number stands for it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MAX_DEPTH = 200
"""Nesting of a value; far below what JSON readers of other languages accept."""


class Address(NamedTuple):
    """The namespace and key of one item."""

    namespace: Namespace
    key: str

    @property
    def row_id(self) -> str:
        """Stem of the ids of its rows; two addresses never share one (160 bits of SHA-256)."""
        text = f"{encode_namespace(self.namespace)}\n{self.key}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One stored item, as its head row holds it."""

    key: str
    text: str
    """The value as JSON; parsed anew for each reader, so that no reader changes another's copy."""
    created: int
    """Microseconds since 1970, UTC."""
    updated: int
    """Microseconds since 1970, UTC."""
    ttl: float | None
    """Minutes from the last use to the end."""
    vectors: int
    """Rows with a vector that has a meaning; 0 for an item that is not indexed."""
    revision: str
    """New with every put; rows of an older one are remains and count as absent."""

    @property
    def rows(self) -> int:
        """How many rows the item has."""
        return max(1, self.vectors)

    def value(self) -> dict[str, Any]:
        """A fresh copy of the value."""
        return json.loads(self.text)

    def dumps(self) -> str:
        """The text `loads_record` reads."""
        head = json.dumps(
            [self.key, self.created, self.updated, self.ttl, self.vectors, self.revision]
        )
        return f"{head}\n{self.text}"


def loads_record(text: str) -> Record:
    """Read what `Record.dumps` wrote."""
    head, _, value = text.partition("\n")
    names = ("key", "created", "updated", "ttl", "vectors", "revision")
    return Record(text=value, **dict(zip(names, json.loads(head), strict=True)))


def encode_value(value: object, *, address: Address) -> str:
    """A value as ASCII JSON, or an error with the path of the part that JSON cannot hold.

    Everything that JSON can hold comes back equal, NaN and infinity included (as Python's `json`
    writes them). Tuples, sets, bytes, dates and keys that are not strings would come back as
    something else or not at all, and are refused.

    Raises:
        InvalidInputError: With the code `STORE_VALUE`.
    """
    if not isinstance(value, Mapping):
        _refuse("$", value, address, "Pass a dict with string keys")
    # A copy, so that a caller's own kind of mapping becomes a plain object.
    content = dict(cast("Mapping[Any, Any]", value))
    _check_value(content, path="$", depth=0, address=address)
    try:
        return json.dumps(content)
    except ValueError as error:
        msg = f"The value of {address.key!r} in {address.namespace!r} cannot be written: {error}"
        raise InvalidInputError(msg, code=ErrorCode.STORE_VALUE) from error


def to_item(record: Record, namespace: Namespace) -> Item:
    """A record as LangGraph returns it."""
    return Item(**_fields(record, namespace))


def to_search_item(record: Record, namespace: Namespace, *, score: float | None) -> SearchItem:
    """A record as a search returns it."""
    return SearchItem(**_fields(record, namespace), score=score)


def _fields(record: Record, namespace: Namespace) -> dict[str, Any]:
    return {
        "value": record.value(),
        "key": record.key,
        "namespace": namespace,
        "created_at": from_microseconds(record.created),
        "updated_at": from_microseconds(record.updated),
    }


def to_microseconds(moment: datetime) -> int:
    """Microseconds since 1970, exact."""
    # Whole numbers all the way: `timestamp()` is a float and loses microseconds.
    return (moment - _EPOCH) // _MICROSECOND


def from_microseconds(count: int) -> datetime:
    """The aware UTC moment, whatever zone the machine is in."""
    return _EPOCH + count * _MICROSECOND


def namespace_of(metadata: Mapping[str, Any]) -> Namespace:
    """The namespace a row says it belongs to."""
    return decode_namespace(str(metadata[NS]))


def _check_value(value: Any, *, path: str, depth: int, address: Address) -> None:
    # The most common types first: this runs over every part of every value put.
    if value is None or isinstance(value, str | int | float):
        return
    if depth > _MAX_DEPTH:
        _refuse(path, value, address, f"Nest at most {_MAX_DEPTH} deep")
    if isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            _check_value(item, path=f"{path}[{index}]", depth=depth + 1, address=address)
    elif isinstance(value, dict):
        for key, item in cast("dict[Any, Any]", value).items():
            if not isinstance(key, str):
                _refuse(path, key, address, "Make every key a string")
            _check_value(item, path=f"{path}.{key}", depth=depth + 1, address=address)
    else:
        _refuse(path, value, address, "Convert it to text, a number, a list or a dict")


def _refuse(path: str, part: object, address: Address, remedy: str) -> NoReturn:
    msg = (
        f"The value of {address.key!r} in {address.namespace!r} holds at {path} a "
        f"{type(part).__name__}, {reprlib.repr(part)}, which JSON cannot keep unchanged. {remedy}"
    )
    raise InvalidInputError(msg, code=ErrorCode.STORE_VALUE)


# -- filters ----------------------------------------------------------------------------------

_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_OPERATORS = ("$eq", "$ne", *_ORDER)


def check_filter(conditions: object) -> dict[str, Any]:
    """A filter whose every operator is known and has an operand it can work on.

    Raises:
        InvalidInputError: With the code `STORE_FILTER`, naming what is wrong.
    """
    if conditions is None:
        return {}
    if not isinstance(conditions, Mapping):
        _refuse_filter(f"A filter is a dict of fields, not {conditions!r}", "Pass {'kind': 'note'}")
    fields = dict(cast("Mapping[Any, Any]", conditions))
    for field, condition in fields.items():
        if not isinstance(field, str):
            _refuse_filter(f"The filter names a field {field!r}", "Name fields by strings")
        _check_condition(condition)
    return fields


def matches(value: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    """Whether a stored value passes a filter that `check_filter` has let through."""
    return all(_compare(value.get(field), condition) for field, condition in conditions.items())


def _check_condition(condition: Any) -> None:
    if isinstance(condition, Mapping):
        _check_object(cast("Mapping[Any, Any]", condition))
    elif isinstance(condition, list | tuple):
        for part in cast("list[Any]", condition):
            _check_condition(part)


def _check_object(condition: Mapping[Any, Any]) -> None:
    if not all(isinstance(key, str) for key in condition):
        _refuse_filter(f"The filter {condition!r} has a key that is not text", "Use strings")
    if not any(key.startswith("$") for key in condition):
        for part in condition.values():
            _check_condition(part)
        return
    for name, operand in condition.items():
        if name not in _OPERATORS:
            names = ", ".join(_OPERATORS)
            _refuse_filter(f"{name!r} in {condition!r} is not a filter operator", f"Use {names}")
        if name in _ORDER and not isinstance(operand, str) and _number(operand) is None:
            _refuse_filter(f"{name} cannot compare with {operand!r}", "Pass a number or a text")


def _compare(stored: Any, condition: Any) -> bool:
    if isinstance(condition, Mapping):
        fields = cast("Mapping[str, Any]", condition)
        if any(key.startswith("$") for key in fields):
            return all(_apply(stored, name, operand) for name, operand in fields.items())
        if not isinstance(stored, dict):
            return False
        nested = cast("dict[str, Any]", stored)
        return all(_compare(nested.get(key), part) for key, part in fields.items())
    if isinstance(condition, list | tuple):
        if not isinstance(stored, list):
            return False
        items, conditions = cast("list[Any]", stored), cast("list[Any]", condition)
        return len(items) == len(conditions) and all(map(_compare, items, conditions))
    return bool(stored == condition)


def _apply(stored: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return bool(stored == operand)
    if name == "$ne":
        return bool(stored != operand)
    # LangGraph compares by `float(...)`, so that "9" is less than 10; texts are our addition.
    left, right = _number(stored), _number(operand)
    if left is not None and right is not None:
        return _ORDER[name](left, right)
    if left is None and right is None and isinstance(stored, str) and isinstance(operand, str):
        return _ORDER[name](stored, operand)
    return False


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _refuse_filter(what: str, remedy: str) -> NoReturn:
    msg = f"{what}. {remedy}"
    raise InvalidInputError(msg, code=ErrorCode.STORE_FILTER)
