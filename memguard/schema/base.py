"""The frozen base of every value, and the cleaning of text at the door."""

import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

_DROPPED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""All of Unicode's control characters (category Cc) but tab and newline."""
_INVISIBLE = frozenset("\u200b\u200c\u200d\u2060\ufeff\u00ad")


class Frozen(BaseModel):
    """A value: compares and hashes by content, refuses unknown fields, never changes."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def clean_text(text: str) -> str:
    r"""Make text safe to store, log and render, changing nothing a reader would see.

    Control characters (NUL, ESC, ...) are dropped, line ends become `\n`, an unpaired surrogate
    becomes U+FFFD, and the result is NFC. Numbers, units and spacing stay as they were.

    Args:
        text: Any Python string.

    Returns:
        Text that encodes as UTF-8 and holds no control character but tab and newline.
    """
    if text.isascii() and text.isprintable():
        return text
    paired = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    unix = paired.replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFC", _DROPPED.sub("", unix))


def is_blank(text: str) -> bool:
    """Whether a reader would see nothing: white space and invisible characters only."""
    return all(ch.isspace() or ch in _INVISIBLE for ch in text)


def is_none(value: object) -> bool:
    """Whether a field is left out of JSON, so that older layouts are written as they were."""
    return value is None


def _none_to_empty(value: object) -> object:
    return "" if value is None else value


Text = Annotated[str, BeforeValidator(_none_to_empty), AfterValidator(clean_text)]
"""Cleaned text; `None` reads as the empty string, so that one blank entry spoils no batch."""

Namespace = tuple[str, ...]
"""Where a memory lives: LangGraph's own shape, for example `("memories", "ana")`."""


UnitInterval = Annotated[float, Field(ge=0.0, le=1.0)]
"""A number in [0, 1]."""
