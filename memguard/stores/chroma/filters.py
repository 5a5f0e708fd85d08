"""Filters on stored values, with the meaning LangGraph's `InMemoryStore` gives them.

```text
{"kind": "note"}                 equal
{"score": {"$gte": 3, "$lt": 9}} operators: $eq $ne $gt $gte $lt $lte
{"meta": {"lang": "en"}}         into a nested object; other fields of it do not matter
{"tags": ["a", "b"]}             a list, item by item, of the same length
```

A field that is missing reads as `None`. `$gt`, `$gte`, `$lt` and `$lte` compare as numbers
(`float(...)` on both sides); a value that is no number does not match, where `InMemoryStore` raises
`TypeError` because one stored item lacks the field. Two texts that are no numbers, such as ISO
dates, compare as text.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

from memguard.errors import ErrorCode, InvalidInputError

_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_OPERATORS = ("$eq", "$ne", *_ORDER)


def check_filter(wanted: object) -> dict[str, Any]:
    """A filter whose every operator is known and has an operand it can work on.

    Raises:
        InvalidInputError: With the code `STORE_FILTER`, naming what is wrong.
    """
    if wanted is None:
        return {}
    if not isinstance(wanted, Mapping):
        _refuse(f"A filter is a dict of fields, not {wanted!r}", "Pass {'kind': 'note'}")
    fields = dict(cast("Mapping[Any, Any]", wanted))
    for field, condition in fields.items():
        if not isinstance(field, str):
            _refuse(f"The filter names a field {field!r}", "Name fields by strings")
        _check(condition)
    return fields


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a stored value passes a filter that `check_filter` has let through."""
    return all(_compare(value.get(field), condition) for field, condition in wanted.items())


def _check(condition: Any) -> None:
    if isinstance(condition, Mapping):
        _check_object(cast("Mapping[Any, Any]", condition))
    elif isinstance(condition, list | tuple):
        for each in cast("list[Any]", condition):
            _check(each)


def _check_object(condition: Mapping[Any, Any]) -> None:
    if not all(isinstance(key, str) for key in condition):
        _refuse(f"The filter {condition!r} has a key that is no text", "Use strings")
    if not any(key.startswith("$") for key in condition):
        for each in condition.values():
            _check(each)
        return
    for name, operand in condition.items():
        if name not in _OPERATORS:
            known = ", ".join(_OPERATORS)
            _refuse(f"{name!r} in {condition!r} is no operator of a filter", f"Use {known}")
        if name in _ORDER and not isinstance(operand, str) and _number(operand) is None:
            _refuse(f"{name} cannot compare with {operand!r}", "Pass a number or a text")


def _compare(stored: Any, condition: Any) -> bool:
    if isinstance(condition, Mapping):
        fields = cast("Mapping[str, Any]", condition)
        if any(key.startswith("$") for key in fields):
            return all(_apply(stored, name, operand) for name, operand in fields.items())
        if not isinstance(stored, dict):
            return False
        found = cast("dict[str, Any]", stored)
        return all(_compare(found.get(key), each) for key, each in fields.items())
    if isinstance(condition, list | tuple):
        wanted = cast("list[Any]", condition)
        if not isinstance(stored, list):
            return False
        items = cast("list[Any]", stored)
        return len(items) == len(wanted) and all(map(_compare, items, wanted))
    return bool(stored == condition)


def _apply(stored: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return bool(stored == operand)
    if name == "$ne":
        return bool(stored != operand)
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


def _refuse(what: str, remedy: str) -> NoReturn:
    msg = f"{what}. {remedy}"
    raise InvalidInputError(msg, code=ErrorCode.STORE_FILTER)
