"""Words and punctuation of a text."""

import re
from dataclasses import dataclass

_WORD = (
    r"\d+(?:[.,:/]\d+)*|[^\W\d_]+(?:['\u2019\-][^\W\d_]+)*['\u2019]?|[.!?;:,\n\"\u201c\u201d\u201e"
    r"\u00ab\u00bb()\u2014\u2013\u2026]"
)
_TOKEN = re.compile(_WORD)
_ELIDED = re.compile(r"(?:[jldmtsnc]|qu)['\u2019]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Token:
    """A word or a punctuation mark; `low` is in small letters with a plain apostrophe."""

    text: str
    low: str
    start: int
    end: int

    @property
    def is_word(self) -> bool:
        """Whether it is a word or a number."""
        return self.text[0].isalnum()

    @property
    def is_capital(self) -> bool:
        """Whether it begins with a capital."""
        return self.text[0].isupper()


def tokens_of(text: str, language: str, start: int = 0) -> list[Token]:
    """The tokens of a text in order; `start` is added to their offsets."""
    tokens: list[Token] = []
    for hit in _TOKEN.finditer(text):
        begin, end = hit.span()
        # French elides: `j'habite` is two words.
        while language == "fr" and (prefix := _ELIDED.match(text, begin, end)):
            tokens.append(_token(text, begin, prefix.end(), start))
            begin = prefix.end()
            if begin == end:
                break
        if begin < end:
            tokens.append(_token(text, begin, end, start))
    return tokens


def _token(text: str, begin: int, end: int, shift: int) -> Token:
    word = text[begin:end]
    return Token(word, word.lower().replace("\u2019", "'"), begin + shift, end + shift)


def words_of(text: str) -> list[str]:
    """The words and marks of a text in small letters."""
    return _TOKEN.findall(text.lower().replace("\u2019", "'"))
