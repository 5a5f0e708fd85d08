"""What the words of a memory tell about its pieces, without a model and in several languages.

`kind_without_verdict` recognises safety constraints and preferences. These two kinds fail open
when an adjudicator failed (SPEC section 7), so words must tell them from the rest. The words lean
towards safety: a memory wrongly taken for a safety constraint is shown as context, but a missed
constraint is not shown at all. `problem_of` checks that the pieces of a memory lose, add and deny
none of its words.
"""

import hashlib
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache

from memguard.local.safety import looks_like_safety
from memguard.schema.units import Kind, Piece, Pieces, Unit

_PREFERENCE = re.compile(
    r"(?:\bprefer|favou?rite|\b(?:dis)?likes?\b|\bloves?\b|\bhates?\b|\benjoys?\b|"
    r"\bcan(?:'|no)t stand\b|\bwould rather\b|\binterested in\b|\bfan of\b|"
    r"bevorzug|\bmag\b|liebling|am liebsten|\bpréf[eè]r|\baime\b|\bdéteste\b|"
    r"\bprefiere|\ble (?:gusta|encanta)|\bodia\b|"
    r"喜欢|喜歡|偏好|好き|嫌い|предпочита|любит)",
    re.IGNORECASE,
)
# `n't` is a word by itself, so that `don't` has a negation. Scripts without spaces are split into
# characters, because nothing here knows their words.
_WORD = re.compile(
    r"n['\u2019]t\b|[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]|"
    r"(?:(?!n['\u2019]t\b)[^\W_\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f])+",
    re.IGNORECASE,
)
# Words that a piece may add or leave out: they carry no content.
_GLUE = frozenset(
    _WORD.findall("""
    a also although am an and any are as at be because been being both but by can could did do
    does doing for from had has have having he her hers herself him himself his how i if in
    into is it its itself me mine my myself of on onto or our ours s she so some such than
    that the their theirs them themselves then there these they this those through thus to too
    up user was we were what when where which while who whom whose why will with would you
    your yours person says said states reports mentioned der die das den dem des ein eine
    einen einem einer eines und oder aber weil dass ist sind war waren hat haben er sie es ihr
    sein seine seinen ihre ihren im auf zu zum zur von vom mit für als benutzer nutzer le la
    les un une du de et ou mais parce que qui est sont il elle son sa ses au aux dans pour
    avec utilisateur el los las una unos unas del y o pero porque su sus en por con usuario
    """)
)
# A split may repeat who thinks or says something. It weakens what follows, so a piece may add it,
# but a memory that has it may not lose it.
_ATTRIBUTIONS = frozenset(
    _WORD.findall("""
    believe believes believed believing think thinks thought thinking say saying tell tells told
    report reports reported claim claims claimed state stated assume assumes assumed consider
    considers considered feel feels felt hear hears heard mention mentions according opinion view
    glaubt glaube glauben meint meine denkt denke sagt sage sagte behauptet findet berichtet
    vermutet laut zufolge meinung ansicht
    cree creo creen piensa pienso dice digo dijo afirma opina considera según opinión cuenta
    croit crois pense pensent dit dis estime affirme trouve selon avis raconte d'après après
    """)
)
_SPACELESS_ATTRIBUTIONS = frozenset("认為为觉得說说称表示相信")
_SPACELESS_GLUE = frozenset("的了是和但因为他她它们用户这那在就也はがをにでとのもだ")
_NEGATIONS = frozenset(
    _WORD.findall("""
    not n't no never none nor neither nobody nothing without cannot nicht kein keine keinen
    keinem keiner nie niemals ohne pas jamais aucun aucune sans nunca ningún ninguna sin 不 没 沒
    無 非
    """)
)
_ENDINGS = ("'s", "ing", "ies", "ed", "es", "s", "e", "y")
_MIN_STEM = 3
REFUSED = "not split, because "
"""How the note on a memory begins whose pieces were refused."""
MAX_PIECES = 40
"""Maximum number of pieces of one memory."""
# A negation at most this many words before a word denies it.
_NEAR = 2


def kind_without_verdict(unit: Unit) -> Kind | None:
    """The kind of a unit from its words and its decomposition; `None` if neither tells.

    Safety comes first: the words of an allergy outweigh the kind that a decomposer gave.
    """
    if unit.kind == "safety" or looks_like_safety(unit.text):
        return "safety"
    if unit.kind is not None:
        return unit.kind
    return "preference" if looks_like_preference(unit.text) else None


def looks_like_preference(text: str) -> bool:
    """Whether a text has words of liking or disliking."""
    return _PREFERENCE.search(text) is not None


def pieces_key(text: str, *, fingerprint: str) -> str:
    """The cache key of a memory's pieces: the same for the same text and decomposer."""
    # A host may pass half of a surrogate pair, which UTF-8 alone refuses.
    source = f"{fingerprint}\x1f{text}".encode(errors="surrogatepass")
    return hashlib.sha256(source).hexdigest()[:32]


def whole(text: str, *, fingerprint: str = "", note: str = "") -> Pieces:
    """The memory as one piece without a kind; `note` says why it was not split."""
    piece = Piece(text=text, start=0, end=len(text))
    return Pieces(pieces=(piece,), fingerprint=fingerprint, note=note)


def with_span(piece: Piece, *, source: str) -> Piece:
    """The piece with its span in the memory `source`; without one if it is not there verbatim."""
    start = source.find(piece.text) if piece.text else -1
    span = (None, None) if start < 0 else (start, start + len(piece.text))
    return piece.model_copy(update={"start": span[0], "end": span[1]})


def problem_of(pieces: Sequence[Piece], *, source: str) -> str:
    """Why the pieces do not say what the memory `source` says; an empty string if they do."""
    if not pieces:
        return "no pieces"
    if len(pieces) > MAX_PIECES:
        return f"there are {len(pieces)} pieces, more than {MAX_PIECES}"
    if any(not _words(piece.text) for piece in pieces):
        return "a piece without words"
    # Read once: a memory may be long, and have many pieces.
    known, always_denied = set(_stems(source)), _always_denied(_words(source))
    for piece in pieces:
        if added := _first_unknown(piece.text, known):
            return f"a piece adds {added!r}"
        if denied := _drops_negation(piece.text, always_denied):
            return f"a piece drops the negation of {denied!r}"
    stems = {stem for piece in pieces for stem in _stems(piece.text)}
    lost = [word for word in _content(source) if _stem(word) not in stems]
    return f"{lost[0]!r} is in no piece" if lost else ""


def adds_words(text: str, *, source: str) -> str:
    """The first content word of a text that its source does not have; empty without one."""
    return _first_unknown(text, set(_stems(source)))


def _first_unknown(text: str, known: AbstractSet[str]) -> str:
    words = (word for word in _content(text) if not _is_attribution(word))
    return next((word for word in words if _stem(word) not in known), "")


def _is_attribution(word: str) -> bool:
    return word in _ATTRIBUTIONS or word in _SPACELESS_ATTRIBUTIONS


def _always_denied(words: Sequence[str]) -> frozenset[str]:
    """The stems that have a negation just before them wherever they are."""
    denied: set[str] = set()
    affirmed: set[str] = set()
    for index, word in enumerate(words):
        near = words[max(0, index - _NEAR) : index]
        (denied if _NEGATIONS.intersection(near) else affirmed).add(_stem(word))
    return frozenset(denied - affirmed)


def _drops_negation(text: str, denied: AbstractSet[str]) -> str:
    """A word that the source always denies, in a text that denies nothing; empty without one."""
    if not denied or any(word in _NEGATIONS for word in _words(text)):
        return ""
    return next((word for word in _content(text) if _stem(word) in denied), "")


def _content(text: str) -> list[str]:
    return [word for word in _words(text) if word not in _GLUE and word not in _SPACELESS_GLUE]


def _words(text: str) -> list[str]:
    return [word.replace("\u2019", "'") for word in _WORD.findall(text.casefold())]


def _stems(text: str) -> list[str]:
    return [_stem(word) for word in _content(text)]


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    """A word without a common ending, so that `likes` is `like`; all negations are `not`."""
    if word in _NEGATIONS:
        return "not"
    if any(char.isdigit() for char in word):
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            return word[: -len(ending)]
    return word
