"""Labelled claims with their contexts, on which the verifier is trained and evaluated."""

import hashlib
from dataclasses import dataclass

from memguard.local.verifier.words import read_words, stems_of


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence, and whether its context supports it."""

    text: str
    """The sentence."""
    supported: bool
    """The label."""
    kind: str
    """The kind of change; `correct` if nothing was changed."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Claims that share one context."""

    source: str
    """Name of the data set."""
    origin: str
    """Id of the dialogue or article, all of whose groups are on the same side of a split."""
    context: tuple[tuple[str, str], ...]
    """Speaker and text of every turn; the speaker is empty in a document."""
    claims: tuple[Claim, ...]
    """At least one claim."""
    language: str = "en"
    """Language of context and claims."""


def share(text: str) -> float:
    """A pseudo-random number in [0, 1) that depends on the text alone, for reproducible splits."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


def correct(text: str) -> Claim:
    """A supported claim."""
    return Claim(text=text, supported=True, kind="correct")


def wrong(text: str, kind: str) -> Claim:
    """A claim that is not supported, with the kind of its change."""
    return Claim(text=text, supported=False, kind=kind)


def is_unrelated(text: str, window: str) -> bool:
    """Whether most content words of a sentence do not occur in a window.

    Args:
        text: The sentence.
        window: The turns it could be supported by.
    """
    content = frozenset(read_words(text).content)
    return len(content - stems_of(window)) * 2 > len(content)
