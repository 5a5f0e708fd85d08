"""Reads what a memory claims: of whom, about what, with which values, and how it is meant."""

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import lru_cache

from memguard.local.adjudicator.cues import LABEL
from memguard.local.corrections.figures import chinese_number, figure, with_plain_figures
from memguard.local.corrections.lexicon import (
    CorrectionWords,
    concepts,
    folded,
    key_of_word,
    kinds,
    kinds_in_order,
    words_of,
)
from memguard.local.corrections.repeats import without_repeats
from memguard.local.event_times import ahead_in, cut_times
from memguard.local.languages import CHINESE, Language, language_of
from memguard.local.owners import UNKNOWN, USER, WORLD, owner_of
from memguard.local.owners.words import NAME_AND_WORD, NAMES, word_set
from memguard.normal_form import comparison_form

_TOKEN = re.compile(
    r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+|\d{1,2}th\b|\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['-][^\W\d_]+)*'?|[€$£%¥]"
)
_CONTRACTION = re.compile(r"(?:'(?:s|m|re|ve|d|ll))$")
_CANNOT = re.compile(r"\bcan(?:no|')t\b")
_NEGATIVE = re.compile(r"n't\b")
_SYMBOLS = {"€": "euro", "$": "dollar", "£": "pound", "¥": "yuan", "%": "percent"}
_BEGINNING = re.compile("(?:^|[.!?:])[\\s\"'\u201c\u201e\u00ab\u00bf\u00a1]{0,3}$")
_QUESTION = re.compile("[?\uff1f]\\s*$")
_QUOTATION = re.compile('["\u201c\u201e\u00ab\u300c].{3,400}["\u201d\u201c\u00bb\u300d]')
_PREPOSITIONS = word_set("""
    in at near from for with bei aus für mit im am en para con à chez pour avec au aux
""")
_HEADS = word_set("""
    a an the my our his her their of and or ein eine einen einem einer der die das den dem mein
    meine meinen meinem meiner und oder un una unos unas el la los las mi mis de y o une des le les
    du mon ma mes et ou l' d'
""")
_OF_SUBJECT = frozenset(["home", "job", "employer"])
_THING = re.compile(
    r"\b(?:my|our|the|mein\w{0,2}|unser\w{0,2}|der|die|das|mis?|nuestr\w{1,2}|el|la|mon|ma|mes|"
    r"notre|nos|le) [^\W\d_]"
)
_SPEAKER = re.compile(
    r"\b(?:i|we|user|ich|wir|nutzer(?:in)?|yo|nosotros|usuari[oa]|je|j'|nous|on|utilisat\w{3,5}|"
    r"he|me|nos|hemos)\b"
)
_GIVEN = {
    "doctor": frozenset({"mg", "dose"}),
    "landlord": frozenset({"rent"}),
    "boss": frozenset({"salary"}),
}
"""What somebody sets for the user, as a doctor the dose."""
_ME = re.compile(r"\b(?:me|mich)\b|\bm'|我")
_OF_ANOTHER = re.compile(
    r"'s\b|\b(?:his|her|their|own|sein\w{0,2}|ihr\w{0,2}|sus?|son|sa|ses|leurs?)\b|[他她]"
)
_SPOUSES = tuple(frozenset([key]) for key in ("married", "wife", "husband", "spouse"))
_CHILDREN = frozenset(["baby", "child", "son", "daughter"])
_PETS = frozenset(["dog", "cat", "pet", "horse", "rabbit", "bird"])
_CUT = ("ended", "now", "change", "also", "not")
_NOON = 12
_TENS = range(20, 100, 10)
_MIN_HEAD = 4
"""Letters of the first part of a German compound."""
_MIN_TAIL = 3
"""Letters of its last part."""
_LATIN: tuple[Language, ...] = ("en", "de", "es", "fr")
_LAST_LATIN = 0x24F
_FEW_WORDS = 5
_MUCH_MORE = 0.3
_MIN_SHARE = 0.6
"""Share of its words that a language must know to be that of a text."""
MAX_CHARS = 1_000
"""A longer text is only compared as a whole."""
_MAX_TOKENS = 60
_LAST_WORDS = 2
_MAX_CLAUSES = 8
_VALUE_WORDS = 4
"""Words of the longest value of an attribute."""


@dataclass(frozen=True, kw_only=True)
class ClaimText:
    """What a text claims, in keys that are the same for other words of the same meaning."""

    text: str
    """The text, without the label of its speaker."""
    language: Language
    """The language; nothing else is read of `other`."""
    owner: str = USER
    """Whom it is about; what is about nobody counts as the user's."""
    order: tuple[str, ...] = ()
    """The keys of its content, in order."""
    content: frozenset[str] = frozenset()
    """The keys of its content: concepts, words and numbers, without words of time."""
    times: tuple[str, ...] = ()
    """Its words of time."""
    flags: frozenset[str] = frozenset()
    """How it is meant."""
    denied: bool = False
    """Whether it has an odd number of negations, or says that something ended."""
    slots: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Values of attributes with one value at a time."""
    changes: tuple[tuple[frozenset[str], frozenset[str]], ...] = ()
    """Old and new values that it names as a change."""
    names: frozenset[str] = frozenset()
    """Keys of words with a capital letter that are no concepts."""
    governed: frozenset[str] = frozenset()
    """Keys of words right after a preposition."""
    headed: frozenset[str] = frozenset()
    """Keys of words right after a preposition, an article or a possessive: nouns."""
    is_joint: bool = False
    """Whether it joins clauses or values."""

    def without_soft(self, keys: AbstractSet[str]) -> frozenset[str]:
        """Some of its keys without those that say little."""
        soft = words_of(self.language).soft
        generic = kinds()["generic"]
        if self.language == "zh":
            hard = (key for key in keys if key in concepts() or not soft.issuperset(key))
        else:
            hard = (key for key in keys if key not in soft or key in self.names)
        return frozenset(key for key in hard if key not in generic)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numbers, in order."""
        return tuple(key for key in self.order if key.startswith("#"))


@lru_cache(maxsize=4096)
def read_claim(
    text: str, names: frozenset[str] = frozenset(), *, default: Language = "en"
) -> ClaimText:
    """Read a memory.

    Args:
        text: The memory.
        names: The names of the user, case-folded.
        default: The language of a text that is too short to tell.
    """
    written = comparison_form(text).replace("\u2019", "'").strip()
    language = _language(written, default)
    written = _without_label(written, language)
    if language == "other" or len(written) > MAX_CHARS:
        return ClaimText(text=written, language="other")
    owner = owner_of(text, user_names=names)
    claim = _Reader(written, language, names).claim(owner)
    given = claim.content & _GIVEN.get(owner, frozenset())
    is_moved = owner == "doctor" and claim.changes and _ME.search(written.lower())
    if (given or is_moved) and "change" in claim.flags and not _OF_ANOTHER.search(written.lower()):
        # "The doctor raised my dose" is about the dose.
        persons = claim.content & kinds()["person"]
        claim = replace(claim, content=claim.content - {owner})
        owner = USER if persons <= {owner} else owner
    is_own = owner in {USER, WORLD, UNKNOWN} or owner in names or owner in _PETS
    return replace(claim, owner=USER) if is_own or _names_relation(claim) else claim


def _names_relation(claim: ClaimText) -> bool:
    """Whether a claim says who is the user's boss, or when the user sees the dentist."""
    sets = kinds()
    rest = claim.content - sets["person"]
    is_name = bool(rest) and rest <= claim.names and not rest & claim.governed
    is_birth = "birth" in claim.content and claim.content & sets["person"] <= _CHILDREN
    is_own = bool(claim.content & (sets["event"] | {"nativelanguage"})) or is_birth
    return is_own or is_name


def _language(text: str, default: Language) -> Language:
    language = language_of(text, default=default)
    words = [hit[0] for hit in _TOKEN.finditer(text)]
    is_latin = all(ord(char) <= _LAST_LATIN for word in words for char in word)
    is_known = language != "other" and len(words) > _FEW_WORDS
    if is_known or not words or not is_latin:
        return language
    # A short sentence may share its words of grammar with another language.
    shares = {code: _share(words, code) for code in _LATIN}
    best = max(_LATIN, key=lambda code: (shares[code], code == language, code == default))
    if language == "other":
        return best if shares[best] >= _MIN_SHARE else language
    return best if shares[best] >= shares.get(language, 1.0) + _MUCH_MORE else language


def _share(words: list[str], language: Language) -> float:
    """Share of words that a language knows."""
    vocabulary = words_of(language)
    plain = [word.lower() for word in words[:1]]
    # Names are of no language.
    plain += [word for word in words[1:] if word.islower() or len(word) == 1]
    familiar = (
        word in vocabulary.light or key_of_word(word, language) in vocabulary.concepts
        for word in plain
    )
    return sum(familiar) / len(plain)


def _without_label(text: str, language: Language) -> str:
    """A text without the name of its speaker; "favourite colour: green" has none."""
    hit = LABEL.match(text)
    if hit is None or language == "other":
        return text
    label = _Reader(hit[1], language, frozenset()).claim(USER)
    # "The user:" has no content of its own.
    is_matter = any(key in concepts() for key in label.content)
    return text if is_matter or CHINESE.search(hit[1]) else text[hit.end() :]


def parts_of(claim: ClaimText, names: frozenset[str]) -> tuple[ClaimText, ...]:
    """The clauses of a text as claims of their own, without the cause; the text itself first."""
    if claim.language == "other":
        return (claim,)
    return (claim, *_clauses(claim.text, claim.language, claim.owner, names))


@lru_cache(maxsize=2048)
def _clauses(
    text: str, language: Language, owner: str, names: frozenset[str]
) -> tuple[ClaimText, ...]:
    words = words_of(language)
    plain = words.reason.sub("", text)
    pieces = dict.fromkeys(piece.strip() for piece in (plain, *words.joint.split(plain)))
    return tuple(
        _Reader(piece, language, names).claim(owner)
        for piece in list(pieces)[:_MAX_CLAUSES]
        if piece and piece != text
    )


class _Reader:
    """Reads one text of a language that has rules."""

    def __init__(self, written: str, language: Language, names: frozenset[str]) -> None:
        self._written = written
        self._language: Language = language
        self._names = names
        self._words: CorrectionWords = words_of(language)
        capitals = [hit for hit in _TOKEN.finditer(written) if hit[0][:1].isupper()]
        self._capitals = frozenset(folded(hit[0]) for hit in capitals)
        # A capital at the beginning tells nothing.
        inner = [hit for hit in capitals if not _BEGINNING.search(written, 0, hit.start())]
        self._inner_capitals = frozenset(folded(hit[0]) for hit in inner)

    def claim(self, owner: str) -> ClaimText:
        words = self._words
        plain = self._written.lower()
        for pattern, target in words.phrases:
            plain = pattern.sub(f" {target} ", plain)
        plain = _NEGATIVE.sub(" not", _CANNOT.sub("can not", plain))
        timeless, times = cut_times(plain, self._language)
        flags = self._flags(plain, timeless)
        slots = self._slots(timeless)
        negations = 0
        rest = timeless
        for name in _CUT:
            rest, count = words.flags[name].subn(" ", rest)
            negations += count if name in {"not", "ended"} else 0
        tokens = list(self._keys(rest))
        keys = [key for key, _ in tokens][:_MAX_TOKENS]
        governed = frozenset(key for key, before in tokens if before in _PREPOSITIONS)
        for status in ("retired", "unemployed"):
            if status in keys:
                slots["job"] = frozenset({status})
        content = without_repeats(frozenset(keys), slots)
        if "ended" in flags:
            negations = 1
        if "ended" in flags and self._words.kept.search(timeless):
            negations = 0
            flags = flags - {"ended"} | {"kept"}
        names = self._named(content)
        months = content & kinds()["month"]
        # "The wedding was moved to June", and "is in June".
        if len(months) == 1 and not times and content & kinds()["event"]:
            (month,) = months
            content, times = content - months, (f"m{kinds_in_order('month').index(month) + 1}",)
        if content == frozenset({"birth"}) and times:
            content = frozenset({"birthday"})
        # "My wife is Eva", and "I am married to Eva".
        if names and content - names in _SPOUSES:
            content = names | {"spouse"}
        driven = content - {"drive"}
        if "drive" in content and driven and driven <= names - governed:
            content = driven | {"car"}
        # Chinese has no tenses: "in 2012 I work at Nokia" is past.
        if self._language == "zh" and any(time[:1] == "y" for time in times):
            flags |= {"past"} if not flags & {"now", "change", "ended"} else set()
        return ClaimText(
            text=self._written,
            language=self._language,
            owner=owner,
            order=tuple(key for key in keys if key in content),
            content=content,
            times=times,
            flags=flags,
            denied=negations % 2 == 1,
            slots=slots,
            changes=self._changes(timeless),
            names=names,
            governed=governed,
            headed=governed | {key for key, before in tokens if before in _HEADS},
            is_joint=words.joint.search(rest) is not None,
        )

    def _named(self, content: frozenset[str]) -> frozenset[str]:
        """The keys that may be names: unknown words with a capital, or of Chinese."""
        if self._language == "zh":
            return frozenset(key for key in content if key not in concepts() and key[0] != "#")
        capitals = self._capitals - {folded(name) for name in self._names}
        inner = {key_of_word(word, self._language) for word in self._inner_capitals & capitals}
        # At the beginning, a word that says little is no name.
        first = {key_of_word(word, self._language) for word in capitals} - self._words.soft
        return content & (inner | first)

    def _flags(self, plain: str, timeless: str) -> frozenset[str]:
        flags = {
            name
            for name, pattern in self._words.flags.items()
            if name != "not" and pattern.search(plain if name == "temporary" else timeless)
        }
        if _QUESTION.search(plain):
            flags.add("unreal")
        if _QUOTATION.search(plain):
            flags.add("reported")
        if ahead_in(plain, self._language):
            flags.add("ahead")
        return frozenset(flags)

    def _slots(self, plain: str) -> dict[str, frozenset[str]]:
        slots: dict[str, frozenset[str]] = {}
        for name, pattern in self._words.slots.items():
            hit = pattern.search(plain)
            if hit is None or (name in _OF_SUBJECT and not self._is_own(plain[: hit.start()])):
                continue
            groups = hit.groupdict()
            written = next(groups[key] for key in "vwxy" if groups.get(key))
            value = self._value(written)
            topic = self._value(groups.get("of") or groups.get("of2") or "")
            if value and (name != "home" or self._is_place(written)):
                slots[" ".join((name, *sorted(topic)))] = value
        return slots

    def _is_own(self, before: str) -> bool:
        """Whether the user is the subject of what follows: "my office moved to Rome" is not."""
        clause = self._words.joint.split(before)[-1]
        if self._language == "zh":
            for name in _CUT:
                clause = self._words.flags[name].sub(" ", clause)
            return not any(True for _ in self._keys(clause))
        return _THING.search(clause) is None or _SPEAKER.search(clause) is not None

    def _is_place(self, written: str) -> bool:
        """Whether a value begins with a place or with a name: "in a small flat" is none."""
        first = next(self._keys(written), ("", ""))[0]
        sets = kinds()
        if first in sets["city"] | sets["region"]:
            return True
        if self._language == "zh":
            return first not in concepts()
        return first not in concepts() and any(
            key_of_word(word, self._language) == first for word in self._capitals
        )

    def _value(self, written: str) -> frozenset[str]:
        clipped = self._words.end.sub("", written)
        for name in _CUT:
            clipped = self._words.flags[name].sub(" ", clipped)
        return frozenset([key for key, _ in self._keys(clipped)][:_VALUE_WORDS])

    def _last(self, written: str) -> frozenset[str]:
        """The value at the end of a text: "I have swapped my Golf"."""
        keys = [key for key, _ in self._keys(written)]
        return frozenset(keys[-_LAST_WORDS:])

    def _changes(self, plain: str) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
        changes: list[tuple[frozenset[str], frozenset[str]]] = []
        for pattern in self._words.changes:
            hit = pattern.search(plain)
            if hit is not None:
                is_first = hit.start("old") < hit.start("new")
                old = self._value(hit["old"]) if hit.start("old") > hit.start() else None
                values = self._last(hit["old"]) if old is None else old, self._value(hit["new"])
                changes.append(values if is_first else (values[0], self._last(hit["new"])))
        return tuple((old, new) for old, new in changes if old and new and not old & new)

    def _keys(self, plain: str) -> Iterator[tuple[str, str]]:
        """The keys of the words with content, each with the word before it."""
        plain = with_plain_figures(plain)
        if self._language == "zh":
            yield from self._chinese(plain)
            return
        tokens = list(self._tokens(plain))
        keys = [key_of_word(token, self._language) for token in tokens]
        at = 0
        while at < len(tokens):
            before = tokens[at - 1] if at else ""
            length, concept = self._concept(keys, tokens, at)
            if concept:
                if concept not in kinds()["light"]:
                    yield concept, before
            elif (number := self._number(tokens, at)) is not None:
                value, length = number
                yield f"#{value}", before
            elif not self._is_light(tokens[at], keys[at], at):
                for key in self._compound(keys[at]):
                    yield key, before
            at += length

    def _tokens(self, plain: str) -> Iterator[str]:
        for hit in _TOKEN.finditer(plain):
            token = hit[0]
            if "'" in token:
                if self._language == "fr":
                    head, _, tail = token.partition("'")
                    yield from (part for part in (head + "'", tail) if part)
                    continue
                token = _CONTRACTION.sub("", token).strip("'")
            is_word = key_of_word(token, self._language) in self._words.concepts
            if "-" in token and not is_word and token not in self._words.numbers:
                yield from (part for part in token.split("-") if part)
            elif token:
                yield token

    def _concept(self, keys: list[str], tokens: list[str], at: int) -> tuple[int, str]:
        meanings = self._words.concepts
        for length in range(min(self._words.longest, len(keys) - at), 0, -1):
            # "Como" means "as" more often than it means "I eat".
            if length == 1:
                return 1, self._meaning(tokens[at], keys[at], at)
            concept = meanings.get(" ".join(keys[at : at + length]))
            if concept is not None:
                return length, concept
        return 1, ""

    def _meaning(self, token: str, key: str, at: int) -> str:
        """The concept of one word; empty for none."""
        words = self._words
        plain = folded(token)
        # Before the stem, since that of `hermano` is that of `hermana`.
        is_name = self._is_name(token, at)
        if token in words.exact or token in words.light:
            return words.exact.get(token, "")
        forms = [plain]
        if not is_name:
            forms += [token.removesuffix("s"), plain.removesuffix("s"), plain.removesuffix("es")]
        for form in forms:
            if form in words.folded:
                return words.folded[form]
        if is_name:
            return ""
        concept = words.concepts.get(key, "")
        # Names of days have no other forms: `Luna` is not `lunes`.
        is_day = concept in kinds()["weekday"] | kinds()["month"]
        return "" if is_day else concept or _SYMBOLS.get(token, "")

    def _is_name(self, token: str, at: int) -> bool:
        """Whether a word is a name, though its stem may be that of another word."""
        plain = folded(token)
        is_inside = at > 0 and len(token) > 1 and plain in self._inner_capitals
        is_first = plain in self._capitals and bool({token, plain} & (NAMES - NAME_AND_WORD))
        return self._language != "de" and (is_inside or is_first)

    def _number(self, tokens: list[str], at: int) -> tuple[str, int] | None:
        token = tokens[at]
        numbers = self._words.numbers
        time = self._time(tokens, at)
        if time or token[0].isdigit():
            return (time, 2) if time else (figure(token), 1)
        value = numbers.get(token)
        ordinal = self._words.ordinals.get(key_of_word(token, self._language))
        if value is None and ordinal is not None:
            return f"{ordinal}th", 1
        if value is None:
            return self._german_number(token)
        # "Thirty four", and "treinta y cuatro".
        rest = [word for word in tokens[at + 1 : at + 3] if word not in {"y", "et"}]
        unit = numbers.get(rest[0], 0) if rest else 0
        if value in _TENS and 0 < unit < min(_TENS) // 2:
            return str(value + unit), tokens.index(rest[0], at) - at + 1
        return str(value), 1

    def _time(self, tokens: list[str], at: int) -> str:
        """A time in two words, such as "seven thirty" or "halb acht"."""
        numbers = self._words.numbers
        values = [
            int(word) if word.isdecimal() and len(word) < _MIN_TAIL else numbers.get(word, -1)
            for word in tokens[at : at + 2]
        ]
        if self._language == "de" and tokens[at] == "halb" and len(values) > 1:
            return f"{(values[1] - 1) or _NOON}:30" if 0 < values[1] <= _NOON else ""
        is_time = len(values) > 1 and 0 < values[0] <= _NOON and values[1] in {15, 30}
        return f"{values[0]}:{values[1]}" if is_time and not tokens[at + 1].isdecimal() else ""

    def _german_number(self, token: str) -> tuple[str, int] | None:
        unit, joint, ten = token.partition("und")
        numbers = self._words.numbers
        if self._language == "de" and joint and ten in numbers:
            value = 1 if unit == "ein" else numbers.get(unit)
            return (str(numbers[ten] + value), 1) if value is not None else None
        return None

    def _is_light(self, token: str, key: str, at: int) -> bool:
        light = self._words.light
        if self._is_name(token, at):
            return token in self._names
        return token in light or key in light or token in self._names or folded(token) in light

    def _compound(self, key: str) -> Iterator[str]:
        """A German compound whose parts are concepts, or the word itself."""
        meanings = self._words.concepts
        if self._language == "de":
            for at in range(len(key) - _MIN_TAIL, _MIN_HEAD - 1, -1):
                tail = meanings.get(key[at:])
                head = self._head(key[:at]) if tail is not None else ""
                # A short ending may be a word by chance: "Abitur" is no tour.
                if tail is not None and (head in concepts() or len(key) - at > _MIN_TAIL):
                    yield head
                    yield tail
                    return
        yield key

    def _head(self, head: str) -> str:
        meanings = self._words.concepts
        shortened = key_of_word(head, "de")
        forms = (head, head.removesuffix("s"), shortened)
        return next((meanings[form] for form in forms if form in meanings), shortened)

    def _chinese(self, plain: str) -> Iterator[tuple[str, str]]:
        run = ""
        at = 0
        while at < len(plain):
            length, key = self._chinese_word(plain, at)
            if key is None and CHINESE.match(plain[at]):
                run += plain[at]
                at += 1
                continue
            if run:
                yield run, ""
                run = ""
            if key:
                yield key, ""
            at += length
        if run:
            yield run, ""

    def _chinese_word(self, plain: str, at: int) -> tuple[int, str | None]:
        """The length of what stands here with its key; the key is empty without content."""
        words = self._words
        for length in range(min(words.longest, len(plain) - at), 0, -1):
            concept = words.concepts.get(plain[at : at + length])
            if concept is not None:
                return length, "" if concept in kinds()["light"] else concept
        for length in (4, 3, 2, 1):
            if plain[at : at + length] in words.light:
                return length, ""
        number = chinese_number(plain, at)
        if number is not None:
            return number
        token = _TOKEN.match(plain, at)
        if token is not None and not CHINESE.match(plain[at]):
            latin = re.match(r"[^\u3400-\u9fff]+", token[0])
            word = latin[0] if latin else token[0]
            key = f"#{figure(word)}" if word[0].isdigit() else folded(word)
            return len(word), "" if word in self._names else key
        return 1, None if CHINESE.match(plain[at]) else ""
