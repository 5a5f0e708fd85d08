"""The base class of all values, the types of common fields, and the cleaning of input text."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from memguard.errors import MemguardError
from memguard.normal_form import is_blank as is_blank  # noqa: PLC0414 - imported from here, too
from memguard.normal_form import visible_text

_DROPPED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""All of Unicode's control characters (category Cc) except tab and newline."""


class Frozen(BaseModel):
    """An immutable value, compared and hashed by content; unknown fields are refused."""

    # The docstrings of fields become the descriptions in JSON schemas.
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class FrozenReport(Frozen):
    """A value whose computed fields are in its JSON, and are ignored when the JSON is read."""

    @model_validator(mode="before")
    @classmethod
    def _without_computed(cls, value: Any) -> Any:
        computed = cls.model_computed_fields
        if not isinstance(value, Mapping):
            return value
        fields = cast("Mapping[str, Any]", value)
        return {name: field for name, field in fields.items() if name not in computed}


class GraphInput(BaseModel):
    """The input or state of a graph, which raises memguard's own errors as they are."""

    # Our errors are `ValueError`s too, and pydantic turns those of validators into its own.
    def __init__(self, **fields: Any) -> None:
        """Read the fields.

        Raises:
            MemguardError: If a field cannot be read, and memguard says why.
            ValidationError: If a field cannot be read for another reason.
        """
        try:
            super().__init__(**fields)
        except ValidationError as invalid:
            causes = (detail.get("ctx", {}).get("error") for detail in invalid.errors())
            own = next((cause for cause in causes if isinstance(cause, MemguardError)), None)
            if own is None:
                raise
            raise own from None


def clean_text(text: str) -> str:
    r"""Make text safe to store, log and render without a visible change.

    Control characters (NUL, ESC, ...) and characters that show nothing are dropped, line ends
    become `\n`, an unpaired surrogate becomes U+FFFD, and the result is NFC. Numbers, units and
    spacing stay as they were; `memguard.normal_form` says which joiners stay.

    Args:
        text: Any Python string.

    Returns:
        Text that encodes as UTF-8 and has no control characters except tab and newline.
    """
    # Most texts take this branch; the rest of the function is much slower.
    if text.isascii() and text.isprintable():
        return text
    return unicodedata.normalize("NFC", visible_text(_plain_text(text)))


def _plain_text(text: str) -> str:
    """The text in NFC without control characters and unpaired surrogates."""
    # UTF-16 joins a surrogate pair, which JSON from other languages may contain, to its character.
    paired = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    unix = paired.replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFC", _DROPPED.sub("", unix))


def is_none(value: object) -> bool:
    """Whether a value is `None`; for fields that JSON leaves out then, as older layouts did."""
    return value is None


def _none_to_empty(value: object) -> object:
    return "" if value is None else value


def _candidate_text(text: str) -> str:
    # One that shows nothing is refused before any prompt, and its receipt says what it was.
    cleaned = clean_text(text)
    return _plain_text(text) if is_blank(cleaned) else cleaned


CandidateText = Annotated[str, BeforeValidator(_none_to_empty), AfterValidator(_candidate_text)]
"""As `Text`, except that a text without anything visible stays as it is."""

Text = Annotated[str, BeforeValidator(_none_to_empty), AfterValidator(clean_text)]
"""Cleaned text; `None` is read as the empty string, so that one blank entry fails no batch."""

Namespace = tuple[str, ...]
"""The namespace of a memory in LangGraph's format, for example `("memories", "ana")`."""

UnitInterval = Annotated[float, Field(ge=0.0, le=1.0)]
"""A number in [0, 1]."""

Clock = Callable[[], datetime]
"""Returns the current time, with its offset."""
