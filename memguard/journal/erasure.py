"""What a document of the log repeats of memories that are to be forgotten, and how it is erased.

A document is JSON: the body of a receipt or of an event. A string that repeats a whole text loses
the text, and a string that repeats a word that only the forgotten memories have is erased as a
whole. What the document itself decided on, its own candidate and record, is never changed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, cast

from memguard.local.languages import words_of_grammar
from memguard.normal_form import comparison_form

FORGOTTEN = "[forgotten]"
"""What stands in place of an erased text."""

_PROTECTED = frozenset({"candidate", "value", "provenance", "spec", "prompts", "models"})
"""Fields that have the document's own memory, or no text of any."""
_FREE_TEXT = frozenset(
    {"explanation", "reason", "content", "notes", "evidence", "context", "query", "text"}
)
"""Fields with text for a person; codes such as `supported` are in others."""
_MARKS = frozenset({"changes", "lifecycle"})
_WORD = re.compile(r"[^\W_]+")
# Chinese and Japanese have no spaces between words, so pairs of characters stand for words.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_MIN_LETTERS = 4
_GRAMMAR = frozenset[str]().union(*map(words_of_grammar, ("en", "de", "es", "fr", "other")))
"""Words that say nothing about what a text is about."""
_MIN_QUOTE = 10
_MIN_UNSPACED = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Quotes:
    """What is to be erased."""

    texts: frozenset[str] = frozenset()
    """Whole texts, in the form of `text_form`; short ones count only as a whole string."""
    needles: frozenset[str] = frozenset()
    """Parts of texts, in the form of `text_form`, which count wherever they are."""
    words: frozenset[str] = frozenset()
    """Words that only the forgotten memories have, as `words_of` gives them."""
    ids: frozenset[str] = frozenset()
    """Keys and candidate ids, from which a text could be confirmed: they are digests of it."""

    def without(self, words: frozenset[str]) -> "Quotes":
        """The same without some single words."""
        return replace(self, words=self.words - words)


def text_form(text: str) -> str:
    """The form in which texts are searched: as they are compared, without case and final stop."""
    return " ".join(comparison_form(text).casefold().split()).rstrip(".\u3002\uff0e")


def words_of(text: str) -> frozenset[str]:
    """The words by which a text can be recognised: of four letters or more, or with a digit.

    Words of grammar are left out. Of Chinese and Japanese text, every pair of neighbouring
    characters.
    """
    words: set[str] = set()
    for word in _WORD.findall(text_form(text)):
        if _UNSPACED.search(word):
            words.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif len(word) >= _MIN_LETTERS or any(char.isdigit() for char in word):
            words.add(word)
    return frozenset(words - _GRAMMAR)


def repeats(text: str, quotes: Quotes) -> bool:
    """Whether a text repeats any of the quotes."""
    form = text_form(text)
    return (
        text in quotes.ids
        or form in quotes.texts
        or any(needle in form for needle in quotes.needles)
        or any(_has(form, quote) for quote in _possible(form, quotes.texts))
        or not quotes.words.isdisjoint(words_of(text))
    )


def _possible(form: str, texts: frozenset[str]) -> Iterator[str]:
    """The quotes that a form may have in it: there may be thousands of quotes, and of forms."""
    by_word, unspaced = _indexed(texts)
    yield from unspaced
    if by_word:
        for word in set(_WORD.findall(form)):
            yield from by_word.get(word, ())


@lru_cache(maxsize=8)
def _indexed(texts: frozenset[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Quotes by their longest word, and those without spaces between words."""
    by_word: dict[str, list[str]] = {}
    unspaced: list[str] = []
    for text in texts:
        words = _WORD.findall(text)
        if _UNSPACED.search(text) or not words:
            unspaced.append(text)
        else:
            by_word.setdefault(max(words, key=len), []).append(text)
    return by_word, unspaced


def drop_index() -> None:
    """Forget the texts that were looked for last, which are in memory until then."""
    _indexed.cache_clear()


def _has(form: str, quote: str) -> bool:
    """Whether a form has a quote in it, as whole words; short quotes such as "yes" do not count."""
    if len(quote) < (_MIN_UNSPACED if _UNSPACED.search(quote) else _MIN_QUOTE):
        return False
    start = form.find(quote)
    while start >= 0:
        end = start + len(quote)
        if _is_edge(form, start) and _is_edge(form, end):
            return True
        start = form.find(quote, start + 1)
    return False


def _is_edge(form: str, at: int) -> bool:
    """Whether a word may begin or end at a position."""
    if at in {0, len(form)}:
        return True
    before, after = form[at - 1], form[at]
    return not (before.isalnum() and after.isalnum()) or bool(_UNSPACED.search(before + after))


def erase_text(text: str, quotes: Quotes, *, originals: Iterable[str] = ()) -> str:
    """The text without the quotes; it is erased as a whole unless an original is found in it.

    Args:
        text: Any text.
        quotes: What is to be erased.
        originals: The texts as they were written, of which exact copies are cut out.
    """
    if not repeats(text, quotes):
        return text
    shorter = text
    for original in sorted(originals, key=len, reverse=True):
        shorter = shorter.replace(original, FORGOTTEN) if original else shorter
    return FORGOTTEN if repeats(shorter, quotes) else shorter


def erase_quotes(
    document: Any,
    quotes: Quotes,
    *,
    originals: Iterable[str] = (),
    mark_quotes: Quotes | None = None,
) -> Any:
    """The document of a receipt or an event without the quotes; the same object if it has none.

    Args:
        document: The document.
        quotes: What is to be erased.
        originals: As in `erase_text`.
        mark_quotes: What is to be erased from the changes of other memories, if it is more: they
            have to stay equal to the marks in the store.
    """
    return _erased(
        document, _Erasing(quotes, mark_quotes or quotes, tuple(originals)), is_free=False
    )


class _Erasing(NamedTuple):
    """The arguments of `erase_quotes`."""

    quotes: Quotes
    mark_quotes: Quotes
    originals: tuple[str, ...]


def _erased(part: Any, rule: _Erasing, *, is_free: bool) -> Any:
    if isinstance(part, str):
        if part in rule.quotes.ids:
            return FORGOTTEN
        return erase_text(part, rule.quotes, originals=rule.originals) if is_free else part
    if isinstance(part, list):
        old = cast("list[Any]", part)
        new = [_erased(entry, rule, is_free=is_free) for entry in old]
        return new if new != old else old
    if isinstance(part, Mapping):
        return _erased_fields(cast("Mapping[str, Any]", part), rule, is_free=is_free)
    return part


def _erased_fields(
    fields: Mapping[str, Any], rule: _Erasing, *, is_free: bool
) -> Mapping[str, Any]:
    is_record = "provenance" in fields
    erased: dict[str, Any] = {}
    for name, field in fields.items():
        if not is_free and (name in _PROTECTED or (is_record and name in {"text", "key"})):
            erased[name] = field
            continue
        free = is_free or name in _FREE_TEXT
        # The reason of a decision is a code.
        if name == "reason" and isinstance(field, str) and "outcome" in fields:
            free = False
        inner = rule._replace(quotes=rule.mark_quotes) if name in _MARKS else rule
        label = FORGOTTEN if is_free and repeats(name, rule.quotes) else name
        erased[label] = _erased(field, inner, is_free=free)
    return erased if erased != fields else fields
