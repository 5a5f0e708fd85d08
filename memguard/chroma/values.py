"""Namespaces, values and filters: what is valid, and how it is encoded for Chroma.

**Namespaces** are encoded as one ASCII string. `("acme", "jo.doe@example.org")` is written
`acme/jo.doe@example.org`. All characters except ASCII letters, digits and `-_.@+` are escaped as
`%XX` per UTF-8 byte. So no label contains a separator, different namespaces have different texts,
and case is preserved.

**Values** are checked before they are written, so that each comes back equal. An item is one row,
or one row per vector if several texts are indexed. The first row is the head and has the whole
record; the others exist for their vector.

**Filters** on stored values have the meaning that LangGraph's `InMemoryStore` gives them:

```text
{"kind": "note"}                 equal
{"score": {"$gte": 3, "$lt": 9}} operators: $eq $ne $gt $gte $lt $lte
{"meta": {"lang": "en"}}         into a nested object; other fields of it do not matter
{"tags": ["a", "b"]}             a list, item by item, of the same length
```

A missing field counts as `None`. `$gt`, `$gte`, `$lt` and `$lte` compare numbers (`float(...)` on
both sides). A value that is not a number does not match; `InMemoryStore` raises `TypeError` if one
stored item lacks the field. Two texts that are not numbers, such as ISO dates, compare as text.
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
"""A root that LangGraph reserves; its own stores refuse writes to it, too."""

# E-mail addresses and most identifiers stay readable in Chroma's own tools.
_UNSAFE = re.compile(r"[^A-Za-z0-9\-_.@+]")


class NamespaceError(InvalidInputError, InvalidNamespaceError):
    """A namespace that is not valid; also LangGraph's error, for code that catches that one."""


def check_labels(namespace: object) -> Namespace:
    """A namespace whose labels are all non-empty strings.

    Any text may be a label, with dots, spaces, `%`, `/` and in any script. An integer is stored as
    its `str`, so `("users", 7)` and `("users", "7")` are the same namespace. The prefix of
    a search may be empty.

    Raises:
        NamespaceError: If it is not a sequence of labels, or a label is empty or of another type.
    """
    if isinstance(namespace, str) or not isinstance(namespace, Sequence):
        msg = f"A namespace is a tuple of labels, not {namespace!r}. Pass ('memories', 'ana')"
        raise NamespaceError(msg, code=ErrorCode.NAMESPACE_INVALID)
    labels: Sequence[object] = namespace  # pyright: ignore[reportUnknownVariableType]
    return tuple(_label(label, labels) for label in labels)


def check_namespace(namespace: object) -> Namespace:
    """As `check_labels`, for the namespace of an item, which is not empty.

    Raises:
        NamespaceError: If the namespace or one of its labels cannot be used.
    """
    checked = check_labels(namespace)
    if not checked:
        msg = "The namespace () is empty. Pass at least one label, such as ('memories', 'ana')"
        raise NamespaceError(msg, code=ErrorCode.NAMESPACE_INVALID)
    return checked


def check_writable(namespace: object) -> Namespace:
    """As `check_namespace`, for a put, which must not be under the root that LangGraph reserves.

    Raises:
        NamespaceError: If nothing may be written there.
    """
    checked = check_namespace(namespace)
    if checked[0] == RESERVED_ROOT:
        msg = f"The namespace {checked!r} starts with 'langgraph', which LangGraph reserves. Rename"
        raise NamespaceError(msg, code=ErrorCode.NAMESPACE_INVALID)
    return checked


def encode_namespace(namespace: Namespace) -> str:
    """The text of a namespace, which `decode_namespace` reads."""
    return SEPARATOR.join(_UNSAFE.sub(_escape, label) for label in namespace)


def decode_namespace(text: str) -> Namespace:
    """The namespace that `encode_namespace` wrote."""
    # `surrogatepass` here and in `_escape`: a label may have an unpaired surrogate.
    return tuple(
        unquote_to_bytes(part).decode("utf-8", "surrogatepass") for part in text.split(SEPARATOR)
    )


def is_under(namespace: Namespace, prefix: Namespace) -> bool:
    """Whether a namespace is at or below a prefix; whole labels are compared."""
    return namespace[: len(prefix)] == prefix


def select_namespaces(
    namespaces: Iterable[Namespace], conditions: Iterable[MatchCondition]
) -> list[Namespace]:
    """The namespaces that meet every condition; `"*"` in a condition matches any single label."""
    criteria = tuple(conditions)
    return [
        namespace
        for namespace in namespaces
        if all(_meets(namespace, criterion) for criterion in criteria)
    ]


def page_namespaces(namespaces: Iterable[Namespace], op: ListNamespacesOp) -> list[Namespace]:
    """Shorten to `max_depth`, remove repetitions, sort, and return the requested page."""
    # Before paging: two namespaces that are equal once shortened count once.
    clipped = {namespace[: op.max_depth] for namespace in namespaces}
    return sorted(clipped)[op.offset : op.offset + op.limit]


def _label(label: object, namespace: Sequence[object]) -> str:
    # `True` as a label is a mistake, although it is an int in Python.
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


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match.group().encode("utf-8", "surrogatepass"))


def _meets(namespace: Namespace, condition: MatchCondition) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    if condition.match_type == "prefix":
        labels = namespace[: len(path)]
    elif condition.match_type == "suffix":
        # Not `[-len(path):]`, which would be the whole namespace for an empty path.
        labels = namespace[len(namespace) - len(path) :]
    else:
        msg = f"{condition.match_type!r} is not a way to match. Use 'prefix' or 'suffix'"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    return all(pattern in ("*", label) for pattern, label in zip(path, labels, strict=True))


# -- values -----------------------------------------------------------------------------------

NS = "ns"
"""Metadata: the encoded namespace, on every row."""
RANKED = "q"
"""Metadata: the encoded namespace again if the row has the vector of a text, else empty.

A row without a text has a vector derived from its id, which a query must never rank. So one
equality on this key selects both the namespace and the rows to rank.
"""
RECORD = "rec"
"""Metadata: the record as ASCII JSON on the head, the revision alone on the other rows."""
EXPIRES = "exp"
"""Metadata: when the item expires, in seconds since 1970; `NEVER` if it does not."""

# Chroma drops infinity without an error, so a finite number beyond any clock stands for it.
NEVER = 4e18

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Nesting of a value. JSON readers of other languages accept far more.
_MAX_DEPTH = 200


class Address(NamedTuple):
    """The namespace and key of one item."""

    namespace: Namespace
    key: str

    @property
    def row_id(self) -> str:
        """Stem of the ids of its rows (160 bits of SHA-256)."""
        # An encoded namespace has no line break, so the text determines namespace and key. Ids of
        # existing stores depend on these exact bytes.
        text = f"{encode_namespace(self.namespace)}\n{self.key}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One stored item, as it is in its head row."""

    key: str
    text: str
    """The value as JSON. It is parsed for each reader, so that no reader changes another's copy."""
    created: int
    """Microseconds since 1970, UTC."""
    updated: int
    """Microseconds since 1970, UTC."""
    ttl: float | None
    """Minutes from the last use until the item expires; `None` if it never does."""
    vectors: int
    """Number of its vectors; 0 for an item that is not indexed."""
    revision: str
    """Different for every put; rows of an older revision count as absent."""

    @property
    def rows(self) -> int:
        """Number of its rows in Chroma."""
        return max(1, self.vectors)

    def value(self) -> dict[str, Any]:
        """A fresh copy of the value."""
        return json.loads(self.text)

    def dumps(self) -> str:
        """The text that `loads_record` reads."""
        # The value is appended as it is: inside the list it would be escaped a second time.
        head = json.dumps(
            [self.key, self.created, self.updated, self.ttl, self.vectors, self.revision]
        )
        return f"{head}\n{self.text}"


def loads_record(text: str) -> Record:
    """Read what `Record.dumps` wrote."""
    # JSON escapes line breaks, so the first one ends the list.
    head, _, value = text.partition("\n")
    names = ("key", "created", "updated", "ttl", "vectors", "revision")
    return Record(text=value, **dict(zip(names, json.loads(head), strict=True)))


def encode_value(value: object, *, address: Address) -> str:
    """Encode a value as ASCII JSON.

    All that JSON can represent comes back equal, and so do NaN and infinity, as Python's `json`
    writes them. Tuples, sets, bytes, dates and keys that are not strings would come back as another
    type or not at all, and are refused.

    Raises:
        InvalidInputError: With the code `STORE_VALUE` and the path of the part that is refused.
    """
    if not isinstance(value, Mapping):
        _refuse("$", value, address, "Pass a dict with string keys")
    # A copy, because `json` writes only plain dicts as objects, and not any mapping.
    content = dict(cast("Mapping[Any, Any]", value))
    _check_value(content, path="$", depth=0, address=address)
    try:
        return json.dumps(content)
    # Python refuses to write an integer of more than 4,300 digits.
    except ValueError as error:
        msg = f"The value of {address.key!r} in {address.namespace!r} cannot be written: {error}"
        raise InvalidInputError(msg, code=ErrorCode.STORE_VALUE) from error


def to_item(record: Record, namespace: Namespace) -> Item:
    """A record as the result of a get."""
    return Item(**_fields(record, namespace))


def to_search_item(record: Record, namespace: Namespace, *, score: float | None) -> SearchItem:
    """A record as a result of a search."""
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
    """Microseconds since 1970."""
    # In whole numbers: `timestamp()` is a float, which cannot represent every microsecond.
    return (moment - _EPOCH) // _MICROSECOND


def from_microseconds(count: int) -> datetime:
    """The time in UTC of a number of microseconds since 1970."""
    return _EPOCH + count * _MICROSECOND


def namespace_of(metadata: Mapping[str, Any]) -> Namespace:
    """The namespace in the metadata of a row."""
    return decode_namespace(str(metadata[NS]))


def _check_value(value: Any, *, path: str, depth: int, address: Address) -> None:
    # The most common types first: this runs for every part of every value.
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
        f"{type(part).__name__}, {reprlib.repr(part)}, which JSON cannot represent. {remedy}"
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
    """Check that a filter has known operators only, with operands that can be compared.

    Raises:
        InvalidInputError: With the code `STORE_FILTER`.
    """
    if conditions is None:
        return {}
    if not isinstance(conditions, Mapping):
        _refuse_filter(f"A filter is a dict of fields, not {conditions!r}", "Pass {'kind': 'note'}")
    fields = dict(cast("Mapping[Any, Any]", conditions))
    # First, because the checks and the comparison call themselves for each level.
    _check_depth(fields)
    for field, condition in fields.items():
        if not isinstance(field, str):
            _refuse_filter(f"The filter names a field {field!r}", "Name fields by strings")
        _check_condition(condition)
    return fields


def matches(value: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    """Whether a stored value passes a filter that `check_filter` has accepted."""
    return all(_compare(value.get(field), condition) for field, condition in conditions.items())


def _check_depth(conditions: Mapping[Any, Any]) -> None:
    level: list[Any] = [conditions]
    for _ in range(_MAX_DEPTH):
        inner: list[Any] = []
        for part in level:
            if isinstance(part, Mapping):
                inner += cast("Mapping[Any, Any]", part).values()
            elif isinstance(part, list | tuple):
                inner += cast("list[Any]", part)
        level = list({id(part): part for part in inner}.values())  # a part may occur many times
    if any(isinstance(part, Mapping | list | tuple) for part in level):
        _refuse_filter(f"The filter is nested more than {_MAX_DEPTH} levels deep", "Flatten it")


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
    number, limit = _number(stored), _number(operand)
    if number is not None and limit is not None:
        return _ORDER[name](number, limit)
    if number is None and limit is None and isinstance(stored, str) and isinstance(operand, str):
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
