"""What a query asks for, read from its words."""

import re

from memguard.local.verifier import lexicon
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
    """What kind of answer a request asks for: `time`, `place`, `person`, `number`, `reason`, or
    an empty string.
    """
    return next((kind for kind, pattern in _ASKED if pattern.search(request)), "")


def is_advice(request: str) -> bool:
    """Whether a request asks for advice, a plan or a product rather than for a fact."""
    return _ADVICE.search(request) is not None


_EVERYTHING = re.compile(
    r"\b(?:(?:what|all|everything|anything)(?: \w+){0,3} (?:you|do you) (?:know|remember)|"
    r"(?:list|show|tell me|summari[sz]e)(?: \w+){0,3} (?:everything|all|memories|profile)|"
    r"who am i|describe me|about me\b|"
    r"was (?:wei(?:ß|ss)t|merkst|hast) du(?: \w+){0,3} (?:über mich|gemerkt|gespeichert)|"
    r"alles,? was du|wer bin ich|"
    r"qué (?:sabes|recuerdas) (?:de|sobre) mí|todo lo que (?:sabes|recuerdas)|quién soy|"
    r"(?:que|qu'est-ce que tu) sais[- ](?:tu )?(?:de|sur) moi|tout ce que tu (?:sais|as)|qui suis-je)"
    r"|你(?:知道|记得|记住)(?:了)?(?:关于)?我|关于我的(?:一切|所有)|我是谁|所有记忆",
    re.IGNORECASE,
)
# A follow-up begins like this, or says hardly anything by itself.
_FOLLOW_UP = re.compile(
    r"^(?:and|but|so|then|or|what about|how about|und|aber|oder|wie wäre|y|pero|et|mais|那|那么|还有)"
    r"(?:\b|(?<=[那么有]))",
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
    words = {span.text.casefold() for span in split_words(text)}
    abroad = words & (_ABROAD | lexicon.ABROAD)
    english = words & (lexicon.STOP - _ABROAD - lexicon.ABROAD)
    return looks_foreign(text) or len(abroad) > len(english)


# Words of requests and of memories that are not English, in addition to `lexicon.ABROAD`.
_ABROAD = lexicon.word_set(
    "was wie wo wer wann warum welche welcher welches welchen ich du mir mich mein meine meinen "
    "meinem meiner soll kann könnte im zum zur nach schreib schreibe plane hilf finde empfiehl "
    "nutzer nutzerin kein keine qué cómo dónde cuándo quién cuál por mi mis me puedo debo al "
    "usuario usuaria tiene está para su sus muy que quoi comment où quand quel quelle quels "
    "quelles pourquoi je tu mon ma mes dois puis peux utilisateur utilisatrice aime du au aux "
    "pas ne très sa son ses ce cette"
) - lexicon.word_set("was me son her die")
