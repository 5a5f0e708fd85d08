"""Where a run writes: a template or a function, resolved per run, failing closed."""

import string
from collections.abc import Callable, Mapping
from typing import Any

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


def resolve_namespace(template: NamespaceLike, *, store: BaseStore) -> Namespace:
    """The namespace of the run in progress.

    Placeholders are filled from the run's `context`, then from `config["configurable"]`. There is
    no default user: a value that is missing or blank is an error, never a shared namespace.

    Args:
        template: What the guard was made with.
        store: The store; labels are escaped for stores that refuse some characters.

    Raises:
        ConfigurationError: If a placeholder has no value; the message lists those that have.
        InvalidInputError: If a label is blank.
    """
    runtime = get_runtime()
    if callable(template):
        labels = tuple(str(label) for label in template(runtime))
    else:
        labels = (template,) if isinstance(template, str) else template
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


def _fill(label: str, *, values: Mapping[str, Any], template: NamespaceLike) -> str:
    names = [name for _, name, _, _ in string.Formatter().parse(label) if name is not None]
    missing = [name for name in names if values.get(name) in (None, "")]
    if missing:
        known = sorted(str(name) for name, value in values.items() if value not in (None, ""))
        msg = (
            f"the namespace {template!r} needs {missing[0]!r}, which the run does not have: pass "
            f"`context={{{missing[0]!r}: ...}}` or set it in `configurable`; known are {known}"
        )
        raise ConfigurationError(msg, code=ErrorCode.NAMESPACE_UNRESOLVED)
    for name in names:
        if isinstance(values[name], Mapping | list | set | tuple | bytes):
            msg = (
                f"{name!r} of the namespace {template!r} is a {type(values[name]).__name__}, which "
                f"is no name: pass a text or a number, got {values[name]!r}"
            )
            raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
    # One pass over the template: a user id that holds braces is never filled again.
    return "".join(
        literal + (str(values[name]) if name is not None else "")
        for literal, name, _, _ in string.Formatter().parse(label)
    )
