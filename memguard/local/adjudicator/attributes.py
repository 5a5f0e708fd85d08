"""What one unit says by itself, without the query: its kind, its grounds, and whether it holds.

The wordings are those of `cues` for English and of `languages` for the other languages. Safety
words are those of `memguard.local.safety`, so that recall searches for the words judged here.
"""

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from memguard.local.adjudicator import cues
from memguard.local.adjudicator.cues import (
    ANSWER_FORM,
    BELIEF,
    CONSTRAINT,
    DENIED,
    DOUBTFUL,
    EXPERIENCE,
    INFERRED,
    PAST,
    PREFERENCE,
    SPANS,
    UNTIL,
    UPDATE,
    VERIFIED,
    without_label,
)
from memguard.local.adjudicator.languages import LIMIT, WORDINGS, Wordings, language_of
from memguard.local.adjudicator.people import About, about_whom
from memguard.local.event_times import event_time
from memguard.local.safety import looks_like_safety
from memguard.local.verifier.lexicon import MONTHS
from memguard.normal_form import comparison_form
from memguard.schema.units import Epistemic, Kind, Temporal

# A belief about something of one's own flatters nobody: it is a statement that may be wrong.
_OF_ONES_OWN = re.compile(
    r"\b(?:my|our|his|her|their|(?:the )?user['\u2019]s|mein\w{0,2}|unser\w{0,2}|mis?|"
    r"nuestr[oa]s?|mon|ma|mes|notre|nos)\b|我的|我们的",
    re.IGNORECASE,
)

_OF_A_PERSON = re.compile(
    r"\b(?:i|i['\u2019]m|me|he|she|him|her|his|they|them|user|ich|mich|mir|er|ihm|nutzer|yo|me|"
    r"soy|es (?:al[eé]rg|intoler|diab[eé]t|cel[ií]ac)\w+|tengo|tiene|puede|puedo|debe|él|ella|"
    r"usuari[oa]|je|j['\u2019]\w+|il|elle|lui|utilisat\w+)\b|[我他她]|用户",
    re.IGNORECASE,
)
# Its own subject is a person, so that an allergy that somebody only believes in is still one.


_AHEAD = re.compile(
    r"\b(?:will|going to|plans? to|planning|scheduled|due|next|tomorrow|until|deadline|werde|wird|"
    r"morgen|nächste\w*|fällig|frist|voy a|va a|vamos a|mañana|próxim[oa]|vence|plazo|vais|va|"
    r"demain|prochaine?|échéance|prévu\w*)\b|将|打算|计划|明天|下周|下个月|截止|到期",
    re.IGNORECASE,
)
_PLAN = re.compile(
    _AHEAD.pattern + r"|\b(?:appointment|meeting|reservation|booking|booked|flight|exam|interview|"
    r"haircut|check-?up|termin\w*|\w+termin|besprechung|reservierung|gebucht|flug|prüfung|"
    r"verabredung|cita|reunión|reserva|vuelo|examen|entrevista|rendez-vous|réunion|réservation|"
    r"vol|entretien)\b|预约|约了|会议|开会|订了|航班|考试|面试",
    re.IGNORECASE,
)
"""What is to come: a plan, an appointment, a deadline."""


_CAUSES = re.compile(
    r"\b(?:causes?|triggers?|leads? to|cures?|heals?|prevents?|verursach\w+|führ(?:t|en) zu|"
    r"heil(?:t|en)|"
    r"provo\w+|caus(?:e|ent|a|an)|entraîne\w*|guéri\w+|produce[n]?|cura[n]?|previene[n]?)\b|"
    r"导致|引起|引发|治好|治疗|预防",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?!(?:i|user|we) )\w+ (?:says?|said|reckons?|told (?:me|us|the user)|mentioned)\b|"
    r"\b(?!(?:ich|wir|nutzer) )\w+ (?:sag(?:t|te|en)|mein(?:t|te|en)|erzähl(?:t|te)|"
    r"behaupte(?:t|te))\b|\b(?:laut|angeblich|según|selon|d['\u2019]après|paraît)\b|"
    r"\b(?:dice[n]?|dij(?:o|eron)|cuenta[n]?) que\b|"
    r"\bme (?:dijo|contó|dijeron)\b|\b(?:il|elle|on|\w{3,}) (?:dit|disent|raconte|prétend) que\b|"
    r"\bm['\u2019]a (?:dit|raconté)\b|听[\u3400-\u9fff]{0,4}说|据说|(?<!我)(?:说过?|告诉我)",
    re.IGNORECASE,
)
"""What somebody else said."""
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


def kind_of(text: str, *, user_names: frozenset[str] = frozenset()) -> Kind:
    """The kind of a unit; `user_names` are names of the user, case-folded."""
    statement = without_label(text)
    words = WORDINGS.get(language_of(statement))
    belief = BELIEF if words is None else words.belief
    opinion = belief.search(statement)
    # Safety first: a missed allergy does more harm than any other mistake. A belief comes before
    # the liking that it may mention, as in "believes that she likes tea".
    is_general = _is_general(opinion, statement) or _is_causal(statement)
    if looks_like_safety(statement) and not is_general:
        return "safety"
    about = about_whom(text, user_names=user_names)
    if opinion and (about != "world" or cues.OPINION.search(statement)):
        return "claim" if _OF_ONES_OWN.search(statement[opinion.end() :]) else "belief"
    return _other_kind(statement, about) if words is None else _kind_in(words, statement, about)


def _is_general(opinion: re.Match[str] | None, statement: str) -> bool:
    """Whether an opinion about safety is one about the world: "vaccines cause autism"."""
    if opinion is None or looks_like_safety(statement[: opinion.start()]):
        return False
    matter = statement[opinion.end() :]
    return _OF_A_PERSON.search(matter) is None and _OF_ONES_OWN.search(matter) is None


def _is_causal(statement: str) -> bool:
    """Whether a statement says what causes an illness, of nobody: "gluten causes migraine"."""
    return (
        _CAUSES.search(statement) is not None
        and _OF_A_PERSON.search(statement) is None
        and _OF_ONES_OWN.search(statement) is None
    )


def reports_speech(text: str) -> bool:
    """Whether a text tells what somebody other than the user said."""
    return _REPORTED.search(comparison_form(text)) is not None


def _other_kind(statement: str, about: About) -> Kind:
    # Not a preference, though people say "prefers short answers": an answer can keep to it.
    if CONSTRAINT.search(statement) or ANSWER_FORM.search(statement):
        return "constraint"
    if PREFERENCE.search(statement) and (about != "world" or cues.FIRST_PERSON.search(statement)):
        return "preference"
    if about == "world":
        return "claim"
    return "experience" if EXPERIENCE.search(statement) else "fact"


def _kind_in(words: Wordings, statement: str, about: About) -> Kind:
    """The same in another language, whose words for constraints are less exact."""
    if LIMIT.search(statement):
        return "constraint"
    if words.preference.search(statement):
        return "preference"
    if words.constraint.search(statement):
        return "constraint"
    if about == "world":
        return "claim"
    return "experience" if words.experience.search(statement) else "fact"


def epistemic_of(text: str) -> Epistemic:
    """The epistemic state that a unit states of itself; evidence is compared elsewhere."""
    text = comparison_form(text)
    words = WORDINGS.get(language_of(text))
    if words is not None:
        return "uncertain" if words.doubtful.search(text) else "stated"
    if DENIED.search(text):
        return "contradicted"
    if VERIFIED.search(text):
        return "verified"
    if DOUBTFUL.search(text):
        return "uncertain"
    return "inferred" if INFERRED.search(text) else "stated"


def temporality_of(text: str, *, said_at: datetime | None, now: datetime | None) -> Temporal:
    """Whether a unit is still valid.

    Words of the past make it superseded, or uncertain if it also reports a change ("used to smoke,
    now runs"). A date or a period that ended before the read makes it superseded as well.

    Args:
        text: A unit.
        said_at: When it was said; a naive time is UTC.
        now: When it is read; without it, dates are not compared.
    """
    text = comparison_form(text)
    words = WORDINGS.get(language_of(text))
    if (words.past if words else PAST).search(text):
        # "used to smoke, now runs": which half a reader needs depends on the query.
        return "uncertain" if is_update(text) else "superseded"
    if now is None:
        return "current"
    end = _end_of(text)
    if end is not None:
        # A stated end beats a word like "today", which counts from when the unit was said.
        return "superseded" if end < now.date() else "current"
    # What happened "today" has happened for good: only what was to be can be over.
    if _is_record(text):
        return "current"
    return _temporality_of_plan(text, said_at=said_at, now=now)


def _temporality_of_plan(text: str, *, said_at: datetime | None, now: datetime) -> Temporal:
    if is_expired_plan(text, said_at=said_at, now=now):
        return "superseded"
    period = next(((days, over) for span, days, over in SPANS if span.search(text)), None)
    if period is None:
        return "current"
    days, over = period
    if said_at is not None and _aware(said_at) + timedelta(days=days) >= _aware(now):
        return "current"
    return "superseded" if over and said_at is not None else "uncertain"


def is_expired_plan(text: str, *, said_at: datetime | None, now: datetime | None) -> bool:
    """Whether a text is a plan or an appointment whose own date has passed."""
    if now is None or _PLAN.search(text) is None or _is_record(text):
        return False
    at = event_time(text, said_at=said_at)
    if at is None or (said_at is None and not _YEAR.search(text)):
        return False
    if said_at is not None and not _YEAR.search(text) and at.date() < said_at.date():
        # A plan lies ahead of whoever says it: "on 9 April" is the next one.
        at += timedelta(days=365)
    # A date names the first day of its period, which is not over before its end.
    is_year, is_month = at.month == at.day == 1, at.day == 1
    length = timedelta(days=366 if is_year else 31 if is_month else 1)
    return at + length <= _aware(now)


def _is_record(text: str) -> bool:
    """Whether a text says that something happened, and nothing of what is to come."""
    words = WORDINGS.get(language_of(text))
    happened = (words.experience if words else EXPERIENCE).search(text) is not None
    return happened and _AHEAD.search(text) is None


# Cached, because every unit is compared with all the others.
@lru_cache(maxsize=4096)
def is_update(text: str) -> bool:
    """Whether a text reports a change."""
    words = WORDINGS.get(language_of(text))
    return (words.update if words else UPDATE).search(text) is not None


def _end_of(text: str) -> date | None:
    """The last day of `until 3 March 2025`, `until March 2025`, `until 2025`."""
    hit = UNTIL.search(text)
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
