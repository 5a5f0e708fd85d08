"""Where a run writes: a template or a function, resolved per run, failing closed."""

import string
from collections.abc import Callable, Mapping
from typing import Any, cast

from langgraph.config import get_config
from langgraph.runtime import Runtime, get_runtime
from langgraph.store.base import BaseStore

from memguard.errors import ConfigurationError, ErrorCode, InvalidInputError
from memguard.policy.labels import encode_label
from memguard.schema.base import Namespace, is_blank

_INTERNAL = ("__", "checkpoint_")
"""Keys that LangGraph puts into `configurable` for itself."""

NamespaceLike = tuple[str, ...] | str | Callable[[Runtime[Any]], tuple[Any, ...]]
"""A tuple of labels with `{placeholders}`, one label, or a function of the run's `Runtime`."""


def templates_of(namespace: "NamespaceLike | list[NamespaceLike]") -> tuple[NamespaceLike, ...]:
    """Where a read looks, as a tuple of templates.

    Raises:
        InvalidInputError: If there is none; such a read would find nothing, and say so of no user.
    """
    if not isinstance(namespace, list):
        return (namespace,)
    if not namespace:
        msg = "namespace=[] names no place: give a template, or a list of at least one"
        raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
    return tuple(namespace)


def resolve_namespace(template: NamespaceLike, *, store: BaseStore) -> Namespace:
    """The namespace of the run in progress.

    Placeholders are filled from the run's `context`, then from `config["configurable"]`. There is
    no default user: a value that is missing or blank is an error, never a shared namespace.

    Args:
        template: What the guard was made with.
        store: The store; labels are escaped for stores that refuse some characters.

    Raises:
        ConfigurationError: If a placeholder has no value; the message lists those that have.
        InvalidInputError: If a label is blank or no name, or the template cannot be read.
    """
    runtime = get_runtime()
    labels = _labels(template(runtime) if callable(template) else template)
    if not callable(template):
        values = _values(runtime)
        labels = tuple(_fill(label, values=values, template=template) for label in labels)
    if not labels or any(is_blank(label) for label in labels):
        msg = f"the namespace {labels!r} has a blank label: give every label a value"
        raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
    if getattr(store, "accepts_any_label", False):
        return labels
    return tuple(encode_label(label) for label in labels)


def _values(runtime: Runtime[Any]) -> dict[str, Any]:
    context = runtime.context
    if context is None:
        given: Mapping[str, Any] = {}
    elif isinstance(context, Mapping):
        given = context
    else:
        given = {name: getattr(context, name) for name in dir(context) if not name.startswith("_")}
    configurable = get_config().get("configurable", {})
    named = {k: v for k, v in configurable.items() if not str(k).startswith(_INTERNAL)}
    return {**named, **given}


def _labels(given: object) -> tuple[str, ...]:
    if not isinstance(given, str | tuple | list):
        msg = f"a namespace is a tuple of labels, got {given!r}"
        raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
    parts = (given,) if isinstance(given, str) else cast("tuple[object, ...]", given)
    return tuple(_name(part, what="a label", template=given) for part in parts)


def _name(value: object, *, what: str, template: object) -> str:
    """The text of a name; what is none would be written out, and shared by all who have none."""
    if value is None or isinstance(value, Mapping | list | set | tuple | bytes):
        msg = (
            f"{what} of the namespace {template!r} is a {type(value).__name__}, which is no name: "
            f"pass a text or a number, got {value!r}"
        )
        raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
    name = str(value)
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        msg = f"{what} of the namespace {template!r} is {name!r}, which holds half a character"
        raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
    return name


def _fill(label: str, *, values: Mapping[str, Any], template: NamespaceLike) -> str:
    try:
        parsed = list(string.Formatter().parse(label))
    except ValueError as error:
        msg = f"the namespace {template!r} has a brace that is not closed; double one that is meant"
        raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID) from error
    names = [name for _, name, _, _ in parsed if name is not None]
    missing = [name for name in names if values.get(name) in (None, "")]
    if missing:
        known = sorted(str(name) for name, value in values.items() if value not in (None, ""))
        msg = (
            f"the namespace {template!r} needs {missing[0]!r}, which the run does not have: pass "
            f"`context={{{missing[0]!r}: ...}}` or set it in `configurable`; known are {known}"
        )
        raise ConfigurationError(msg, code=ErrorCode.NAMESPACE_UNRESOLVED)
    texts = {name: _name(values[name], what=repr(name), template=template) for name in names}
    # One pass over the template: a user id that holds braces is never filled again.
    return "".join(
        literal + (texts[name] if name is not None else "") for literal, name, _, _ in parsed
    )
