"""Which texts of a value are embedded."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langgraph.store.base import get_text_at_path, tokenize_path

from memguard.errors import ErrorCode, InvalidInputError
from memguard.schema.base import is_blank

WHOLE = "$"
"""The path of the value as a whole, which LangGraph embeds as JSON text."""


def check_fields(fields: object) -> tuple[str, ...]:
    """The indexed paths of a store; the whole value when none are named.

    Raises:
        InvalidInputError: If they are not a list of path strings.
    """
    if fields is None:
        return (WHOLE,)
    if isinstance(fields, str) or not isinstance(fields, Sequence):
        msg = f"`fields` is a list of paths, not {fields!r}. Pass ['text'] or ['meta.title']"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    paths: list[str] = []
    for each in fields:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(each, str) or not each:
            msg = f"{each!r} in `fields` is no path. Pass strings such as 'text' or 'items[*].name'"
            raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
        paths.append(each)
    return tuple(paths) or (WHOLE,)


def texts_of(
    value: Mapping[str, Any], index: Literal[False] | list[str] | None, fields: Sequence[str]
) -> tuple[str, ...]:
    """The texts to embed for one item, without repeats; blank ones have nothing to say.

    Args:
        value: A value that JSON can hold.
        index: What the put said: `False` for none, paths of its own, or `None` for the store's.
        fields: The store's paths.
    """
    if index is False:
        return ()
    paths = fields if index is None else check_fields(index)
    found = (
        text
        for path in paths
        for text in get_text_at_path(value, path if path == WHOLE else tokenize_path(path))
    )
    return tuple(dict.fromkeys(text for text in found if not is_blank(text)))
