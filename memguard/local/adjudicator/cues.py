"""Attributes of a unit by its wording: kind, subject, epistemic state and temporality.

The rules are tried in a fixed order, and the first match wins. Without a match the result is the
most frequent value: a fact, stated, current.
"""

from datetime import UTC, date, datetime, timedelta
from typing import Literal

from memguard.local.adjudicator import patterns
from memguard.local.verifier.lexicon import MONTHS
from memguard.policy.cues import looks_like_safety
from memguard.schema.units import Epistemic, Kind, Temporal

About = Literal["user", "other", "world"]
"""Whom a text is about, independent of a query."""


def without_label(text: str) -> str:
    """The text without the speaker label that the local writer puts in front of it."""
    return patterns.LABEL.sub("", text, count=1)


def kind_of(text: str, *, own_names: frozenset[str] = frozenset()) -> Kind:
    """The kind of a unit.

    Args:
        text: A unit.
        own_names: Names of the user, case-folded.
    """
    statement = without_label(text)
    # Safety first: a missed allergy does more harm than any other mistake. A belief comes before
    # the liking that it may mention, as in "believes that she likes tea".
    if looks_like_safety(statement):
        return "safety"
    about = about_whom(text, own_names=own_names)
    if about != "world" and patterns.BELIEF.search(statement):
        return "belief"
    if patterns.CONSTRAINT.search(statement):
        return "constraint"
    if about != "world" and patterns.PREFERENCE.search(statement):
        return "preference"
    if about == "world":
        return "claim"
    return "experience" if patterns.EXPERIENCE.search(statement) else "fact"


def about_whom(text: str, *, own_names: frozenset[str] = frozenset()) -> About:
    """Whom a text is about, judged by how it begins.

    Args:
        text: A unit.
        own_names: Names of the user, case-folded.
    """
    label = patterns.LABEL.match(text)
    statement = without_label(text)
    # Before the label: in "Ana: My sister left", the speaker is not the subject.
    if patterns.OTHER.match(statement):
        return "other"
    if label is not None or patterns.USER.match(statement):
        return "user"
    named = patterns.NAMED.match(statement)
    if named is None:
        return "world"
    return "user" if named[1].casefold() in own_names else "other"


def epistemic_of(text: str) -> Epistemic:
    """The epistemic state that a unit states of itself; evidence is compared elsewhere."""
    if patterns.DENIED.search(text):
        return "contradicted"
    if patterns.VERIFIED.search(text):
        return "verified"
    return "inferred" if patterns.INFERRED.search(text) else "stated"


def temporality_of(text: str, *, said_at: datetime | None, now: datetime | None) -> Temporal:
    """Whether a unit is still valid.

    Words of the past make it superseded, or uncertain if it also reports a change ("used to smoke,
    now runs"). A date or a period that ended before the read makes it superseded as well.

    Args:
        text: A unit.
        said_at: When it was said; a naive time is UTC.
        now: When it is read; without it, dates are not compared.
    """
    updated = patterns.UPDATE.search(text) is not None
    if patterns.PAST.search(text):
        return "uncertain" if updated else "superseded"
    if now is None:
        return "current"
    end = _end_of(text)
    if end is not None:
        # A stated end beats a word like "today", which counts from when the unit was said.
        return "superseded" if end < now.date() else "current"
    for span, days, over in patterns.SPANS:
        if span.search(text):
            return _after(said_at, now=now, days=days, over=over)
    return "current"


def is_update(text: str) -> bool:
    """Whether a text reports a change."""
    return patterns.UPDATE.search(text) is not None


def _after(said_at: datetime | None, *, now: datetime, days: int, over: bool) -> Temporal:
    if said_at is None:
        return "uncertain"
    if _aware(said_at) + timedelta(days=days) >= _aware(now):
        return "current"
    return "superseded" if over else "uncertain"


def _end_of(text: str) -> date | None:
    """The last day of `until 3 March 2025`, `until March 2025`, `until 2025`."""
    hit = patterns.UNTIL.search(text)
    if hit is None:
        return None
    day, month, year = hit[1], MONTHS.get((hit[2] or "").casefold()), int(hit[3])
    if hit[2] and month is None:
        return None  # a capitalised word that is not a month
    try:
        if month is None:
            return date(year, 12, 31)
        if day is None:
            # The day before the first of the next month, so that no table of lengths is needed.
            return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
        return date(year, month, int(day))
    except ValueError:
        return None


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
