"""What a query asks for, by its words: whom the answer is about, and what kind of answer it is."""

import re
from collections.abc import Sequence

from memguard.local.adjudicator import patterns
from memguard.local.verifier import lexicon
from memguard.local.verifier.words import looks_foreign, split_words
from memguard.schema.memory import Turn
from memguard.schema.read import Mode, Situation, Target
from memguard.schema.verdict import Inconclusive

FOREIGN = "the query is not English as far as can be told, and the rules know English only"

_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")


def read_situation(query: str, *, dialogue: Sequence[Turn] = ()) -> Situation | Inconclusive:
    """The situation of a query.

    Its last question decides; without one, its last sentence. What a query points back to ("the
    situation we discussed") is looked for in what the user said before.

    Args:
        query: What is asked.
        dialogue: The turns before it.

    Returns:
        The situation, or `Inconclusive` for a query that is not English.
    """
    if is_foreign(query):
        return Inconclusive(reason="too_close", detail=FOREIGN)
    ask = last_ask(query)
    mode = _mode(ask, query=query)
    spoken = " ".join(turn.content for turn in dialogue[-4:] if turn.role == "user")
    target = _target(ask, query=query, mode=mode, spoken=spoken)
    return Situation(
        target=target, mode=mode, asks_view=patterns.VIEW.search(query.casefold()) is not None
    )


def last_ask(query: str) -> str:
    """The last question of a query, or else its last sentence."""
    sentences = [found[0].strip() for found in _SENTENCE.finditer(query) if found[0].strip()]
    questions = [sentence for sentence in sentences if sentence.endswith("?")]
    return (questions or sentences or [query.strip()])[-1]


def is_small_talk(query: str) -> bool:
    """Whether nothing is asked: a greeting, thanks."""
    return patterns.SMALL_TALK.match(query.strip()) is not None


def is_foreign(query: str) -> bool:
    """Whether a query seems not to be English."""
    words = {span.text.casefold() for span in split_words(query)} - patterns.SHARED
    abroad = words & (patterns.ABROAD | lexicon.ABROAD)
    english = words & (lexicon.STOP - patterns.ABROAD - lexicon.ABROAD)
    return looks_foreign(query) or len(abroad) > len(english)


def points_back(query: str) -> bool:
    """Whether it asks about what was said before rather than about what it says itself."""
    return patterns.POINTING.search(query) is not None


def _mode(ask: str, *, query: str) -> Mode:
    for text in (ask, query):
        if patterns.RECOMMENDATION.search(text):
            return "recommendation"
        if patterns.PLANNING.search(text):
            return "planning"
        if patterns.DOING.search(text):
            return "support"
        if text.endswith("?"):
            return "factual"
    return "support"


def _target(ask: str, *, query: str, mode: Mode, spoken: str) -> Target:
    back = f" {spoken}" if points_back(query) else ""
    if patterns.FOR_OTHER.search(query + back):
        return "third_party"
    if patterns.FIRST_PERSON.search(ask):
        return "user"
    if mode in {"recommendation", "planning"}:
        return "user"
    return "world"
