r"""Characters: what a text shows, and the form in which texts are compared.

`visible_text` removes characters that show nothing, so that the same text is judged, stored and
shown. `comparison_form` also unifies characters that look alike. It is for comparing, searching and
finding duplicates, and is never shown. `cue_forms` are the forms in which words of a text are
searched for.

Look-alikes are a part of the table of Unicode Technical Standard 39, `confusables.txt`: single
letters of scripts that are used for imitations, at most one per script and ASCII letter. Full-width
letters and mathematical alphabets need no table, because NFKC has them. Within one script no two
letters become one, so words that differ in their own script never compare as equal.
"""

import re
import unicodedata

_JOINERS = "\u200c\u200d"
_EMOJI_STYLE = "\ufe0f"
_KEYCAP = "\u20e3"

_HIDDEN = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
"""Characters without a shape of their own: format characters, joiners, variation selectors, tags.

They are Unicode's `Default_Ignorable_Code_Point`, without the letters of `_BLANK`.
"""
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols that look like a space: Hangul fillers and the empty Braille pattern."""

_HIDDEN_CHAR = re.compile(f"[{_HIDDEN}]")
_BLANK_CHAR = re.compile(f"[{_BLANK}]")
# England, Scotland and Wales are the only flags in general use that are written with tags.
_TAGGED_FLAGS = "|".join(
    "".join(chr(0xE0000 + ord(char)) for char in code) for code in ("gbeng", "gbsct", "gbwls")
)
_HIDDEN_RUN = re.compile(f"(?<=\U0001f3f4)(?:{_TAGGED_FLAGS})\U000e007f|[{_HIDDEN}]")

_CURSIVE = re.compile(
    r"[\u0600-\u074f\u0750-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18af\u1a20-\u1bff"
    r"\ua840-\ua8ff\ua980-\ua9ff\uaa60-\uaadf\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefc"
    r"\U00010a00-\U00010eff\U00011000-\U000119ff]"
)
"""Scripts in which a joiner changes the shape or the meaning of a word: Arabic, Indic and kin."""
_VIRAMA = 9
"""The combining class of a sign that joins two consonants of an Indic script."""


def visible_text(text: str) -> str:
    """The text without characters that show nothing, and with a space for each blank letter.

    A joiner stays within a word of a script that needs it and within an emoji; so do the emoji
    style of a symbol and the tags of a flag.
    """
    # Most texts take one of the first two branches.
    if text.isascii():
        return text
    text = _BLANK_CHAR.sub(" ", text)
    if _HIDDEN_CHAR.search(text) is None:
        return text
    return _HIDDEN_RUN.sub(lambda hit: hit[0] if _is_needed(hit) else "", text)


def _is_needed(hit: re.Match[str]) -> bool:
    char = hit[0]
    if len(char) > 1:
        return True  # the tags of a flag
    # Never a negative index, which would count from the end.
    before = hit.string[max(0, hit.start() - 2) : hit.start()]
    # In an emoji the style of the first symbol stands before the joiner.
    symbol = before[:-1] if len(before) > 1 and before[-1] == _EMOJI_STYLE else before[-1:]
    before = before[-1:]
    after = hit.string[hit.end() : hit.end() + 1]
    if char == _EMOJI_STYLE:
        return _is_symbol(before) or (
            before != "" and before in "#*0123456789" and after == _KEYCAP
        )
    if char not in _JOINERS or not before:
        return False
    if _CURSIVE.match(before):
        return unicodedata.combining(before) == _VIRAMA or _CURSIVE.match(after) is not None
    return char == "\u200d" and _is_symbol(symbol) and _is_symbol(after)


def _is_symbol(char: str) -> bool:
    """Whether a character may be part of an emoji."""
    # Skin tones are `Sk`, arrows `Sm`; the last three are the emoji among punctuation.
    return char != "" and (
        unicodedata.category(char) in {"So", "Sk", "Sm"} or char in "\u203c\u2049\u3030"
    )


def is_blank(text: str) -> bool:
    """Whether a text has white space and characters that show nothing only."""
    return all(
        char.isspace() or _HIDDEN_CHAR.match(char) or _BLANK_CHAR.match(char) for char in text
    )


# -- comparison -------------------------------------------------------------------------------

LOOK_ALIKES: dict[str, tuple[str, str]] = {
    "Cyrillic": (
        "АВСЕԌНІЈКМОРЅТѴԜХУаԁсеһіјӏорԛѕѵԝху",  # noqa: RUF001
        "ABCEGHIJKMOPSTVWXYadcehijlopqsvwxy",
    ),
    "Greek": (
        "ΑΒΕϜΗΙͿΚΜΝΟΡΤΧΥΖαικϳνορτυχγ",
        "ABEFHIJKMNOPTXYZaikjvoptuxy",
    ),
    "Armenian": (
        "ՕՏՍքցհոօզսա",  # noqa: RUF001
        "OSUfghnoquw",
    ),
    "Cherokee": (
        "ᎪᏴᏟᎠᎬᏀᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᎩᏃᏏᏧᏂᎥ",  # noqa: RUF001
        "ABCDEGHJKLMPRSTVWYZbdhi",
    ),
}
"""Letters by script, and the ASCII letters that they look like."""

_TO_ASCII = {
    ord(letter): ascii_letter
    for letters, ascii_letters in LOOK_ALIKES.values()
    for letter, ascii_letter in zip(letters, ascii_letters, strict=True)
}
_PUNCTUATION = str.maketrans(
    {**dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc\u2032", "'")}
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
)


_NUMERIC = (
    *range(0xB2, 0xBF),
    *range(0x2070, 0x209D),
    *range(0x2150, 0x218A),
    *range(0x2460, 0x2474),
)


def _digits() -> dict[int, str]:
    """Raised, lowered and circled digits and fractions, written so that they keep their meaning.

    NFKC alone would turn 10² into 102, and 3½ into 31/2.
    """
    table: dict[int, str] = {}
    marks = {"<super>": "^{}", "<sub>": "_{}", "<circle>": "({})", "<fraction>": " {} "}
    for code in _NUMERIC:
        kind, _, plain = unicodedata.decomposition(chr(code)).partition(" ")
        if kind in marks:
            chars = "".join(chr(int(part, 16)) for part in plain.split())
            table[code] = marks[kind].format(chars.replace("\u2044", "/"))
    return table


_DIGITS = _digits()


def comparison_form(text: str) -> str:
    """The form in which a text is compared with others; equal forms look the same to a reader.

    NFKC without characters that show nothing; look-alikes as ASCII letters; one form of quotation
    marks and dashes. Case, words, digits and signs stay, because they carry meaning.
    """
    if text.isascii():
        return text
    plain = _BLANK_CHAR.sub(" ", _HIDDEN_CHAR.sub("", text)).translate(_DIGITS)
    # Decomposed first, so that a look-alike with an accent is unified as well.
    letters = unicodedata.normalize("NFKD", plain).translate(_TO_ASCII).translate(_PUNCTUATION)
    return unicodedata.normalize("NFC", letters)


def cue_forms(text: str) -> tuple[str, ...]:
    """The forms of a text, without case, in which cues are searched for: one or two.

    Case is removed before look-alikes are unified, because a capital may look like a Latin letter
    when its small letter does not. An imitation may be in capitals, so the other order is searched
    as well where it differs. Write cues in the first of these forms.
    """
    if text.isascii():
        return (text.lower(),)
    folded = comparison_form(text.casefold())
    return tuple(dict.fromkeys((folded, comparison_form(text).casefold())))


# -- imitations -------------------------------------------------------------------------------

_WORD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile("[A-Za-z]")


def look_alike_words(text: str) -> tuple[str, ...]:
    """Words that contain letters of another script in place of Latin ones, in order.

    A word counts if it mixes Latin letters with look-alikes, or if it has look-alikes only, in a
    text whose other letters are mostly Latin.
    """
    if text.isascii():
        return ()
    words: list[str] = _WORD.findall(_HIDDEN_CHAR.sub("", text))
    latin = sum(len(_LATIN.findall(word)) for word in words)
    mostly_latin = 2 * latin > sum(map(len, words))
    return tuple(dict.fromkeys(word for word in words if _imitates(word, mostly_latin)))


def _imitates(word: str, mostly_latin: bool) -> bool:
    foreign = [char for char in word if ord(char) in _TO_ASCII]
    if not foreign:
        return False
    return _LATIN.search(word) is not None or (mostly_latin and len(foreign) == len(word))
