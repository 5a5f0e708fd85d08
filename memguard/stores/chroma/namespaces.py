"""Namespaces as text: any label in, one ASCII string out, and back again.

`("acme", "jo.doe@example.org")` is written `acme/jo.doe@example.org`. Everything but ASCII letters,
digits and `-_.@+` is escaped as `%XX` per UTF-8 byte, so no label can hold a separator, two
namespaces never share a text, and case is kept.
"""

import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote_to_bytes

from langgraph.store.base import InvalidNamespaceError, ListNamespacesOp, MatchCondition

from memguard.errors import ErrorCode, InvalidInputError
from memguard.schema.base import Namespace

SEPARATOR = "/"
RESERVED_ROOT = "langgraph"
"""LangGraph keeps this root for itself and refuses writes to it; so do we."""

_UNSAFE = re.compile(r"[^A-Za-z0-9\-_.@+]")


class NamespaceError(InvalidInputError, InvalidNamespaceError):
    """A namespace that no item can live in; LangGraph's own error too, for code that expects it."""


def check_labels(namespace: object) -> Namespace:
    """A namespace with every label a non-empty string.

    Any text may be a label: dots, spaces, `%`, `/`, any script. An integer is stored as its `str`,
    so `("users", 7)` and `("users", "7")` are the same place.

    Args:
        namespace: What a caller passed; may be empty, as the prefix of a search.

    Raises:
        NamespaceError: If it is no sequence of labels, or a label is empty or of another type.
    """
    if isinstance(namespace, str) or not isinstance(namespace, Sequence):
        msg = f"A namespace is a tuple of labels, not {namespace!r}. Pass ('memories', 'ana')"
        raise NamespaceError(msg, code=ErrorCode.NAMESPACE_INVALID)
    labels: Sequence[object] = namespace  # pyright: ignore[reportUnknownVariableType]
    return tuple(_label(each, labels) for each in labels)


def check_namespace(namespace: object) -> Namespace:
    """As `check_labels`, for a place an item can live in: not empty.

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
    wanted = tuple(conditions)
    return [each for each in namespaces if all(_matches(each, one) for one in wanted)]


def page_namespaces(namespaces: Iterable[Namespace], op: ListNamespacesOp) -> list[Namespace]:
    """Cut to `max_depth`, drop repeats, sort, and take the page the operation asks for."""
    cut = {each if op.max_depth is None else each[: op.max_depth] for each in namespaces}
    return sorted(cut)[op.offset : op.offset + op.limit]


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


def _matches(namespace: Namespace, condition: MatchCondition) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    if condition.match_type == "prefix":
        labels = namespace[: len(path)]
    elif condition.match_type == "suffix":
        labels = namespace[len(namespace) - len(path) :]
    else:
        msg = f"{condition.match_type!r} is no way to match. Use 'prefix' or 'suffix'"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    return all(wanted in ("*", label) for wanted, label in zip(path, labels, strict=True))
