"""When what a text says happened or began, by its words of time.

The phrases of five languages are in `data/event_times.toml`. Seasons are those of the northern
hemisphere, and each begins with its first month.
"""

import re
import tomllib
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from importlib.resources import files

from memguard.local.languages import Language, language_of
from memguard.normal_form import comparison_form

_ISO = re.compile(r"(?<!\d)(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?!\d)")
_DAY_FIRST = re.compile(r"(?<![\d.])(\d{1,2})[./](\d{1,2})[./](\d{4})(?!\d)")
_PLACEHOLDER = re.compile(r"(?<![A-Za-z])[NUMSWYD](?![A-Za-z])")
_YEAR = r"(?:19|20)\d{2}"
_DAY = r"[0-3]?\d"
_DIGITS = r"\d{1,3}"
_SPACE = re.compile(" ")
_SINCE = re.compile(r"since|seit|ab |desde|depuis|dès|自|从")
_LATIN: tuple[Language, ...] = ("en", "de", "es", "fr")
_UNITS = ("day", "week", "month", "year")
_MONTHS_A_YEAR = 12
_MONTHS_A_SEASON = 3
_FIRST_SPRING_MONTH = 3
_MAX_CHARS = 2_000
"""Maximum number of characters that are read."""
_NEEDS_NO_TIME = frozenset({"date", "month_of_year", "season_of_year", "year"})
"""Phrases that are absolute."""
_AHEAD = frozenset({"tomorrow", "ahead", "next_unit", "next_season", "next_month", "next_weekday"})
_UNSETTLED = frozenset({"month", "day"})
"""Phrases without a year, which may be past or coming."""


@dataclass(frozen=True)
class _TimeWords:
    """The words of time of one language."""

    months: dict[str, int]
    seasons: dict[str, int]
    weekdays: dict[str, int]
    units: dict[str, str]
    numbers: dict[str, int]
    phrases: tuple[tuple[str, re.Pattern[str]], ...]
    until: re.Pattern[str]
    future: re.Pattern[str]
    present: re.Pattern[str]
    birth: re.Pattern[str]


@dataclass(frozen=True)
class _Mention:
    kind: str
    start: int
    end: int
    words: dict[str, str]


def event_time(text: str, *, said_at: datetime | None) -> datetime | None:
    """The start of the period in which what a text says happened or began.

    Args:
        text: A memory or a sentence.
        said_at: When it was said, to which "last spring" refers. Without it, only what is absolute
            is read, such as "in 2019".

    Returns:
        Midnight in UTC of the first day of that period, by the calendar of the speaker: "in 2019"
        gives 1 January 2019, and "two years ago" the day two years before. It may lie ahead, for
        a plan. `None` if the text names no time, several, or one that may be past or coming.
    """
    today = said_at.date() if said_at is not None else None
    day = _event_date(text[:_MAX_CHARS], today)
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if day is not None else None


def cut_times(plain: str, language: Language) -> tuple[str, tuple[str, ...]]:
    """A text in small letters without its words of time, and these words."""
    mentions = sorted(_mentions(plain, language), key=lambda mention: mention.start)
    rest: list[str] = []
    end = 0
    for mention in mentions:
        rest.append(plain[end : mention.start])
        end = mention.end
    rest.append(plain[end:])
    return " ".join(rest), tuple(_canonical(one, plain, language) for one in mentions)


def _canonical(mention: _Mention, plain: str, language: Language) -> str:
    """A form that is the same for "on 3 March" and "on March 3rd", in every language."""
    if mention.kind in {"iso", "day-first"} or language == "other":
        return "".join(f"{key}{int(mention.words[key])}" for key in "dmy")
    words = _words_of(language)
    numbers = {
        "M": words.months, "S": words.seasons, "W": words.weekdays, "N": words.numbers
    }  # fmt: skip
    parts = [
        f"{key.lower()}{numbers.get(key, {}).get(word, word.lstrip('0'))}"
        for key, word in sorted(mention.words.items())
        if key != "U"
    ]
    unit = words.units.get(mention.words.get("U", ""), "")
    # A date is one with or without "on", while "since March" is not "in March".
    since = "since " if _SINCE.match(plain, mention.start) else ""
    kind = "" if mention.kind in _NEEDS_NO_TIME | _UNSETTLED else f"{mention.kind} "
    return f"{since}{kind}{''.join(parts)}{unit}"


def ahead_in(plain: str, language: Language) -> bool:
    """Whether a text in small letters names a time to come: "next spring", "in two weeks"."""
    return any(mention.kind in _AHEAD for mention in _mentions(plain, language))


@lru_cache(maxsize=4096)
def _event_date(text: str, today: date | None) -> date | None:
    plain = comparison_form(text).lower().replace("\u2019", "'")
    language = _language_of_time(plain)
    if language != "other" and _words_of(language).birth.search(plain):
        return None
    mentions = _beginnings(plain, language)
    dates = {_resolve(mention, plain, language, today) for mention in mentions}
    # Two times in one text belong to two events, and a time that is not understood may be one.
    return dates.pop() if len(dates) == 1 else None


def _language_of_time(plain: str) -> Language:
    """The language of a text, or of its words of time where it is too short to tell."""
    language = language_of(plain)
    if language != "other":
        return language
    timed: list[Language] = [code for code in _LATIN if _mentions(plain, code)]
    return timed[0] if timed else language


def _beginnings(plain: str, language: Language) -> tuple[_Mention, ...]:
    """The words of time without those that are an end: "until June"."""
    mentions = _mentions(plain, language)
    if language == "other":
        return mentions
    ends = {hit.end() for hit in _words_of(language).until.finditer(plain)}
    return tuple(one for one in mentions if not {one.start, one.start - 1} & ends)


@lru_cache(maxsize=4096)
def _mentions(plain: str, language: Language) -> tuple[_Mention, ...]:
    """The words of time of a text in small letters, the longest first."""
    mentions = [
        _Mention("iso", hit.start(), hit.end(), dict(zip("ymd", hit.groups(), strict=True)))
        for hit in _ISO.finditer(plain)
    ]
    mentions += [
        _Mention("day-first", hit.start(), hit.end(), dict(zip("dmy", hit.groups(), strict=True)))
        for hit in _DAY_FIRST.finditer(plain)
    ]
    if language == "other":
        return tuple(mentions)
    words = _words_of(language)
    for kind, pattern in words.phrases:
        mentions += [
            _Mention(kind, hit.start(), hit.end(), hit.groupdict())
            for hit in pattern.finditer(plain)
        ]
    mentions.sort(key=lambda mention: (mention.start - mention.end, mention.start))
    longest: list[_Mention] = []
    for mention in mentions:
        if all(mention.end <= other.start or other.end <= mention.start for other in longest):
            longest.append(mention)
    return tuple(longest)


def _resolve(mention: _Mention, plain: str, language: Language, today: date | None) -> date | None:
    if mention.kind == "iso":
        return _date(*(int(mention.words[key]) for key in "ymd"))
    if mention.kind == "day-first":
        return _numeric(mention.words, language)
    words = _words_of(language)
    if today is None:
        return _absolute(mention, words) if mention.kind in _NEEDS_NO_TIME else None
    if mention.kind in _NEEDS_NO_TIME:
        return _absolute(mention, words)
    is_ahead = words.future.search(plain) is not None
    if mention.kind in _UNSETTLED and not is_ahead and _may_be_ahead(mention, plain, words):
        return None
    return _relative(mention, words, today, is_ahead=is_ahead)


def _may_be_ahead(mention: _Mention, plain: str, words: _TimeWords) -> bool:
    """Whether a sentence in the present tense leaves open which year it means."""
    is_since = (
        re.match(r"since|seit|ab |desde|depuis|dès|自|从", plain[mention.start :]) is not None
    )
    return not is_since and words.present.search(plain) is not None


def _numeric(words: dict[str, str], language: Language) -> date | None:
    day, month, year = (int(words[key]) for key in "dmy")
    # In English, 03/04 is March in one country and April in the other.
    if language == "en" and day != month and max(day, month) <= _MONTHS_A_YEAR:
        return None
    if month > _MONTHS_A_YEAR:
        day, month = month, day
    return _date(year, month, day)


def _absolute(mention: _Mention, words: _TimeWords) -> date | None:
    year = int(mention.words["Y"])
    if mention.kind == "year":
        return date(year, 1, 1)
    if mention.kind == "season_of_year":
        return date(year, _season_month(words.seasons[mention.words["S"]]), 1)
    day = int(mention.words["D"]) if mention.kind == "date" else 1
    return _date(year, words.months[mention.words["M"]], day)


def _relative(mention: _Mention, words: _TimeWords, today: date, *, is_ahead: bool) -> date | None:
    kind = mention.kind
    days = {"before_yesterday": -2, "yesterday": -1, "today": 0, "tomorrow": 1}
    if kind in days:
        return today + timedelta(days=days[kind])
    if kind in {"ago", "for_long", "ahead"}:
        written = mention.words["N"]
        count = int(written) if written.isdecimal() else words.numbers[written]
        unit = words.units[mention.words["U"]]
        return _shifted(today, count if kind == "ahead" else -count, unit)
    if kind in {"last_unit", "this_unit", "next_unit"}:
        step = {"last_unit": -1, "this_unit": 0, "next_unit": 1}[kind]
        unit = words.units[mention.words["U"]]
        shifted = _shifted(today, step, unit)
        return _start(shifted, unit) if shifted is not None else None
    return _relative_name(mention, words, today, is_ahead=is_ahead)


def _relative_name(
    mention: _Mention, words: _TimeWords, today: date, *, is_ahead: bool
) -> date | None:
    kind = mention.kind
    if kind in {"last_weekday", "next_weekday"}:
        weekday = words.weekdays[mention.words["W"]]
        back = (today.weekday() - weekday) % 7 or 7
        return today - timedelta(days=back if kind == "last_weekday" else back - 7 or -7)
    if kind.endswith("_season"):
        first = _season_month(words.seasons[mention.words["S"]])
        return _period(today, first, _MONTHS_A_SEASON, kind.removesuffix("_season"))
    month = words.months[mention.words["M"]]
    if kind == "day":
        return _day_of_month(today, month, int(mention.words["D"]), is_ahead=is_ahead)
    which = kind.removesuffix("_month") if kind != "month" else "next" if is_ahead else "this"
    return _period(today, month, 1, which)


def _day_of_month(today: date, month: int, number: int, *, is_ahead: bool) -> date | None:
    day = _date(today.year, month, number)
    if day is None:
        return None
    if is_ahead and day < today:
        return _date(today.year + 1, month, number)
    return _date(today.year - 1, month, number) if day > today and not is_ahead else day


def _period(today: date, month: int, length: int, which: str) -> date:
    """The start of a period that begins with a month, some months long.

    `this` is the last one that has begun, `last` the last one that is over, and `next` the first
    one that has not begun.
    """
    begins = [date(year, month, 1) for year in range(today.year - 2, today.year + 3)]
    if which == "next":
        return next(begin for begin in begins if begin > today)
    if which == "last":
        return [begin for begin in begins if _months_later(begin, length) <= today][-1]
    return [begin for begin in begins if begin <= today][-1]


def _months_later(day: date, months: int) -> date:
    index = day.year * _MONTHS_A_YEAR + day.month - 1 + months
    return date(index // _MONTHS_A_YEAR, index % _MONTHS_A_YEAR + 1, 1)


def _shifted(day: date, count: int, unit: str) -> date | None:
    try:
        if unit in {"day", "week"}:
            return day + timedelta(days=count * (7 if unit == "week" else 1))
        months = count * (_MONTHS_A_YEAR if unit == "year" else 1)
        month = _months_later(day, months)
        # 31 March less one month is the last day of February.
        last = (_months_later(month, 1) - timedelta(days=1)).day
        return month.replace(day=min(day.day, last))
    except (ValueError, OverflowError):
        return None


def _start(day: date, unit: str) -> date:
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "month":
        return day.replace(day=1)
    return day.replace(month=1, day=1) if unit == "year" else day


def _season_month(season: int) -> int:
    return _FIRST_SPRING_MONTH + _MONTHS_A_SEASON * season


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _indices(listed: str) -> dict[str, int]:
    """The position of each word in a list of synonyms that are separated by commas."""
    return {word: at for at, names in enumerate(listed.split(",")) for word in names.split()}


@cache
def _words_of(language: Language) -> _TimeWords:
    return _tables()[language]


@cache
def _tables() -> dict[str, _TimeWords]:
    path = files("memguard.local") / "data" / "event_times.toml"
    tables: dict[str, dict[str, str | list[str]]] = tomllib.loads(path.read_text(encoding="utf-8"))
    return {language: _compiled(table, language) for language, table in tables.items()}


def _compiled(table: dict[str, str | list[str]], language: str) -> _TimeWords:
    lists = {
        key: _indices(str(table[key]))
        for key in ("months", "seasons", "weekdays", "units", "numbers")
    }
    groups = {
        "M": _any(lists["months"]),
        "S": _any(lists["seasons"]),
        "W": _any(lists["weekdays"]),
        "U": _any(lists["units"]),
        "N": rf"{_DIGITS}|{_any(lists['numbers'])}",
        "Y": _YEAR,
        "D": _DAY,
    }
    # Chinese has no spaces, and a digit before `1月` belongs to it.
    edges = ("(?<![\\d一二三四五六七八九十])", "") if language == "zh" else (r"(?<!\w)", r"(?!\w)")
    phrases = tuple(
        (kind, _phrase(phrase, groups, edges))
        for kind, patterns in table.items()
        if isinstance(patterns, list) and kind != "until"
        for phrase in patterns
    )
    return _TimeWords(
        months={word: at + 1 for word, at in lists["months"].items()},
        seasons=lists["seasons"],
        weekdays=lists["weekdays"],
        units={word: _UNITS[at] for word, at in lists["units"].items()},
        numbers={word: at + 1 for word, at in lists["numbers"].items()},
        phrases=phrases,
        until=_word("|".join(table["until"]), edges),
        future=_word(str(table["future"]), edges),
        present=_word(str(table["present"]), edges),
        birth=_word(str(table["birth"]), edges),
    )


def _any(words: dict[str, int]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def _phrase(phrase: str, groups: dict[str, str], edges: tuple[str, str]) -> re.Pattern[str]:
    def group(hit: re.Match[str]) -> str:
        return f"(?P<{hit[0]}>{groups[hit[0]]})"

    spaced = _SPACE.sub(r"\\s{1,3}", _PLACEHOLDER.sub(group, phrase).replace(" ?", "\x00"))
    return re.compile(edges[0] + spaced.replace("\x00", r"\s?") + edges[1])


def _word(pattern: str, edges: tuple[str, str]) -> re.Pattern[str]:
    # A verb of Chinese may follow a number, so only other languages need an edge.
    before = "" if not edges[1] else edges[0]
    return re.compile(f"{before}(?:{pattern}){edges[1]}")
