"""Who or what takes a place that another left: "my dentist retired, Dr. Reyes treats me now"."""

import re
from dataclasses import replace

from memguard.local.corrections.claims import ClaimText, parts_of
from memguard.local.corrections.lexicon import key_of_word, kinds, words_of

_OPEN = frozenset({"unreal", "reported", "temporary", "past", "also"})
_MINE = re.compile(
    r"\b(?:i|me|my|we|our|us|ich|mich|mir|mein\w{0,2}|wir|uns|unser\w{0,2}|yo|mis?|nos|"
    r"nuestr\w{1,2}|je|moi|mon|ma|mes|nous|notre|nos|voy|vamos)\b|\bj'|\bm'|我|咱"
)
_THEIRS = re.compile(
    r"\b(?:he|she|they|his|her|their|er|sie|ihr\w{0,2}|sein\w{0,2}|él|ella|su|sus|il|elle|ils|"
    r"elles|son|sa|ses)\b|[他她]"
)
_SO = re.compile(r"\b(?:and )?so\b(?! that)|\bas[ií] que\b|所以")
_FRAU = re.compile(r"(?<!eine )\bFrau [A-ZÄÖÜ]")
_TITLE = re.compile(
    r"\b(?:dr|mr|mrs|ms|frau|herr|herrn|doctora?|docteure?|señora?|monsieur|madame)\b|老师|医生|大夫"
)
_TOGETHER = re.compile(r"\b(?:with|mit|con|avec)\b|[跟和]")
_USES = frozenset(["use", "drive", "buy", "go", "gym", "sport"])
_TITLES = frozenset(["doctor", "dr", "mr", "mrs", "ms", "frau", "herr", "manager"])


def is_succeeded(new: ClaimText, old: ClaimText, names: frozenset[str]) -> bool:
    """Whether a claim says that the holder of a place left, and who holds it now.

    `old` only says who holds the place; `names` are those of the user, case-folded.
    """
    sets = kinds()
    places = (old.content & sets["place"]) - (_TITLES if old.content & sets["role"] else set())
    holders = old.names - _TITLES - sets["place"]
    if len(places) != 1 or not holders or old.flags & _OPEN or old.denied:
        return False
    beside = sets["relational"] | sets["generic"] | _TITLES | {"with"}
    if old.content - holders - places - beside - new.content:
        return False
    if new.flags & _OPEN or not places <= new.content:
        return False
    titles = _TITLES | ({"wife"} if _FRAU.search(new.text) else set[str]())
    if (new.content & sets["person"]) - places - titles:
        return False
    # "So" tells the consequence here, which is what counts.
    _, *parts = parts_of(replace(new, text=_SO.sub(",", new.text)), names)
    known = old.content | _TITLES | {"retired", "work", "from", "takeplace"}
    named = False
    for at, part in enumerate(parts):
        # "My dentist, Dr. Hall, retired" has the name in a part of its own.
        named = named or bool(part.content & (holders | places))
        if named and _leaves(part, known):
            return any(_takes(other, holders, places) for other in parts[at + 1 :])
        named = named and not part.content - known
    return False


def _leaves(part: ClaimText, known: frozenset[str]) -> bool:
    """Whether a clause says that somebody left, and nothing else."""
    hit = words_of(part.language).leaving.search(part.text.lower())
    if hit is None:
        return False
    own = {key_of_word(word, part.language) for word in re.findall(r"[^\W\d_]+", hit[0])}
    return not part.content - known - own


def _takes(part: ClaimText, holders: frozenset[str], places: frozenset[str]) -> bool:
    """Whether a clause says who is there now."""
    text = part.text.lower()
    others = part.names - holders - _TITLES
    is_now = bool(part.flags & {"now", "change"}) and not part.denied and not part.slots
    is_place = bool(part.content & places)
    is_own = is_place or _MINE.search(text) is not None or part.language == "zh"
    # Without the place, a person has a title, and a thing a verb of use.
    is_person = bool(places & kinds()["role"] | places & _TITLES)
    is_used = part.content - others <= _USES and not part.governed & others - _at_a_place(part)
    is_such = _TITLE.search(text) is not None if is_person else is_used
    is_told = is_own and (is_place or is_such) and _THEIRS.search(text) is None
    return bool(others) and is_now and is_told


def _at_a_place(part: ClaimText) -> frozenset[str]:
    """The names of a clause, if it says where somebody goes."""
    is_way = "go" in part.content and _TOGETHER.search(part.text.lower()) is None
    return part.names if is_way else frozenset()
