"""Namespaces of memories: templates filled from the run, and labels escaped for the store.

A template is a tuple of labels with `{placeholders}`, or a function of the run's `Runtime`. Values
come from the run's `context` and `configurable`; a missing value is an error, so that two users
never share a namespace. LangGraph's stores refuse a dot in a label, as in an e-mail address, so
`encode_label` escapes it as in a URL.
"""

import re
import string
from collections.abc import Callable, Mapping
from typing import Any, cast

from langgraph.config import get_config
from langgraph.runtime import Runtime, get_runtime
from langgraph.store.base import BaseStore

from memguard.errors import ConfigurationError, ErrorCode, InvalidInputError
from memguard.schema.base import Namespace, is_blank

NamespaceLike = tuple[str, ...] | str | Callable[[Runtime[Any]], tuple[Any, ...]]
"""A tuple of labels with `{placeholders}`, one label, or a function of the run's `Runtime`."""

# `%` itself too, or a label that contains `%2E` could not be told from an escaped dot.
_ESCAPED = re.compile(r"[%.\x00]")

# Beginnings of keys that LangGraph adds to `configurable` for internal use.
_INTERNAL = ("__", "checkpoint_")


def encode_label(label: str) -> str:
    """The label with dots, NUL and `%` as `%` and two hexadecimal digits.

    `urllib.parse.unquote` restores the label.
    """
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", label)


def templates_of(namespace: "NamespaceLike | list[NamespaceLike]") -> tuple[NamespaceLike, ...]:
    """The namespaces that a read searches, as a tuple of templates.

    Raises:
        InvalidInputError: If the list is empty: such a read would silently find nothing.
    """
    if not isinstance(namespace, list):
        return (namespace,)
    if not namespace:
        msg = "namespace=[] names no namespace: pass a template, or a list of at least one"
        raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
    return tuple(namespace)


def resolve_namespace(template: NamespaceLike, *, store: BaseStore) -> Namespace:
    """The namespace of the run in progress.

    Placeholders are filled from the run's `context`, then from `config["configurable"]`. There is
    no default user: a missing or blank value is an error, never a shared namespace.

    Args:
        template: The guard's namespace setting.
        store: The store; labels are escaped unless it has `accepts_any_label`.

    Raises:
        ConfigurationError: If a placeholder has no value; the message lists the values of the run.
        InvalidInputError: If a label is blank or not a name, or the template cannot be parsed.
    """
    runtime = get_runtime()
    labels = _labels(template(runtime) if callable(template) else template)
    if not callable(template):
        values = _values(runtime)
        labels = tuple(_fill(label, values=values, template=template) for label in labels)
    if not labels or any(is_blank(label) for label in labels):
        msg = f"the namespace {labels!r} has a blank label: give every label a value"
        raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
    # Stores that take any label get readable labels, as users wrote them.
    if getattr(store, "accepts_any_label", False):
        return labels
    return tuple(encode_label(label) for label in labels)


def user_settings(configurable: Mapping[str, Any]) -> dict[str, Any]:
    """The `configurable` of a run without the keys that LangGraph sets."""
    return {k: v for k, v in configurable.items() if not str(k).startswith(_INTERNAL)}


def run_values() -> dict[str, Any]:
    """The values of the run in progress: its `context`, and before it `configurable`.

    Returns:
        No values outside of a run.
    """
    try:
        return _values(get_runtime())
    except RuntimeError:
        return {}


def owned_by_user(template: NamespaceLike) -> bool:
    """Whether a template is filled with the id of the run's user, `{user_id}`."""
    if callable(template):
        return False
    return any("{user_id}" in label for label in _labels(template))


def _values(runtime: Runtime[Any]) -> dict[str, Any]:
    context = runtime.context
    if context is None:
        from_context: Mapping[str, Any] = {}
    elif isinstance(context, Mapping):
        from_context = context
    else:
        # `dir`, because a context class may have properties, slots or inherited defaults.
        public = [name for name in dir(context) if not name.startswith("_")]
        from_context = {name: getattr(context, name) for name in public}
    return {**user_settings(get_config().get("configurable", {})), **from_context}


def _labels(value: object) -> tuple[str, ...]:
    if not isinstance(value, str | tuple | list):
        msg = f"a namespace is a tuple of labels, got {value!r}"
        raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
    parts = (value,) if isinstance(value, str) else cast("tuple[object, ...]", value)
    return tuple(_name(part, what="a label", template=value) for part in parts)


def _name(value: object, *, what: str, template: object) -> str:
    """The text of a label or of a placeholder's value; `what` names it in errors."""
    # `None` as text would be one namespace for all users without an id, and so would `True`.
    if value is None or isinstance(value, bool | Mapping | list | set | tuple | bytes):
        msg = (
            f"{what} of the namespace {template!r} is a {type(value).__name__}, which is not a "
            f"name: pass a text or a number, got {value!r}"
        )
        raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
    name = str(value)
    # A lone surrogate cannot be encoded as UTF-8, and a store would fail only when it writes.
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        msg = (
            f"{what} of the namespace {template!r} is {name!r}, which has half a character: pass "
            "valid Unicode"
        )
        raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
    return name


def _fill(label: str, *, values: Mapping[str, Any], template: NamespaceLike) -> str:
    try:
        parsed = list(string.Formatter().parse(label))
    except ValueError as error:
        msg = f"the namespace {template!r} has a brace that is not closed; double a literal brace"
        raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID) from error
    # Blank counts as missing: an empty `{user_id}` would be a namespace that users share.
    names = [name for _, name, _, _ in parsed if name is not None]
    missing = [name for name in names if values.get(name) in (None, "")]
    if missing:
        available = sorted(str(name) for name, value in values.items() if value not in (None, ""))
        msg = (
            f"the namespace {template!r} needs {missing[0]!r}, which the run does not have: pass "
            f"`context={{{missing[0]!r}: ...}}` or in `configurable`; it has {available}"
        )
        raise ConfigurationError(msg, code=ErrorCode.NAMESPACE_UNRESOLVED)
    texts = {name: _name(values[name], what=repr(name), template=template) for name in names}
    labels: list[str] = []
    # Backwards, because each value is escaped by the text that follows it in the template.
    separator: str | None = None
    for literal, name, _, _ in reversed(parsed):
        if name is not None:
            if separator == "":
                msg = (
                    f"the namespace {template!r} has no text between two placeholders, so that "
                    "two users could share it: separate them, or give each a label of its own"
                )
                raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
            # One pass over the template: braces inside a user id are never filled in turn.
            labels.append(_escape(texts[name], separator or ""))
            separator = ""
        labels.append(literal)
        separator = None if separator is None else literal + separator
    return "".join(reversed(labels))


def _escape(value: str, separator: str) -> str:
    """A value in a label with several placeholders, so that the label has one reading only.

    In `{tenant}-{user_id}`, `("a-b", "c")` and `("a", "b-c")` would be one label. In every value
    but the last, the characters of the text after its placeholder are written as in a URL, so that
    the first of them in the label ends the value. Other values stay as they are.
    """
    # `%` itself too, or a value that contains `%2D` could not be told from an escaped one.
    special = {"%", *separator} if separator else set[str]()
    return "".join(
        "".join(f"%{byte:02X}" for byte in letter.encode()) if letter in special else letter
        for letter in value
    )
