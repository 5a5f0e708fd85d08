# ruff: noqa: RUF001 - question marks of Chinese
"""What a query asks for: the situation, by its words, in five languages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memguard.local.adjudicator import cues
from memguard.local.adjudicator.languages import WORDINGS, Wordings, is_greeting, language_of
from memguard.local.adjudicator.people import names_in, relations_in
from memguard.local.look_ups import read_lookup
from memguard.local.relevance.requests import last_request, points_back
from memguard.schema.decision import Inconclusive
from memguard.schema.memory import Turn
from memguard.schema.read import Mode, Situation, Target

__all__ = [
    "ADVICE",
    "FOREIGN",
    "asks_for_record",
    "is_small_talk",
    "last_request",
    "points_back",
    "read_situation",
    "recent_user_text",
    "refers_to_person",
]

FOREIGN = (
    "the query is not in English, German, Spanish, French or Chinese, which the rules read, so "
    "nothing is denied for its topic"
)
ADVICE = frozenset({"recommendation", "planning"})
"""The modes that ask for advice."""
# Not German `sie`, which is also how somebody is addressed.
_PRONOUN = re.compile(
    r"\b(?:she|hers?|he|him|his|they|them|theirs?|ihn|ihm|ihr|ella|ellas|ellos|elle|elles|lui|leur)\b|"
    r"[她他]",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？]\s{0,3}$|[吗呢]\s{0,3}。?\s{0,3}$|什么|哪里|哪儿|多少|几点|谁|何时")
_FOR_NAME = re.compile(
    r"(?:\b(?:for|to|give|buy|tell|advise|about|für|para|pour|à)|[给送为替]) ?"
    r"([A-ZÀ-Þ\u3400-\u9fff]\w+)"
)
_AND_ME = re.compile(
    r"\b(?:and|und|y|et) (?:me|i|myself|mich|ich|yo|moi)\b|"
    r"\b(?:me|mich|moi|us|uns) (?:and|und|et)\b"
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

    @classmethod
    def of(cls, words: Wordings) -> "_Cues":
        return cls(
            words.recommendation,
            words.planning,
            words.doing,
            words.view,
            words.self,
        )


_ENGLISH = _Cues(
    cues.RECOMMENDATION,
    cues.PLANNING,
    cues.DOING,
    cues.VIEW,
    cues.FIRST_PERSON,
)
_CUES = {language: _Cues.of(words) for language, words in WORDINGS.items()}


def read_situation(
    query: str,
    *,
    dialogue: Sequence[Turn] = (),
    user_names: frozenset[str] = frozenset(),
    persons: frozenset[str] = frozenset(),
) -> Situation | Inconclusive:
    """The situation of a query.

    The last question decides, or the last sentence if there is no question. If the query points
    back ("the situation we discussed"), the user's last turns in `dialogue` are read as well.
    `user_names` and `persons` are case-folded names of the user, and of others in the memories.

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
    if target == "world" and mode == "factual":
        target = _named_target(query, user_names=user_names, persons=persons)
    # Chinese and casual English write no capital letters that would matter.
    asks_view = words.view.search(query.casefold()) is not None
    lookup = read_lookup(
        query,
        is_question=mode not in ADVICE,
        is_task=words.doing.search(ask) is not None,
        of_user=bool(names_in(query, tuple(user_names)) & user_names),
    )
    # What the user thinks of a matter only the user can have told.
    if asks_view and lookup == "none" and words.self.search(query):
        lookup = "told_before"
    return Situation(target=target, mode=mode, asks_view=asks_view, lookup=lookup)


def recent_user_text(dialogue: Sequence[Turn]) -> str:
    """What the user said in the last four turns."""
    return " ".join(turn.content for turn in dialogue[-4:] if turn.role == "user")


def is_small_talk(query: str) -> bool:
    """Whether a query asks nothing: a greeting, thanks."""
    return is_greeting(query)


def asks_for_record(query: str) -> bool:
    """Whether a question is about an event or a time, which a record answers after its date."""
    return cues.ASKS_RECORD.search(query) is not None


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
    return "user" if mode in ADVICE or words.self.search(ask) else "world"


def _named_target(query: str, *, user_names: frozenset[str], persons: frozenset[str]) -> Target:
    """Whom a question of fact is about by name: "Which foods does Audrey like?"."""
    if names_in(query, tuple(user_names)) & user_names:
        return "user"
    return "third_party" if names_in(query, tuple(persons)) & persons else "world"


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


def refers_to_person(query: str) -> bool:
    """Whether a query has a pronoun for somebody whom an earlier turn names: "for her too?"."""
    return _PRONOUN.search(query) is not None
