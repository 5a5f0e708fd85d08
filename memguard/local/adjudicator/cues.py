"""What the wording of a unit tells: its kind, whom it is about, how well grounded, whether current.

Rules in a fixed order, the first that fits. Where the wording tells nothing, the answer is the
usual one: a fact, stated, current.
"""

from datetime import UTC, date, datetime, timedelta
from typing import Literal

from memguard.local.adjudicator import patterns
from memguard.local.verifier.lexicon import MONTHS
from memguard.policy.cues import looks_like_safety
from memguard.schema.units import Epistemic, Kind, Temporal

About = Literal["user", "other", "world"]
"""Whom a text is about, without regard to a query."""


def bare(text: str) -> str:
    """The text without the speaker's name that the local writer puts before it."""
    return patterns.LABEL.sub("", text, count=1)


def kind_of(text: str, *, own_names: frozenset[str] = frozenset()) -> Kind:
    """What a unit is. Safety comes before all, a belief before the liking that it may speak of.

    Args:
        text: A unit.
        own_names: Names of the user, in lower case.
    """
    said = bare(text)
    if looks_like_safety(said):
        return "safety"
    about = about_whom(text, own_names=own_names)
    if about != "world" and patterns.BELIEF.search(said):
        return "belief"
    if patterns.CONSTRAINT.search(said):
        return "constraint"
    if about != "world" and patterns.PREFERENCE.search(said):
        return "preference"
    if about == "world":
        return "claim"
    return "experience" if patterns.EXPERIENCE.search(said) else "fact"


def about_whom(text: str, *, own_names: frozenset[str] = frozenset()) -> About:
    """Whom a text is about, by how it begins.

    Args:
        text: A unit.
        own_names: Names of the user, in lower case.
    """
    label = patterns.LABEL.match(text)
    said = bare(text)
    if patterns.OTHER.match(said):
        return "other"
    if label is not None or patterns.USER.match(said):
        return "user"
    named = patterns.NAMED.match(said)
    if named is None:
        return "world"
    return "user" if named[1].casefold() in own_names else "other"


def epistemic_of(text: str) -> Epistemic:
    """How well a unit is grounded, by its own words; evidence is another matter."""
    if patterns.DENIED.search(text):
        return "contradicted"
    if patterns.VERIFIED.search(text):
        return "verified"
    return "inferred" if patterns.INFERRED.search(text) else "stated"


def temporality_of(text: str, *, said_at: datetime | None, now: datetime | None) -> Temporal:
    """Whether a unit still holds.

    A word of the past makes it superseded, unless a word of change stands beside it ("used to
    smoke, now runs"). A date or a span that the time of the read has left behind does the same.

    Args:
        text: A unit.
        said_at: When it was said; a naive time is UTC.
        now: When it is read.
    """
    updated = patterns.UPDATE.search(text) is not None
    if patterns.PAST.search(text):
        return "uncertain" if updated else "superseded"
    if now is None:
        return "current"
    end = _end_of(text)
    if end is not None:
        return "superseded" if end < now.date() else "current"
    for span, days, over in patterns.SPANS:
        if span.search(text):
            return _after(said_at, now=now, days=days, over=over)
    return "current"


def is_update(text: str) -> bool:
    """Whether it says that something has changed."""
    return patterns.UPDATE.search(text) is not None


def _after(said_at: datetime | None, *, now: datetime, days: int, over: bool) -> Temporal:
    if said_at is None:
        return "uncertain"
    if _aware(said_at) + timedelta(days=days) >= _aware(now):
        return "current"
    return "superseded" if over else "uncertain"


def _end_of(text: str) -> date | None:
    """The last day of `until 3 March 2025`, `until March 2025`, `until 2025`."""
    found = patterns.UNTIL.search(text)
    if found is None:
        return None
    day, month, year = found[1], MONTHS.get((found[2] or "").casefold()), int(found[3])
    if found[2] and month is None:
        return None
    try:
        if month is None:
            return date(year, 12, 31)
        if day is None:
            return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
        return date(year, month, int(day))
    except ValueError:
        return None


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
