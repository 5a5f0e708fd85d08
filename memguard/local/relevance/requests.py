"""What a query asks for, read from its words."""

import re

from memguard.local.languages import language_of
from memguard.local.verifier.words import looks_foreign, split_words

# `?` and full stops of Chinese and Japanese too.
_SENTENCE = re.compile("[^.!?\n\u3002\uff01\uff1f]+[.!?\u3002\uff01\uff1f]*")
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
    questions = [sentence for sentence in sentences if sentence.endswith(("?", "\uff1f"))]
    return (questions or sentences or [query.strip()])[-1]


def points_back(query: str) -> bool:
    """Whether a query refers to what was said before: "the situation we discussed"."""
    return _POINTING.search(query) is not None


_ASKED: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "time",
        re.compile(
            r"\b(?:when|what (?:date|day|month|year|time)|how long|how often)\b", re.IGNORECASE
        ),
    ),
    (
        "place",
        re.compile(
            r"\b(?:where|which (?:city|country|place|town)|what (?:city|country))\b", re.IGNORECASE
        ),
    ),
    ("person", re.compile(r"\b(?:who|whom|whose)\b", re.IGNORECASE)),
    ("number", re.compile(r"\bhow (?:many|much|old|tall|far)\b", re.IGNORECASE)),
    (
        "reason",
        re.compile(r"\b(?:why|what (?:inspired|motivated|made|caused)|how come)\b", re.IGNORECASE),
    ),
)
_ADVICE = re.compile(
    r"\b(?:recommend|suggest|advice|advise|ideas?|should i|could i|can i|what can|where can|plan|"
    r"help me|find me|looking for|choose|pick|best|good|write|draft|prepare|organi[sz]e|cook|"
    r"make|book|buy|gift|present)\b",
    re.IGNORECASE,
)


def asks_about(request: str) -> str:
    """What a request asks for: `time`, `place`, `person`, `number`, `reason`; else empty."""
    return next((kind for kind, pattern in _ASKED if pattern.search(request)), "")


def is_advice(request: str) -> bool:
    """Whether a request asks for advice, a plan or a product rather than for a fact."""
    return _ADVICE.search(request) is not None


_EVERYTHING = re.compile(
    r"\byou (?:know|remember|have stored)(?: about (?:me|us))?[\s.?!]*$|"
    r"\b(?:list|show|tell me|summari[sz]e)(?: \w+){0,3} (?:everything|memories|my profile)|"
    r"\b(?:who am i|describe me|tell me about (?:me|myself))\b|"
    r"\bdu(?: \w+){0,3} über mich|\bdu dir(?: \w+){0,3} gemerkt|\balles,? was du|\bwer bin ich\b|"
    r"\b(?:sabes|recuerdas)(?: \w+){0,2} (?:de|sobre) mí|\btodo lo que (?:sabes|recuerdas)|"
    r"\bquién soy\b|\b(?:sais|retenu)(?: \w+){0,2} (?:de|sur) moi|\btout ce que tu (?:sais|as)|"
    r"\bqui suis-je\b|你(?:知道|记得|记住)了?(?:关于)?我|关于我的(?:一切|所有)|我是谁|所有记忆",
    re.IGNORECASE,
)
# A follow-up begins like this, or says hardly anything by itself.
_FOLLOW_UP = re.compile(
    r"(?:and|but|so|then|or|what about|how about|und|aber|oder|wie wäre|y|pero|et|mais)\b|"
    r"那么?|还有",
    re.IGNORECASE,
)
_FEW_WORDS = 3


def asks_for_everything(query: str) -> bool:
    """Whether a query asks for all that is remembered: "What do you know about me?"."""
    return _EVERYTHING.search(query) is not None


def continues(query: str) -> bool:
    """Whether a query can be understood only with the turns before it."""
    short = len(split_words(query)) <= _FEW_WORDS
    return short or points_back(query) or _FOLLOW_UP.match(query.strip()) is not None


def is_foreign(text: str) -> bool:
    """Whether a text does not seem to be English."""
    return language_of(text, unknown="en") != "en" or looks_foreign(text)
