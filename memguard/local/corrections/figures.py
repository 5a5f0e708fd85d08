"""Figures in the forms in which they are compared: hours, ordinals, and Chinese numbers."""

import re

_THOUSANDS = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_CLOCK = re.compile(
    r"\b(\d{1,2})(?::(\d{2}))? ?(?:(am|pm|a\.m\.|p\.m\.)|uhr|h(?![a-z])|点)(?![a-z])"
)
_ORDINAL = re.compile(
    r"\b(\d{1,2})(?:st|nd|rd|th|er|era|ero|\^?[eèº°ªoa]|ème|te[nrs]?|"
    r"(?<=(?:im|am) \d)\.|(?<=(?:de[rmns]|die|das) \d)\.)(?= |$|[,.])"
)
_HALF_PAST = "点半"
_CHINESE_NUMBER = re.compile("[零一二两三四五六七八九十百]{1,6}")
_CHINESE_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"两": 2}
_NOON = 12


def with_plain_figures(plain: str) -> str:
    """A text in small letters with hours of 24 and ordinals of one form."""
    return _ORDINAL.sub(r"\1th", _CLOCK.sub(_hour, plain))


def _hour(hit: re.Match[str]) -> str:
    """An hour as it is on a clock of 24 hours."""
    hour = int(hit[1])
    half = (hit[3] or "")[:1]
    if half == "p" and hour < _NOON:
        hour += _NOON
    return f" {hour}:{hit[2]} " if hit[2] and hit[2] != "00" else f" {hour} "


def figure(token: str) -> str:
    """A number in digits without what does not change its value."""
    if _THOUSANDS.fullmatch(token):
        token = re.sub("[.,]", "", token)
    token = token.replace(",", ".").removesuffix(":00")
    return token.lstrip("0") or "0"


def chinese_number(plain: str, at: int) -> tuple[int, str] | None:
    """The length of a number in Chinese characters at a place, with its key."""
    number = _CHINESE_NUMBER.match(plain, at)
    if number is None:
        return None
    length, value = len(number[0]), _chinese_value(number[0])
    is_half = plain.startswith(_HALF_PAST, at + length)
    return (length + len(_HALF_PAST), f"#{value}:30") if is_half else (length, f"#{value}")


def _chinese_value(run: str) -> int:
    """The value of a number below a thousand in Chinese characters."""
    total = digit = 0
    for char in run:
        if char in "百十":
            total += max(digit, 1) * (100 if char == "百" else 10)
            digit = 0
        else:
            digit = _CHINESE_DIGITS[char]
    return total + digit
