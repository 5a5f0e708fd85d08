"""Reads the clauses of a text from left to right; see `split_clauses`."""

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

from memguard.local.owners.chinese import read_chinese
from memguard.local.owners.clause import UNKNOWN, USER, WORLD, Clause
from memguard.local.owners.words import (
    AGREEMENT,
    BARE,
    FEMALE,
    FEMALE_NAMES,
    GRAMMARS,
    HUMAN,
    LANGUAGE_WORDS,
    MALE,
    MALE_NAMES,
    NAME_AND_WORD,
    NAMES,
    OCCUPATIONS,
    RELATIONS,
    Grammar,
)

@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    low: str
    start: int
    end: int

    @property
    def is_word(self) -> bool:
        return self.text[0].isalnum()

    @property
    def is_capital(self) -> bool:
        return self.text[0].isupper()


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A noun phrase that may be a subject; `end` is the index of the token after it."""

    owner: str
    end: int
    kind: str
    """`first`, `second`, `third`, `person`, `people` or `it`."""
    also: tuple[str, ...] = ()
    name: str = ""
    has_verb: bool = False
    """Whether its last word contains the verb, as in `my wife's allergic`."""


@dataclass(slots=True)
class _Draft:
    """A clause whose end is not known yet; `first` is the index of its first token."""

    first: int
    subject: _Phrase | None = None
    subject_end: int = 0
    is_relative: bool = False


_WORD = (
    r"\d+(?:[.,:/]\d+)*|[^\W\d_]+(?:['\u2019\-][^\W\d_]+)*['\u2019]?|[.!?;:,\n\"\u201c\u201d\u201e"
    r"\u00ab\u00bb()\u2014\u2013\u2026]"
)
_TOKEN = re.compile(_WORD)
_ELIDED = re.compile(r"(?:[jldmtsnc]|qu)['\u2019]", re.IGNORECASE)
_TITLES = frozenset("mr mrs ms dr prof st vs no e.g i.e frau herr sr sra m mme".split())
_HAN = re.compile(r"[\u3400-\u9fff]")
_LABEL = re.compile(r"^[^\S\n]*([A-Z][\w'.\-]{0,30}(?: [A-Za-z][\w'.\-]{0,30})?): +", re.MULTILINE)
_GENERIC_LABELS = {"user": USER, "the user": USER, "assistant": "assistant"}
_PAUSES = frozenset(",:()\u2014\u2013\u2026")
_QUOTES = frozenset("\"\u201c\u201d\u201e\u00ab\u00bb")
_STOPS = frozenset(".!?;\n")
_SAME_OWNER = frozenset("it it's that that's this these there there's das es dies ça c'est c' eso".split())
# Between the verb and the end, these alone leave a clause without content: `Tomas doesn't, I do`.
_TAIL = frozenset("too either though as well also neither not auch nicht schon aussi sí no non oui si doch también tampoco".split())
_PRO_VERBS = frozenset(
    "do does did don't doesn't didn't am is isn't are aren't was wasn't can can't could couldn't "
    "have haven't has hasn't will won't would wouldn't do i'm m".split()
)
_NO_PAST = frozenset("café bebé también así aquí allí ahí porqué josé andré después".split())
_IS = frozenset("is isn't was are were wasn't am be been 's".split())
_STATE = frozenset(
    "a an the not very been being from in at also always never really so too just still called "
    "named allergic vegan vegetarian pregnant married single tall short happy sad sick ill afraid "
    "scared tired getting going coming moving working living only about my her his our".split()
)
_MAX_ADJECTIVES = 3
_MAX_DEPTH = 3
_MAX_BARE = 2
_MAX_THING = 7
"""Words between the first word of a thing and its verb."""
_OBLIQUE = frozenset("meiner meines meinem meinen unserer unseren unserem unseres".split())
_DEFINITE = frozenset("the both der die das el la los las le les l' this these".split())
# A single person of the speaker's, although the article is indefinite.
_INDEFINITE = frozenset(
    "friend colleague neighbour cousin classmate relative client roommate uncle aunt".split()
)
_HAVE = frozenset("have has had got habe hat hatte tengo tiene ai a have've".split())
_ANYBODY = frozenset("frau mann mujer femme fille hombre homme child children kid kids".split())
_CALENDAR = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may "
    "june july august september october november december christmas easter today tomorrow "
    "yesterday tonight nothing something everything".split()
)
_STRONG = frozenset(
    "lives lived told tells says said thinks thought hates hated prefers wants wanted eats drinks "
    "allergic pregnant divorced married engaged retired moved enjoys believes knows met asked "
    "invited visited graduated teaches speaks studied studies wohnt lebt arbeitet isst trinkt vive "
    "trabaja estudia dice bebe habite travaille mange déteste alérgico alérgica allergique".split()
)
_FRAGMENTS = frozenset(
    "love like hate prefer live work can't cannot don't never always enjoy got have am was want "
    "need just grew trying went going looking currently mostly proud vegan vegetarian".split()
)
_MY_FAVOURITE = re.compile(
    r"\b(?:my|our) (?:\w+ ){0,2}?(?:favou?rites?|passion|hobby|thing|dream|go-to|specialty)\b"
    r"|\b(?:suits?|makes?|annoys?|calms?|relaxes|bores?|scares?|fascinates?|helps?) (?:me|us)\b"
    r"|\b(?:mein|meine) \w{0,20}?(?:lieblings|hobby|leidenschaft)\w*"
    r"|\b(?:mon|ma|mes|mi|mis) (?:\w+ ){0,2}?(?:préféré|favorit|passion|pasión|hobby)\w*",
    re.IGNORECASE,
)


# Cached, because the judge reads the same turns for every candidate of a run.
@lru_cache(maxsize=1024)
def split(
    text: str, speaker: str, user_names: frozenset[str], listener: str
) -> tuple[Clause, ...]:
    clauses: list[Clause] = []
    aliases: dict[str, str] = {}
    for start, end, label in _passages(text, user_names):
        reader = _Reader(
            text=text,
            me=_normal(label or speaker, user_names),
            you=_normal(listener, user_names) if listener else UNKNOWN,
            user_names=user_names,
            aliases=aliases,
        )
        clauses += reader.read(start, end)
    return tuple(clauses)


def _normal(speaker: str, user_names: frozenset[str]) -> str:
    if not speaker or speaker in user_names:
        return USER
    return _GENERIC_LABELS.get(speaker, speaker)


def _passages(text: str, user_names: frozenset[str]) -> list[tuple[int, int, str]]:
    """Start, end and label of each part of the text that one speaker says."""
    hits = [
        hit
        for hit in _LABEL.finditer(text)
        if (label := hit[1].casefold()) in _GENERIC_LABELS
        or label in user_names
        or label.split()[0] in NAMES
    ]
    parts: list[tuple[int, int, str]] = []
    starts = [hit.start() for hit in hits]
    first = starts[0] if starts else len(text)
    if text[:first].strip():
        parts.append((0, first, ""))
    for hit, end in zip(hits, [*starts[1:], len(text)], strict=False):
        parts.append((hit.end(), end, hit[1].casefold()))
    return parts


def language_of(text: str) -> str:
    """`en`, `de`, `es`, `fr` or `zh`, by script and function words; `en` if nothing tells."""
    if _HAN.search(text):
        return "zh"
    return _language_of_words(frozenset(token.low for token in _tokens(text[:2000], "fr")))


@lru_cache(maxsize=512)
def _language_of_words(words: frozenset[str]) -> str:
    counts = {name: len(words & members) for name, members in LANGUAGE_WORDS.items()}
    best = max(counts.values())
    return next(name for name, count in counts.items() if count == best)


def _tokens(text: str, language: str, start: int = 0) -> list[_Token]:
    tokens: list[_Token] = []
    for hit in _TOKEN.finditer(text):
        begin, end = hit.span()
        # French elides: `j'habite` is two words.
        while language == "fr" and (prefix := _ELIDED.match(text, begin, end)):
            tokens.append(_token(text, begin, prefix.end(), start))
            begin = prefix.end()
            if begin == end:
                break
        if begin < end:
            tokens.append(_token(text, begin, end, start))
    return tokens


def _token(text: str, begin: int, end: int, shift: int) -> _Token:
    word = text[begin:end]
    return _Token(word, word.lower().replace("\u2019", "'"), begin + shift, end + shift)


@dataclass(slots=True)
class _Reader:
    """Reads what one speaker says, and remembers whom `she` may mean."""

    text: str
    me: str
    you: str
    user_names: frozenset[str]
    aliases: dict[str, str]
    language: str = "en"
    grammar: Grammar = GRAMMARS["en"]
    tokens: list[_Token] = field(default_factory=list[_Token])
    people: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Owners that were mentioned, the latest last, each with `m`, `f`, `p` or `x`."""
    clauses: list[Clause] = field(default_factory=list[Clause])

    def read(self, start: int, end: int) -> list[Clause]:
        passage = self.text[start:end]
        self.language = language_of(passage)
        if self.language == "zh":
            return read_chinese(self.text, start, end, me=self.me, you=self.you)
        self.grammar = GRAMMARS[self.language]
        self.tokens = _tokens(passage, self.language, start)
        first = 0
        for index, token in enumerate(self.tokens):
            if token.low in _STOPS and not self._goes_on(index):
                self._sentence(first, index)
                first = index + 1
        self._sentence(first, len(self.tokens))
        return self.clauses

    def _goes_on(self, index: int) -> bool:
        """Whether a full stop ends no sentence, as in `Dr. Weber`."""
        if self.tokens[index].text != "." or index == 0:
            return False
        before = self.tokens[index - 1]
        return before.end == self.tokens[index].start and (
            before.low in _TITLES or (len(before.text) == 1 and before.is_capital)
        )

    def _sentence(self, first: int, last: int) -> None:
        if any(token.is_word for token in self.tokens[first:last]):
            _Sentence(self, first, last).read()

    def owner_of_third(self, letter: str) -> str:
        """Whom `he` (`m`), `she` (`f`), `they` (`p`) or any of them (`x`) means."""
        for owner, gender in reversed(self.people):
            if "x" in {letter, gender} or gender == letter or letter == "p":
                return owner
        return UNKNOWN

    def mention(self, owner: str, gender: str) -> None:
        """Remember a person who may be meant by a pronoun."""
        if owner not in {UNKNOWN, WORLD}:
            self.people.append((owner, gender))
            del self.people[:-8]


def gender_of(owner: str) -> str:
    """`m`, `f` or `x` for an owner, by its relation or first name."""
    last = owner.rsplit("'s ", 1)[-1]
    if last in FEMALE or last in FEMALE_NAMES:
        return "f"
    return "m" if last in MALE or last in MALE_NAMES else "x"


@dataclass(slots=True)
class _Sentence:
    """Reads one sentence: the tokens from `first` up to `last`."""

    reader: _Reader
    first: int
    last: int
    drafts: list[_Draft] = field(default_factory=list[_Draft])
    main: _Phrase | None = None
    """The subject that is resumed after a relative clause."""
    latest: _Phrase | None = None
    """The person mentioned last, whom a relative pronoun means."""
    quoted: str = ""
    """Who spoke before a quotation began, while it lasts."""

    @property
    def _tokens(self) -> list[_Token]:
        return self.reader.tokens

    @property
    def _grammar(self) -> Grammar:
        return self.reader.grammar

    def _low(self, index: int) -> str:
        return self._tokens[index].low if self.first <= index < self.last else ""

    def _base(self, index: int) -> str:
        """The word without a contracted verb: `i'm` is `i`."""
        low = self._low(index)
        return low.split("'", 1)[0] if self.reader.language == "en" else low

    def read(self) -> None:
        """Split the sentence and add its clauses."""
        self.drafts = [_Draft(self.first)]
        index, border, at_border = self.first, self.first, True
        while index < self.last:
            token = self._tokens[index]
            low = token.low
            if low in _QUOTES:
                self._toggle_quotation()
            if low in _QUOTES or low in _PAUSES:
                if self.drafts[-1].is_relative and self._resumes(index + 1):
                    self._begin(index + 1, self.main, end=index + 1)
                border = border if at_border else index + 1
                at_border, index = True, index + 1
                continue
            if self._is_relative(index, at_border=at_border):
                index = self._begin_relative(index)
                at_border = False
                continue
            if self._is_break(index):
                border = border if at_border else index
                at_border, index = True, index + 1
                continue
            phrase = self._subject(index, at_border=at_border)
            if phrase is not None:
                self._place(phrase, index, border if at_border else index)
                index, at_border = phrase.end, False
                continue
            if at_border and low in self._grammar.fillers:
                index += 1
                continue
            index, at_border = index + 1, False
        self._finish()

    def _is_break(self, index: int) -> bool:
        low = self._low(index)
        if low not in self._grammar.breaks:
            return False
        # `as a nurse` and `wie ein` begin no clause, `as I said` does.
        return low not in {"as", "als", "wie", "como", "comme"} or index == self.first

    def _toggle_quotation(self) -> None:
        """Inside a quotation `I` is whoever was named before it."""
        if self.quoted:
            self.reader.me, self.quoted = self.quoted, ""
            return
        subject = self.drafts[-1].subject
        self.quoted = self.reader.me
        if subject is not None and subject.owner != self.reader.me:
            self.reader.me = subject.owner

    def _begin(self, first: int, subject: _Phrase | None, *, end: int) -> None:
        offset = self._tokens[end - 1].end if end > self.first else 0
        self.drafts.append(_Draft(first, subject, offset))

    def _place(self, phrase: _Phrase, index: int, border: int) -> None:
        """Make a phrase the subject of the current clause, or of a new one."""
        draft = self.drafts[-1]
        has_words = any(token.is_word for token in self._tokens[draft.first : border])
        new = draft.subject is not None or (border > draft.first and has_words and border != index)
        if new and border > draft.first:
            self._begin(border, phrase, end=phrase.end)
        elif draft.subject is None:
            draft.subject, draft.subject_end = phrase, self._tokens[phrase.end - 1].end
        if phrase.kind in {"person", "third"}:
            self.latest = phrase
        if not self.drafts[-1].is_relative:
            self.main = phrase

    # Relative clauses.

    def _is_relative(self, index: int, *, at_border: bool) -> bool:
        low = self._low(index)
        grammar = self._grammar
        if self.latest is None or index == self.first:
            return False
        near = self.latest.end in {index, index - 1}
        if low in grammar.relative and self.reader.language != "de":
            return near and (self.reader.language == "en" or self._low(index - 1) != "")
        if self.reader.language == "de" and low in grammar.relative:
            return near and at_border and self._low(index - 1) == ","
        return low == "that" and self.latest.end == index and self._is_verb(index + 1)

    def _begin_relative(self, index: int) -> int:
        antecedent = self.latest
        assert antecedent is not None
        end = index + 1
        subject = replace(antecedent, kind="third")
        if self._low(index) in {"whose", "dessen", "deren", "cuyo", "cuya"}:
            owned = self._relation_at(end, antecedent.owner)
            subject = owned or subject
            end = owned.end if owned else end
        if self.main is None:
            self.main = antecedent
        self._begin(index, subject, end=end)
        self.drafts[-1].is_relative = True
        return end

    def _resumes(self, index: int) -> bool:
        """Whether the main clause goes on after the comma that ends a relative clause."""
        if self.main is None:
            return False
        if self._low(index) in {"and", "und", "y", "et"}:
            return self.reader.language == "en" and self._is_verb(index + 1, loose=True)
        return self._is_verb(index) or self.reader.language != "en"

    # Noun phrases.

    def _subject(self, index: int, *, at_border: bool) -> _Phrase | None:
        """The subject that begins at a token, or `None`."""
        has_subject = self.drafts[-1].subject is not None
        before = self._low(index - 1)
        phrase = self._phrase(index, joins=at_border or not has_subject)
        if phrase is None:
            return self._thing(index) if at_border else None
        if phrase.kind == "person":
            self._remember(phrase)
        if before in self._grammar.prepositions and not (at_border and phrase.kind == "first"):
            return None
        follows_verb = phrase.has_verb or self._is_verb(phrase.end, loose=at_border)
        follows_verb |= before in _PRO_VERBS and self._low(index - 2) in {"so", "neither", "nor"}
        if phrase.kind == "first":
            return phrase
        if self.reader.language == "en":
            if phrase.kind == "third":
                return phrase
            if phrase.kind == "second":
                return phrase if at_border or not has_subject or follows_verb else None
            if before in self._grammar.articles or before in self._grammar.mine:
                return None
            ok = follows_verb or self._is_before_relative(phrase.end)
            ok |= at_border and self._is_gap(phrase.end, has_subject=has_subject)
            return phrase if ok and (at_border or not has_subject or follows_verb) else None
        # Verbs stand before and after subjects, so that position and case must do.
        if has_subject and not (at_border and self._has_more(phrase.end)):
            return None
        return phrase

    def _is_before_relative(self, index: int) -> bool:
        index += self._low(index) == ","
        return self._low(index) in self._grammar.relative and self.drafts[-1].subject is None

    def _remember(self, phrase: _Phrase) -> None:
        if phrase.owner == UNKNOWN:
            return
        self.latest = phrase
        self.reader.mention(phrase.owner, gender_of(phrase.name or phrase.owner))
        if phrase.name:
            self.reader.aliases[phrase.name] = phrase.owner

    def _is_gap(self, index: int, *, has_subject: bool) -> bool:
        """Whether the verb is left out: `I am from Porto, my wife from Lyon`, `Tomas too`."""
        low = self._low(index)
        if not low:
            return False
        if low in _TAIL:
            return True
        token = self._tokens[index]
        gap = low in self._grammar.prepositions or token.text[0].isdigit()
        return has_subject and gap and low not in self._grammar.of

    def _has_more(self, index: int) -> bool:
        """Whether words follow before the next pause or conjunction."""
        low = self._low(index)
        return bool(low) and low not in _PAUSES and low not in self._grammar.breaks

    def _is_verb(self, index: int, *, loose: bool = False) -> bool:
        """Whether a finite verb stands here, adverbs aside; `loose` takes any plain word for it."""
        for _ in range(3):
            low = self._low(index)
            if low not in self._grammar.fillers or low in self._grammar.auxiliaries:
                break
            index += 1
        low = self._low(index)
        if not low or not self._tokens[index].is_word:
            return False
        if low in self._grammar.auxiliaries or low in HUMAN or low.endswith(("n't", "'ll", "'d")):
            return True
        grammar = self._grammar
        closed = (
            low in grammar.prepositions or low in grammar.breaks or low in grammar.articles
            or low in grammar.mine or low in grammar.relative or low in grammar.theirs
        )  # fmt: skip
        if closed or self._tokens[index].is_capital or not low.isalpha():
            return False
        return loose or low.endswith("ed")

    def _phrase(self, index: int, *, joins: bool) -> _Phrase | None:
        """The noun phrase of a person that begins at a token; `joins` allows `my wife and I`."""
        simple = self._simple_phrase(index)
        if simple is None or simple.kind not in {"first", "person"}:
            return simple
        conjunction = self._low(simple.end)
        if not joins or conjunction not in {"and", "und", "y", "e", "et", "&"}:
            return simple
        other = self._simple_phrase(simple.end + 1)
        if other is None or other.kind not in {"first", "person", "third"}:
            return simple
        # `my wife and I are` is one subject; in `Ana is here and I left` a verb stands between.
        if not (self._is_verb(other.end, loose=True) or self.reader.language != "en"):
            return simple
        if simple.kind == "person":
            self._remember(simple)
        if self.reader.me == other.owner:
            return replace(other, also=(simple.owner,))
        return replace(simple, end=other.end, also=(other.owner,))

    def _simple_phrase(self, index: int) -> _Phrase | None:
        if index >= self.last or not self._tokens[index].is_word:
            return None
        pronoun = self._pronoun(index)
        if pronoun is not None:
            return pronoun
        grammar, low, base = self._grammar, self._low(index), self._base(index)
        if low in grammar.mine:
            return self._relation_at(index + 1, self.reader.me)
        if low in grammar.theirs:
            letter = grammar.theirs[low]
            return self._relation_at(index + 1, self.reader.owner_of_third(letter))
        if low in grammar.yours:
            return self._relation_at(index + 1, self.reader.you)
        if low in grammar.articles or low in grammar.user or low in grammar.people:
            return self._described(index)
        if base in BARE and low in RELATIONS[self.reader.language] | {base: ""}:
            return self._relation_at(index, self.reader.me)
        return self._named(index)

    def _pronoun(self, index: int) -> _Phrase | None:
        grammar, low, base = self._grammar, self._low(index), self._base(index)
        following = self._low(index + 1)
        if base in grammar.first and self._tokens[index].text != "US":
            if low in {"moi", "nous"} and index != self.first and self._low(index - 1) != ",":
                return None
            return _Phrase(self.reader.me, index + 1, "first")
        if low in grammar.dropped or self._is_dropped(low):
            before = self._low(index - 1)
            if before in grammar.articles or before in grammar.mine | {"de", "del", "su", "le"}:
                return None
            if low in {"gusta", "encanta", "llamo", "duele"} and before != "me":
                return None
            if low in {"como", "trabajo", "uso", "juego", "canto", "sé"} and before not in {
                "", ",", "no", "y", "yo", "pero", "que", "también", "siempre", "nunca", "me", "solo",
            }:  # fmt: skip
                return None
            return _Phrase(self.reader.me, index + 1, "first")
        if base in grammar.third and not (low in grammar.theirs and following.isalpha()):
            if self.reader.language == "de" and low == "sie" and self._tokens[index].is_capital:
                if index != self.first:
                    return _Phrase(self.reader.you, index + 1, "second")
            owner = self.reader.owner_of_third(grammar.third[base])
            return _Phrase(owner, index + 1, "third")
        if base in grammar.second and low not in grammar.theirs:
            return _Phrase(self.reader.you, index + 1, "second")
        return None

    def _is_dropped(self, low: str) -> bool:
        """Whether a Spanish word looks like a first person of the past: `compré`, `conocí`."""
        return (
            self.reader.language == "es"
            and len(low) > 3  # noqa: PLR2004 - shorter ones are `qué` and `así`
            and low.endswith(("é", "í"))
            and low not in _NO_PAST
        )

    def _root(self, index: int) -> tuple[str, str]:
        """A noun without its ending, and what the ending is: `'s` of a possessor, `is`, or none."""
        low = self._low(index)
        for ending in ("'s", "'"):
            if low.endswith(ending) and self.reader.language in {"en", "de"}:
                after = self._low(index + 1)
                state = after in _STATE or after in HUMAN or after.endswith("ing")
                return low.removesuffix(ending), "is" if state and ending == "'s" else "'s"
        return low, ""

    def _relation_at(self, index: int, base: str, *, depth: int = 0) -> _Phrase | None:
        """`wife`, `older sister`, `wife's brother`: a relation of `base`, within a few words."""
        table, grammar = RELATIONS[self.reader.language], self._grammar
        for at in range(index, index + _MAX_ADJECTIVES + 1):
            root, ending = self._root(at)
            if root in table:
                break
            low = self._low(at)
            closed = low in grammar.prepositions or low in grammar.breaks
            if closed or not low.isalpha() or low in grammar.auxiliaries:
                return None
        else:
            return None
        owner = _relation(table[root], base)
        if ending == "'s":
            if depth < _MAX_DEPTH and (inner := self._relation_at(at + 1, owner, depth=depth + 1)):
                return inner
            return _Phrase(owner, self._end_of_thing(at + 1), "person")
        possessor = self._possessor(at + 1) if base == self.reader.me else None
        if possessor is not None:
            owner = _relation(table[root], possessor.owner)
            return _Phrase(owner, possessor.end, "person", has_verb=ending == "is")
        name, end = self._apposition(at + 1)
        if self.reader.language == "en" and name.endswith("'s"):
            name = name.removesuffix("'s")
            end = self._end_of_thing(end)
        return _Phrase(owner, end, "person", name=name, has_verb=ending == "is")

    def _apposition(self, index: int) -> tuple[str, int]:
        """The name after a relation, as in `my sister Clara` or `my sister, Clara,`."""
        low = self._low(index)
        if low == "," and self._low(index + 2) in {",", ""}:
            name = self._low(index + 1)
            return (name, index + 3) if name in NAMES else ("", index)
        if not low or not self._tokens[index].is_capital or self._base(index) in self._grammar.first:
            return "", index
        if self.reader.language == "de" and low not in NAMES:
            return "", index
        end = index + 1
        if self._low(end) and self._tokens[end].is_capital and self._low(end) not in {"i", "i'm"}:
            end += 1
        return low, end

    def _possessor(self, index: int) -> _Phrase | None:
        """The owner in `of my wife`, `meiner Frau`, `de mi mujer`, `of mine`."""
        low, language = self._low(index), self.reader.language
        if low not in self._grammar.of and low not in {"des", "der"}:
            return None
        if language == "de" and low != "von":
            if low in {"des", "der"}:
                is_user = self._low(index + 1) in self._grammar.user
                return _Phrase(USER, index + 2, "person") if is_user else None
            base = self.reader.me if low[0] in "mu" else self.reader.owner_of_third("x")
            return self._relation_at(index + 1, base, depth=1)
        after = self._low(index + 1)
        if after in {"mine", "ours"}:
            return _Phrase(self.reader.me, index + 2, "person")
        skip = index + 2 if after in {"the", "l'", "el", "la", "le"} else index + 1
        if self._low(skip) in self._grammar.user:
            return _Phrase(USER, skip + 1, "person")
        if after in self._grammar.mine or after in _OBLIQUE:
            return self._relation_at(index + 2, self.reader.me, depth=1)
        if after in self._grammar.theirs:
            owner = self.reader.owner_of_third(self._grammar.theirs[after])
            return self._relation_at(index + 2, owner, depth=1)
        return self._named(index + 1) if after in NAMES else None

    def _end_of_thing(self, index: int) -> int:
        """The end of `car` or `old red car`, before its verb."""
        end = index
        while end < index + _MAX_ADJECTIVES and self._low(end) and self._tokens[end].is_word:
            if end > index and self._is_verb(end):
                break
            if self._low(end) in self._grammar.prepositions | self._grammar.breaks:
                break
            end += 1
        return end

    def _described(self, index: int) -> _Phrase | None:
        """`the user`, `a friend of mine`, `one of my colleagues`, `both my sons`, `everyone`."""
        grammar, low = self._grammar, self._low(index)
        if low in grammar.people:
            return _Phrase(WORLD, index + 1, "people")
        at = index if low in grammar.user else index + 1
        if self._low(at) in grammar.user:
            return self._user_at(at)
        after = self._low(at)
        if after in {"of", "von", "de", "des"} and self._low(at + 1) in grammar.mine | _OBLIQUE:
            return self._relation_at(at + 2, self.reader.me)
        if after in grammar.mine:
            return self._relation_at(at + 1, self.reader.me)
        phrase = self._relation_at(at, self.reader.me)
        if phrase is None:
            return None
        noun = self._low(phrase.end - 1)
        definite = low in _DEFINITE
        # `die Frau`, `la mujer` and `a dog` are anybody's, unless an owner follows.
        relation = phrase.owner.rsplit("'s ", 1)[-1]
        if low in grammar.articles and self._low(index - 1) in _HAVE:
            # `I have a sister`: related to whoever has one.
            subject = self.drafts[-1].subject
            return replace(phrase, owner=_relation(relation, subject.owner if subject else USER))
        anybody = noun in _ANYBODY and phrase.end == at + 1
        anybody |= not (definite or relation in _INDEFINITE)
        return replace(phrase, owner=UNKNOWN) if anybody else phrase

    def _user_at(self, index: int) -> _Phrase:
        root, ending = self._root(index)
        self.reader.mention(USER, "x")
        if ending == "'s" or root == "users'":
            owned = self._relation_at(index + 1, USER)
            return owned or _Phrase(USER, self._end_of_thing(index + 1), "person")
        return _Phrase(USER, index + 1, "person", has_verb=ending == "is")

    def _named(self, index: int) -> _Phrase | None:
        """A person's name, on evidence; a capital alone is none."""
        token = self._tokens[index] if index < self.last else None
        if token is None or not token.is_capital:
            return None
        root, ending = self._root(index)
        end = index + 1
        if root in {"mr", "mrs", "ms", "dr", "frau", "herr"} and self._low(end):
            end += self._low(end) == "."
            if not self._low(end) or not self._tokens[end].is_capital:
                return None
            root, ending = self._root(end)
            end += 1
        elif not self._is_name(index, root):
            return None
        elif not ending and self._low(end) and self._is_surname(end):
            end += 1
        owner = self.reader.aliases.get(root) or _normal(root, self.reader.user_names)
        if ending == "'s":
            owned = self._relation_at(end, owner)
            return owned or _Phrase(owner, self._end_of_thing(end), "person")
        related = self._relation_of_name(end)
        if related is not None:
            self.reader.aliases[root] = related.owner
            if self._low(end) == ",":
                end = related.end + (self._low(related.end) == ",")
            return _Phrase(related.owner, end, "person", name=root)
        return _Phrase(owner, end, "person", has_verb=ending == "is")

    def _relation_of_name(self, index: int) -> _Phrase | None:
        """The relation in `Clara, my sister,` and `Clara is my sister`."""
        low, grammar = self._low(index), self._grammar
        if low != "," and low not in _IS | {"ist", "es", "est", "war", "c'est"}:
            return None
        after = self._low(index + 1)
        if after in grammar.mine:
            phrase = self._relation_at(index + 2, self.reader.me)
        elif after in grammar.theirs:
            owner = self.reader.owner_of_third(grammar.theirs[after])
            phrase = self._relation_at(index + 2, owner)
        else:
            return None
        # In `Ana, my sister lives here` the relation is a subject of its own.
        if phrase is not None and low == "," and self._low(phrase.end) not in {",", "", "."}:
            return None
        return phrase

    def _is_surname(self, index: int) -> bool:
        token = self._tokens[index]
        adjacent = token.start == self._tokens[index - 1].end + 1
        plain = token.is_capital and token.is_word and self._base(index) not in self._grammar.first
        return adjacent and plain and self.reader.language != "de"

    def _is_name(self, index: int, root: str) -> bool:
        if root in self.reader.aliases or root in self.reader.user_names or root == self.reader.me:
            return True
        grammar = self._grammar
        if root in _CALENDAR or root in grammar.auxiliaries or root in grammar.fillers:
            return False
        if root in NAMES and root not in NAME_AND_WORD:
            return True
        if self.reader.language == "de" and root not in NAMES:
            return False
        if self._relation_of_name(index + 1) is not None:
            return True
        return self._acts_like_a_person(index + 1, known=root in NAMES)

    def _acts_like_a_person(self, index: int, *, known: bool) -> bool:
        """Whether a verb or a state follows that only persons have."""
        low, second, third = (self._low(index + step) for step in range(3))
        if low in _PRO_VERBS and second in {",", "", "but", "and"}:
            return True
        if low in {"works", "worked"}:
            return second in {"as", "at", "for", "in"}
        if low in _IS and second in {"a", "an"}:
            return third in OCCUPATIONS
        if low in _STRONG:
            return True
        words = {low, second, third} if low in self._grammar.auxiliaries else {low}
        return bool(words & (HUMAN if known else _STRONG))

    def _thing(self, index: int) -> _Phrase | None:
        """A subject that is not a person: `the kitchen is`, `my car is`, `it is`, `Python is`."""
        low, grammar = self._low(index), self._grammar
        if low in _SAME_OWNER and self._low(index + 1):
            return _Phrase(UNKNOWN, index + 1, "it")
        owner, kind = WORLD, "thing"
        if low in grammar.mine:
            owner = self.reader.me
        elif low in grammar.theirs:
            owner = self.reader.owner_of_third(grammar.theirs[low])
        elif low in grammar.yours:
            owner = self.reader.you
        elif not self._tokens[index].is_word or low in grammar.auxiliaries | grammar.prepositions:
            return None
        elif low in grammar.fillers or (
            self.reader.language != "en" and low not in grammar.articles
        ):
            return None
        for at in range(index + 1, min(index + _MAX_THING, self.last)):
            after = self._low(at)
            possessor = self._possessor(at) if after in grammar.of else None
            if possessor is not None:
                return _Phrase(possessor.owner, possessor.end, "person")
            if not self._tokens[at].is_word or after in grammar.breaks:
                return None
            if self._base(at) in grammar.first or self._base(at) in grammar.third:
                return None
            if after in grammar.auxiliaries and after not in grammar.fillers:
                return _Phrase(owner, at, kind)
        return None

    # Results.

    def _finish(self) -> None:
        if self.quoted:
            self.reader.me = self.quoted
        ends = [draft.first for draft in self.drafts[1:]]
        for draft, end in zip(self.drafts, [*ends, self.last], strict=True):
            words = [token for token in self._tokens[draft.first : end] if token.is_word]
            if words:
                self._add(draft, words)

    def _add(self, draft: _Draft, words: list[_Token]) -> None:
        start, end = words[0].start, words[-1].end
        text = self.reader.text[start:end]
        subject = draft.subject
        before = self.reader.clauses[-1] if self.reader.clauses else None
        subject_end = min(max(draft.subject_end, start), end)
        agrees = _agrees(text, self.reader.language)
        rest = [word.low for word in words if word.start >= subject_end]
        elided = subject is not None and bool(rest) and _says_nothing(rest)
        owner, is_carried = self._owner(subject, text, before)
        if owner == WORLD and _MY_FAVOURITE.search(text):
            owner = self.reader.me
        if agrees:
            owner = self.reader.me
        repeats = ""
        if (agrees or elided) and before is not None:
            repeats = before.repeats if before.is_elided else before.text
        self.reader.clauses.append(
            Clause(
                text=text,
                start=start,
                end=end,
                owner=owner,
                subject_end=subject_end,
                also=subject.also if subject else (),
                name=subject.name if subject else "",
                repeats=repeats,
                is_elided=agrees or elided,
                is_carried=is_carried,
            )
        )
        if subject is not None and subject.kind == "person":
            self.reader.mention(owner, gender_of(owner))

    def _owner(
        self, subject: _Phrase | None, text: str, before: Clause | None
    ) -> tuple[str, bool]:
        """The owner of a clause, and whether it is that of the clause before."""
        if subject is not None and subject.kind != "it":
            return subject.owner, False
        if subject is None:
            words = _words_of(text)
            if words & self._grammar.me or _MY_FAVOURITE.search(text):
                return self.reader.me, False
            if self.reader.language == "es" and self.reader.people:
                return self.reader.people[-1][0], True
            if before is None and self.reader.language == "en":
                return self._without_subject(text), False
            # German and French sentences have a subject, and this one's is not a person.
            if before is None and self.reader.language in {"de", "fr"} and len(words) > _MAX_BARE:
                return WORLD, False
        # `My wife got a job. It is at a clinic.`: still about the wife.
        if before is None:
            return UNKNOWN, False
        loose = subject is None and before.owner != self.reader.me
        return (UNKNOWN if loose and self._is_sentence_start(text) else before.owner), True

    def _is_sentence_start(self, text: str) -> bool:
        first = next(token for token in self._tokens[self.first :] if token.is_word)
        return self.reader.text.startswith(text, first.start)

    def _without_subject(self, text: str) -> str:
        """The owner of a fragment: `Allergic to nuts` is the speaker's, `Jazz relaxes` nobody's."""
        first = text.split(maxsplit=1)[0].lower()
        if first in _FRAGMENTS or first in HUMAN:
            return self.reader.me
        tail = text.split()[1:]
        verbs = self._grammar.auxiliaries
        has_verb = any(word.lower() in verbs or word.endswith("s") for word in tail)
        return WORLD if has_verb else UNKNOWN


def _relation(relation: str, base: str) -> str:
    if base == USER:
        return relation
    return UNKNOWN if base in {UNKNOWN, WORLD} else f"{base}'s {relation}"


def _says_nothing(rest: list[str]) -> bool:
    return all(word in _PRO_VERBS or word in _TAIL for word in rest)


def _agrees(text: str, language: str) -> bool:
    form = " ".join(_TOKEN.findall(text.lower().replace("\u2019", "'"))[:8])
    form = form.removeprefix("yes , ").removeprefix("and ").removeprefix("oh , ")
    return any(form == phrase or form.startswith(phrase + " ") for phrase in AGREEMENT[language])


def _words_of(text: str) -> frozenset[str]:
    return frozenset(_TOKEN.findall(text.lower()))
