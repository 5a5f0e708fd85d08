"""The situation of a query by its words: whom the answer is about, and what kind it is."""

import re
from collections.abc import Sequence

from memguard.local.adjudicator import patterns
from memguard.local.verifier import lexicon
from memguard.local.verifier.words import looks_foreign, split_words
from memguard.schema.memory import Turn
from memguard.schema.read import Mode, Situation, Target
from memguard.schema.verdict import Inconclusive

FOREIGN = "the query is probably not English, and the rules read English only"

_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")


def read_situation(query: str, *, dialogue: Sequence[Turn] = ()) -> Situation | Inconclusive:
    """The situation of a query.

    The last question decides, or the last sentence if there is no question. If the query points
    back ("the situation we discussed"), the user's last turns are read as well.

    Args:
        query: The query.
        dialogue: The turns before it.

    Returns:
        The situation, or `Inconclusive` if the query does not seem to be English.
    """
    if is_foreign(query):
        return Inconclusive(reason="too_close", detail=FOREIGN)
    ask = last_request(query)
    mode = _mode(ask, query=query)
    spoken = " ".join(turn.content for turn in dialogue[-4:] if turn.role == "user")
    target = _target(ask, query=query, mode=mode, spoken=spoken)
    return Situation(
        target=target, mode=mode, asks_view=patterns.VIEW.search(query.casefold()) is not None
    )


def last_request(query: str) -> str:
    """The last question of a query, or its last sentence if there is no question."""
    sentences = [hit[0].strip() for hit in _SENTENCE.finditer(query) if hit[0].strip()]
    questions = [sentence for sentence in sentences if sentence.endswith("?")]
    return (questions or sentences or [query.strip()])[-1]


def is_small_talk(query: str) -> bool:
    """Whether a query asks nothing: a greeting, thanks."""
    return patterns.SMALL_TALK.match(query.strip()) is not None


def is_foreign(query: str) -> bool:
    """Whether a query does not seem to be English."""
    # Stricter than `looks_foreign`, since a query is short: words that several languages share are
    # not counted for any of them.
    words = {span.text.casefold() for span in split_words(query)} - patterns.SHARED
    abroad = words & (patterns.ABROAD | lexicon.ABROAD)
    english = words & (lexicon.STOP - patterns.ABROAD - lexicon.ABROAD)
    return looks_foreign(query) or len(abroad) > len(english)


def points_back(query: str) -> bool:
    """Whether a query refers to what was said before: "the situation we discussed"."""
    return patterns.POINTING.search(query) is not None


def _mode(ask: str, *, query: str) -> Mode:
    # The last request first; the rest of the query decides only if that tells nothing.
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
