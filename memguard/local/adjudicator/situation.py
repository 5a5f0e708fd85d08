"""What a query asks for: the situation, by its words, in five languages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memguard.local.adjudicator import cues
from memguard.local.adjudicator.languages import WORDINGS, Wordings, language_of
from memguard.local.adjudicator.people import names_in, relations_in
from memguard.local.relevance.requests import last_request, points_back
from memguard.schema.decision import Inconclusive
from memguard.schema.memory import Turn
from memguard.schema.read import Mode, Situation, Target

__all__ = [
    "FOREIGN",
    "asks_about_past",
    "is_small_talk",
    "last_request",
    "points_back",
    "read_situation",
    "recent_user_text",
]

FOREIGN = (
    "the query is not in English, German, Spanish, French or Chinese, which the rules read, so "
    "nothing is denied for its topic"
)
_ADVICE = frozenset({"recommendation", "planning"})
_QUESTION = re.compile(r"[?？]\s*$|[吗呢]\s*[。]?\s*$|什么|哪里|哪儿|多少|几点|谁|何时")
_FOR_NAME = re.compile(
    r"(?:\b(?:for|to|give|buy|tell|advise|about|für|para|pour|à)|[给送为替]) ?([A-ZÀ-Þ\u3400-\u9fff]\w+)"
)
_AND_ME = re.compile(
    r"\b(?:and|und|y|et) (?:me|i|myself|mich|ich|yo|moi)\b|\b(?:me|mich|moi|us|uns) (?:and|und|et)\b"
    r"|和我|跟我",
    re.IGNORECASE,
)
_NOT_A_TARGET = frozenset({"family", "friend", "colleague", "guest"})


@dataclass(frozen=True)
class _Cues:
    """The patterns for queries of one language."""

    recommendation: re.Pattern[str]
    planning: re.Pattern[str]
    doing: re.Pattern[str]
    view: re.Pattern[str]
    self: re.Pattern[str]
    greeting: re.Pattern[str]
    asks_past: re.Pattern[str]

    @classmethod
    def of(cls, words: Wordings) -> "_Cues":
        return cls(
            words.recommendation,
            words.planning,
            words.doing,
            words.view,
            words.self,
            words.greeting,
            words.asks_past,
        )


_ENGLISH = _Cues(
    cues.RECOMMENDATION,
    cues.PLANNING,
    cues.DOING,
    cues.VIEW,
    cues.FIRST_PERSON,
    cues.SMALL_TALK,
    cues.ASKS_PAST,
)
_CUES = {language: _Cues.of(words) for language, words in WORDINGS.items()}


def read_situation(query: str, *, dialogue: Sequence[Turn] = ()) -> Situation | Inconclusive:
    """The situation of a query.

    The last question decides, or the last sentence if there is no question. If the query points
    back ("the situation we discussed"), the user's last turns in `dialogue` are read as well.

    Returns:
        The situation, or `Inconclusive` if the query is in a language without rules.
    """
    language = language_of(query)
    if not language:
        return Inconclusive(reason="too_close", detail=FOREIGN)
    words = _CUES.get(language, _ENGLISH)
    ask = last_request(query)
    mode = _mode(ask, query=query, words=words)
    target = _target(ask, query=query, mode=mode, dialogue=dialogue, words=words)
    # Chinese and casual English write no capital letters that would matter.
    asks_view = words.view.search(query.casefold()) is not None
    return Situation(target=target, mode=mode, asks_view=asks_view)


def recent_user_text(dialogue: Sequence[Turn]) -> str:
    """What the user said in the last four turns."""
    return " ".join(turn.content for turn in dialogue[-4:] if turn.role == "user")


def is_small_talk(query: str) -> bool:
    """Whether a query asks nothing: a greeting, thanks."""
    text = query.strip()
    return any(words.greeting.fullmatch(text) for words in (_ENGLISH, *_CUES.values()))


def asks_about_past(query: str) -> bool:
    """Whether a query asks for what was once, so that what no longer holds answers it."""
    return _CUES.get(language_of(query), _ENGLISH).asks_past.search(query) is not None


def _mode(ask: str, *, query: str, words: _Cues) -> Mode:
    # The last request first; the rest of the query decides only if that tells nothing.
    for text in (ask, query):
        if words.recommendation.search(text):
            return "recommendation"
        if words.planning.search(text):
            return "planning"
        if words.doing.search(text):
            return "support"
        if _QUESTION.search(text):
            return "factual"
    return "support"


def _target(ask: str, *, query: str, mode: Mode, dialogue: Sequence[Turn], words: _Cues) -> Target:
    text = f"{query} {recent_user_text(dialogue)}" if points_back(query) else query
    if _is_for_other(text, words=words):
        return "third_party"
    # "What should I give my sister?" is about the sister, so this is tried second.
    return "user" if mode in _ADVICE or words.self.search(ask) else "world"


def _is_for_other(text: str, *, words: _Cues) -> bool:
    if _AND_ME.search(text):
        return False
    named = _FOR_NAME.search(text)
    if named is not None and names_in(named[1]):
        return True
    if words is _ENGLISH:
        return cues.FOR_OTHER.search(text) is not None
    # In the other languages, a person who does not join the user is whom the answer is for.
    language = language_of(text)
    others = WORDINGS[language].company.sub(" ", text)
    return bool(relations_in(others, language) - _NOT_A_TARGET)
