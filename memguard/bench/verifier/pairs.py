"""What the verifier is trained and judged on: claims beside the turns they should rest on."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence, and whether its context supports it."""

    text: str
    """The sentence."""
    supported: bool
    """Whether it is."""
    kind: str
    """What was changed; `correct` when nothing was."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Claims that share one context."""

    source: str
    """The data set."""
    origin: str
    """The dialogue or article; a split never cuts one in two."""
    context: tuple[tuple[str, str], ...]
    """Speaker and text of every turn; the speaker is empty in a document."""
    claims: tuple[Claim, ...]
    """At least one."""
    language: str = "en"
    """Language of context and claims."""


def share(text: str) -> float:
    """A number in [0, 1) that depends on the text alone, for splits that never move."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


def correct(text: str) -> Claim:
    """A claim that holds."""
    return Claim(text=text, supported=True, kind="correct")


def wrong(text: str, kind: str) -> Claim:
    """A claim with one detail changed."""
    return Claim(text=text, supported=False, kind=kind)
