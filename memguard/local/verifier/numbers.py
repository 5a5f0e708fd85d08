"""Numbers and dates as comparable values, so that `3 March` matches `March 3rd` and `2024-03-03`.

A value is a short string: `7` for a number, `m3` for March, `d0` for Monday, `5:30` for a time. A
reading lists the possible meanings of a word, and each of them is a set of values that must all be
present. `03/04/2024` has two, because either number may be the month.
"""

import re
from collections.abc import Sequence
from datetime import date, timedelta

from memguard.local.verifier import lexicon

NumberReading = tuple[frozenset[str], ...]
"""The possible meanings of one word; empty when it is neither a number nor a date."""

_DIGITS = re.compile(r"^\d")
_THOUSANDS = re.compile(r"^\d{1,3}(?:,\d{3})+(?:\.\d+)?$")
_ISO = re.compile(r"^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})$")
_DAY_MONTH = re.compile(r"^(\d{1,2})[/.\-](\d{1,2})(?:[/.\-](\d{2}|\d{4}))$")
_CLOCK = re.compile(r"^(\d{1,2}):(\d{2})$")
_ORDINAL = re.compile(r"(?:st|nd|rd|th)$")
# Before these, `one` is a pronoun and no count: `the blue one`, `which one`.
_BEFORE_PRONOUN = lexicon.word_set("the that this no any each every which other")
_AMBIGUOUS_MONTHS = lexicon.word_set("may march mar jan dec sep apr jun")
# Synonyms, so that `the past week` and `last week` get the same value.
_SAME_TIME = {"past": "last", "previous": "last", "coming": "next", "each": "every"}
_PERIODS = lexicon.word_set("week weekend month year night spring summer fall autumn winter")
_NAMED_TIMES = {
    "yesterday": "yesterday", "tomorrow": "tomorrow", "daily": "every-day",
    "weekly": "every-week", "monthly": "every-month", "yearly": "every-year",
    "annually": "every-year",
}  # fmt: skip
_NOON = 12
_LAST_MONTH = 12


def read_numbers(
    lowered: Sequence[str], written: Sequence[str], *, at: date | None = None
) -> tuple[list[bool], list[NumberReading]]:
    """Find the words that state a number or date, and what each may mean.

    Args:
        lowered: The words in lower case.
        written: The same words in their original case: a capital tells `May` from `may`.
        at: When the text was said, to resolve `yesterday` and `last month`.

    Returns:
        For each word, whether its value must be found in the context, and its reading.
    """
    demanded = [False] * len(lowered)
    readings: list[NumberReading] = [()] * len(lowered)
    index = 0
    while index < len(lowered):
        word = lowered[index]
        length = 1
        if _DIGITS.match(word):
            readings[index], demanded[index] = _digits(word), True
        elif word in lexicon.SMALL_NUMBERS or word in lexicon.TENS:
            value, length = _spoken(lowered, index)
            loose = length == 1 and word == "one" and _is_pronoun(lowered, index)
            # Every word of `two hundred and fifty` stands for the whole number.
            for position in range(index, index + length):
                readings[position] = (frozenset({str(value)}),)
                demanded[position] = not loose
        elif word in lexicon.OTHER_NUMBERS:
            readings[index] = (frozenset({lexicon.OTHER_NUMBERS[word]}),)
        else:
            readings[index], demanded[index] = _calendar(lowered, written, index, at=at)
        index += length
    return demanded, readings


def values_of(reading: NumberReading) -> frozenset[str]:
    """The values of all meanings of a reading."""
    return frozenset[str]().union(*reading)


def is_stated(reading: NumberReading, values: frozenset[str]) -> bool:
    """Whether all values of some meaning of a reading are among `values`."""
    return any(option <= values for option in reading)


def _digits(word: str) -> NumberReading:
    if hit := _ISO.match(word):
        year, month, day = (int(part) for part in hit.groups())
        return (_date_values(year=year, month=month, day=day),)
    if hit := _DAY_MONTH.match(word):
        first, second = int(hit[1]), int(hit[2])
        year = int(hit[3]) if len(hit[3]) > 2 else 2000 + int(hit[3])  # noqa: PLR2004  # two digits
        orders = [(first, second), (second, first)]
        options = [
            _date_values(year=year, month=month, day=day)
            for day, month in orders
            if month <= _LAST_MONTH
        ]
        # `31/12/24` has one order; `99/99/24` has none and stands for itself.
        return tuple(dict.fromkeys(options)) or (frozenset({word}),)
    if hit := _CLOCK.match(word):
        hour, minute = int(hit[1]), hit[2]
        # Modulo 12, as `5 pm` and `17:00` are the same time and the words seldom say which half.
        value = str(hour % _NOON or _NOON) if minute == "00" else f"{hour % _NOON}:{minute}"
        return (frozenset({value}),)
    plain = _ORDINAL.sub("", word)
    if _THOUSANDS.match(plain):
        plain = plain.replace(",", "")
    return (frozenset({plain.lstrip("0") or "0"}),)


def _spoken(words: Sequence[str], start: int) -> tuple[int, int]:
    """Value and length in words of the number at `start`, such as `two hundred and fifty`."""
    total, current, length = 0, 0, 0
    for index in range(start, len(words)):
        word = words[index]
        value = lexicon.TENS.get(word) or lexicon.SMALL_NUMBERS.get(word)
        if value is not None and (index == start or _continues(current, value)):
            current += value
        elif word in lexicon.SCALES and index > start:
            current = (current or 1) * lexicon.SCALES[word]
            # A hundred may still grow, as in `two hundred and fifty`; larger scales close a group.
            if word != "hundred":
                total, current = total + current, 0
        elif word == "and" and words[index - 1] in lexicon.SCALES and _is_spoken(words, index + 1):
            continue
        else:
            break
        length = index + 1 - start
    return total + current, max(length, 1)


def _continues(current: int, value: int) -> bool:
    """Whether a number word continues a number, as `five` continues `twenty` but `ten` does not."""
    return value > 0 and (current % 100 == 0 or (current % 10 == 0 and value < 10))  # noqa: PLR2004


def _is_spoken(words: Sequence[str], index: int) -> bool:
    word = words[index] if index < len(words) else ""
    return word in lexicon.TENS or word in lexicon.SMALL_NUMBERS


def _is_pronoun(words: Sequence[str], index: int) -> bool:
    after = words[index + 1] if index + 1 < len(words) else ""
    before = words[index - 1] if index else ""
    return after in {"of", "day", "another", ""} or not before or before in _BEFORE_PRONOUN


def _calendar(
    lowered: Sequence[str], written: Sequence[str], index: int, *, at: date | None
) -> tuple[NumberReading, bool]:
    word = lowered[index]
    month, day = lexicon.MONTHS.get(word), word.removesuffix("s")
    if month and (word not in _AMBIGUOUS_MONTHS or _is_month(lowered, written, index)):
        return (frozenset({f"m{month}"}),), True
    if day in lexicon.WEEKDAYS:
        return (frozenset({f"d{lexicon.WEEKDAYS.index(day)}"}),), True
    before = lowered[index - 1] if index else ""
    resolved = _relative(word, before, at) if at is not None else ()
    # A time that has a name but no date: `yesterday`, `weekly`, `last week`.
    named = _NAMED_TIMES.get(word, "")
    step = _SAME_TIME.get(before, before)
    if word in _PERIODS and step in {"last", "next", "every"}:
        named = f"{step}-{word}"
    return ((frozenset({named}), *resolved), True) if named else (resolved, False)


def _is_month(lowered: Sequence[str], written: Sequence[str], index: int) -> bool:
    """Whether `may` or `march` is the month: next to a number, or capitalised after `in`."""
    neighbours = [lowered[i] for i in (index - 1, index + 1) if 0 <= i < len(lowered)]
    if any(_DIGITS.match(word) for word in neighbours):
        return True
    before = lowered[index - 1] if index else ""
    return written[index][0].isupper() and before in {"in", "of", "last", "next", "this", "since"}


def _relative(word: str, before: str, at: date) -> NumberReading:
    """The date of `yesterday` or the month of `last month`, counted from when the text was said."""
    shift = {"today": 0, "tonight": 0, "yesterday": -1, "tomorrow": 1}.get(word)
    if shift is not None:
        day = at + timedelta(days=shift)
        values = _date_values(year=day.year, month=day.month, day=day.day)
        return (values | {f"d{day.weekday()}"},)
    step = {"last": -1, "next": 1, "this": 0}.get(before)
    if step is None:
        return ()
    if word == "year":
        return (frozenset({str(at.year + step)}),)
    if word == "month":
        months = at.year * 12 + at.month - 1 + step
        return (frozenset({f"m{months % 12 + 1}", str(months // 12)}),)
    return ()


def _date_values(*, year: int, month: int, day: int) -> frozenset[str]:
    return frozenset({str(year), f"m{month}", str(day)})
