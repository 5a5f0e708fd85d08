"""The rule by which quotes are erased from documents of the log."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memguard.journal.erasure import (
    FORGOTTEN,
    Quotes,
    erase_quotes,
    erase_text,
    repeats,
    text_form,
    words_of,
)

PORTO = "I live in Porto."
QUOTES = Quotes(
    texts=frozenset({text_form(PORTO)}), words=frozenset({"porto"}), ids=frozenset({"k1"})
)

texts = st.text(max_size=30)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
documents = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=20
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('superseded "I live in Porto." (said 2026-03-01)', 'superseded "[forgotten]" (said'),
        ("i LIVE  in porto", FORGOTTEN),
        ("\uff29 live in P\u00adorto", FORGOTTEN),
        ("the port of Oporto", "the port of Oporto"),
        ("The user moved from Porto to Lisbon", FORGOTTEN),
        ("k1", FORGOTTEN),
        ("k12", "k12"),
    ],
)
def test_a_text(text: str, expected: str):
    assert erase_text(text, QUOTES, originals=[PORTO]).startswith(expected)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I live in Porto with my 3 cats", {"live", "porto", "3", "cats"}),
        ("Ich wohne jetzt mit Karl in Köln", {"wohne", "karl", "köln"}),
        ("我住在波尔图。", {"我住", "住在", "在波", "波尔", "尔图"}),
        ("", set()),
    ],
)
def test_words(text: str, words: set[str]):
    assert words_of(text) == words


def test_a_short_quote_counts_only_as_a_whole():
    quotes = Quotes(texts=frozenset({"yes"}))
    assert repeats("Yes.", quotes)
    assert not repeats("Yes, the user has blue eyes", quotes)
    assert repeats("The user has Rexes", Quotes(needles=frozenset({"rex"})))


def test_a_quote_is_whole_words():
    quotes = Quotes(texts=frozenset({"i like tea a lot"}))
    assert repeats("He said: I like tea a lot!", quotes)
    assert not repeats("I like tea a lotus", quotes)


def test_codes_and_the_own_memory_stay():
    document = {
        "candidate": {"text": "Porto is my port."},
        "decision": {"outcome": "admit", "reason": "porto", "explanation": "of Porto"},
        "record": {
            "key": "k1",
            "text": PORTO,
            "provenance": {"candidate_id": "k1"},
            "lifecycle": {"reason": "left Porto", "superseded_by": "k1"},
        },
        "changes": [{"key": "k1", "after": {"reason": "not in Porto", "ended_as": "superseded"}}],
        "reports": [{"evidence": {"Porto": [0.5, "Porto"], "score": 1}}],
    }
    assert erase_quotes(document, QUOTES) == {
        "candidate": {"text": "Porto is my port."},
        "decision": {"outcome": "admit", "reason": "porto", "explanation": FORGOTTEN},
        "record": {
            "key": "k1",
            "text": PORTO,
            "provenance": {"candidate_id": "k1"},
            "lifecycle": {"reason": FORGOTTEN, "superseded_by": FORGOTTEN},
        },
        "changes": [{"key": FORGOTTEN, "after": {"reason": FORGOTTEN, "ended_as": "superseded"}}],
        "reports": [{"evidence": {FORGOTTEN: [0.5, FORGOTTEN], "score": 1}}],
    }


@given(documents, st.frozensets(texts.filter(text_form), max_size=3))
def test_nothing_is_repeated_afterwards(part: Any, quoted: frozenset[str]):
    quotes = Quotes(
        texts=frozenset(map(text_form, quoted)),
        words=frozenset[str]().union(*map(words_of, quoted)) - words_of(FORGOTTEN),
    )
    document = {"evidence": part}
    erased = erase_quotes(document, quotes, originals=quoted)
    assert not any(
        repeats(text, quotes) for text in _strings(erased["evidence"]) if text != FORGOTTEN
    )
    # Erasing again changes nothing, and what repeats nothing is the same object.
    assert erase_quotes(erased, quotes, originals=quoted) == erased
    assert erase_quotes(document, Quotes()) is document
    assert json.loads(json.dumps(erased)) == erased


def _strings(part: Any) -> list[str]:
    if isinstance(part, str):
        return [part]
    if isinstance(part, dict):
        return [text for pair in part.items() for side in pair for text in _strings(side)]
    return [text for entry in part for text in _strings(entry)] if isinstance(part, list) else []
