"""What a query asks for, read from its words."""

import re

# `?` and full stops of Chinese and Japanese too.
_SENTENCE = re.compile(r"[^.!?\n。！？]+[.!?。！？]*")
_POINTING = re.compile(
    r"\b(?:we (?:discussed|talked about|spoke about)|as (?:discussed|above|before|mentioned)|"
    r"(?:my|the) last (?:message|question)|earlier|wie besprochen|wie vorhin|vorhin|oben erwähnt|"
    r"como (?:hablamos|dijimos|antes)|lo que hablamos|comme (?:discuté|convenu|avant)|"
    r"dont on a parlé)\b|刚才|刚刚|之前说的|上面",
    re.IGNORECASE,
)


def last_request(query: str) -> str:
    """The last question of a query, or its last sentence if there is no question."""
    sentences = [hit[0].strip() for hit in _SENTENCE.finditer(query) if hit[0].strip()]
    questions = [sentence for sentence in sentences if sentence.endswith(("?", "？"))]
    return (questions or sentences or [query.strip()])[-1]


def points_back(query: str) -> bool:
    """Whether a query refers to what was said before: "the situation we discussed"."""
    return _POINTING.search(query) is not None
