"""Noun phrases that name a person: pronouns, relations, names, and chains of them."""

from dataclasses import dataclass, field, replace

from memguard.local.owners.clause import UNKNOWN, USER, WORLD, Clause
from memguard.local.owners.tokens import Token
from memguard.local.owners.words import (
    BARE,
    FEMALE,
    FEMALE_NAMES,
    GRAMMARS,
    HUMAN,
    MALE,
    MALE_NAMES,
    NAME_AND_WORD,
    NAMES,
    OCCUPATIONS,
    RELATIONS,
    WordClasses,
    word_set,
)

# Spanish verbs that need `me`, and those that are nouns or conjunctions as well.
_WITH_ME = word_set("gusta encanta llamo duele")
_NOUN_AND_VERB = word_set("como trabajo uso juego canto sé")
_BEFORE_VERB = word_set(", no y yo pero que también siempre nunca me solo") | {""}
_NOT_BEFORE_VERB = word_set("de del su le")
_NOT_VERBS = word_set("todo mucho poco tanto otro solo sólo cuando pero ambos no yo")
_NO_PAST = word_set("café bebé también así aquí allí ahí porqué josé andré después")
_IS = word_set("is isn't was are were wasn't am be been 's")
_STATE = word_set(
    "a an the not very been being from in at also always never really so too just still called "
    "named allergic vegan vegetarian pregnant married single tall short happy sad sick ill afraid "
    "scared tired getting going coming moving working living only about my her his our"
)
_MAX_ADJECTIVES = 3
_MAX_DEPTH = 3
_OBLIQUE = word_set("meiner meines meinem meinen unserer unseren unserem unseres")
_DEFINITE = word_set("the both der die das el la los las le les l' this these")
# A single person of the speaker's, although the article is indefinite.
_INDEFINITE = word_set(
    "friend colleague neighbour cousin classmate relative client roommate uncle aunt"
)
_HAVE = word_set("have has had got habe hat hatte tengo tiene ai a have've")
_ANYBODY = word_set("frau mann mujer femme fille hombre homme")
_CALENDAR = word_set(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may "
    "june july august september october november december christmas easter today tomorrow "
    "yesterday tonight nothing something everything"
)
_STRONG = word_set(
    "lives lived told tells says said thinks thought hates hated prefers wants wanted eats drinks "
    "allergic pregnant divorced married engaged retired moved enjoys believes knows met asked "
    "invited visited graduated teaches speaks studied studies wohnt lebt arbeitet isst trinkt vive "
    "trabaja estudia dice bebe habite travaille mange déteste alérgico alérgica allergique"
)
GENERIC_LABELS = {"user": USER, "the user": USER, "assistant": "assistant"}
PRO_VERBS = word_set(
    "do does did don't doesn't didn't am is isn't are aren't was wasn't can can't could couldn't "
    "have haven't has hasn't will won't would wouldn't do i'm m"
)


@dataclass(frozen=True, slots=True)
class Phrase:
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
class Speech:
    """Reads what one speaker says, and remembers whom `she` may mean."""

    text: str
    me: str
    you: str
    user_names: frozenset[str]
    aliases: dict[str, str]
    language: str = "en"
    grammar: WordClasses = GRAMMARS["en"]
    tokens: list[Token] = field(default_factory=list[Token])
    people: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Owners that were mentioned, the latest last, each with `m`, `f`, `p` or `x`."""
    clauses: list[Clause] = field(default_factory=list[Clause])
    relation: str = ""
    """The relation named last, which `mine` may mean."""

    def owner_of_third(self, letter: str) -> str:
        """Whom `he` (`m`), `she` (`f`), `they` (`p`) or any of them (`x`) means."""
        for owner, gender in reversed(self.people):
            if "x" in {letter, gender} or letter in {gender, "p"}:
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


def relation_of(relation: str, base: str) -> str:
    """The owner that is this relation of `base`: the user's `wife`, or `ana's wife`."""
    if base == USER:
        return relation
    return UNKNOWN if base in {UNKNOWN, WORLD} else f"{base}'s {relation}"


def normal(speaker: str, user_names: frozenset[str]) -> str:
    """The owner that a speaker's name means; no name is the user."""
    if not speaker or speaker in user_names:
        return USER
    return GENERIC_LABELS.get(speaker, speaker)


@dataclass(slots=True)
class PhraseReader:
    """Reads the noun phrases of one sentence: the tokens from `first` up to `last`."""

    speech: Speech
    first: int
    last: int
    subject: Phrase | None = None
    """The subject of the current clause."""
    latest: Phrase | None = None
    """The person mentioned last, whom a relative pronoun means."""

    @property
    def tokens(self) -> list[Token]:
        """The tokens of the whole passage."""
        return self.speech.tokens

    @property
    def grammar(self) -> WordClasses:
        """The word classes of the passage's language."""
        return self.speech.grammar

    def low(self, index: int) -> str:
        """A token in small letters; empty outside of the sentence."""
        return self.tokens[index].low if self.first <= index < self.last else ""

    def base(self, index: int) -> str:
        """The word without a contracted verb: `i'm` is `i`."""
        low = self.low(index)
        return low.split("'", 1)[0] if self.speech.language == "en" else low

    def is_verb(self, index: int, *, loose: bool = False) -> bool:
        """Whether a finite verb stands here, adverbs aside; `loose` takes any plain word for it."""
        for _ in range(3):
            low = self.low(index)
            if low not in self.grammar.fillers or low in self.grammar.auxiliaries:
                break
            index += 1
        low = self.low(index)
        if not low or not self.tokens[index].is_word:
            return False
        if low in self.grammar.auxiliaries or low in HUMAN or low.endswith(("n't", "'ll", "'d")):
            return True
        grammar = self.grammar
        closed = (
            low in grammar.prepositions or low in grammar.breaks or low in grammar.articles
            or low in grammar.mine or low in grammar.relative or low in grammar.theirs
        )  # fmt: skip
        if closed or self.tokens[index].is_capital or not low.isalpha():
            return False
        return loose or low.endswith("ed")

    def phrase(self, index: int, *, joins: bool) -> Phrase | None:
        """The noun phrase of a person that begins at a token; `joins` allows `my wife and I`."""
        simple = self.simple_phrase(index)
        if simple is None or simple.kind not in {"first", "person"}:
            return simple
        conjunction = self.low(simple.end)
        if not joins or conjunction not in {"and", "und", "y", "e", "et", "&"}:
            return simple
        other = self.simple_phrase(simple.end + 1)
        if other is None or other.kind not in {"first", "person", "third"}:
            return simple
        # `my wife and I are` is one subject; in `Ana is here and I left` a verb stands between.
        if not (self.is_verb(other.end, loose=True) or self.speech.language != "en"):
            return simple
        if simple.kind == "person":
            self.remember(simple)
        if self.speech.me == other.owner:
            return replace(other, also=(simple.owner,))
        return replace(simple, end=other.end, also=(other.owner,))

    def simple_phrase(self, index: int) -> Phrase | None:  # noqa: PLR0911 - one case each
        """The noun phrase of a single person that begins at a token."""
        if index >= self.last or not self.tokens[index].is_word:
            return None
        pronoun = self._pronoun(index)
        if pronoun is not None:
            return pronoun
        grammar, low, base = self.grammar, self.low(index), self.base(index)
        if low in grammar.mine:
            return self.relation_at(index + 1, self.speech.me)
        if low == "mine" and self.speech.relation and self.is_verb(index + 1, loose=True):
            return Phrase(relation_of(self.speech.relation, self.speech.me), index + 1, "person")
        if low in grammar.theirs:
            letter = grammar.theirs[low]
            return self.relation_at(index + 1, self.speech.owner_of_third(letter))
        if low in grammar.yours:
            return self.relation_at(index + 1, self.speech.you)
        if low in grammar.articles or low in grammar.user or low in grammar.people:
            return self._described(index)
        if base in BARE and low in RELATIONS[self.speech.language] | {base: ""}:
            return self.relation_at(index, self.speech.me)
        return self.named(index)

    def _pronoun(self, index: int) -> Phrase | None:  # noqa: PLR0911 - one case each
        grammar, low, base = self.grammar, self.low(index), self.base(index)
        following = self.low(index + 1)
        if base in grammar.first and self.tokens[index].text != "US":
            if low in {"moi", "nous"} and index != self.first and self.low(index - 1) != ",":
                return None
            return Phrase(self.speech.me, index + 1, "first")
        negated = self.low(index - 1) == "no" and low.endswith("o") and low not in _NOT_VERBS
        if (
            low in grammar.dropped
            or self._is_dropped(low)
            or (negated and self.speech.language == "es")
        ):
            verb = self._is_first_person_verb(index)
            return Phrase(self.speech.me, index + 1, "first") if verb else None
        if base in grammar.third and not (low in grammar.theirs and following.isalpha()):
            capital = self.tokens[index].is_capital and index != self.first
            if self.speech.language == "de" and low == "sie" and capital:
                return Phrase(self.speech.you, index + 1, "second")
            owner = self.speech.owner_of_third(grammar.third[base])
            return Phrase(owner, index + 1, "third")
        if base in grammar.second and low not in grammar.theirs:
            return Phrase(self.speech.you, index + 1, "second")
        return None

    def _is_first_person_verb(self, index: int) -> bool:
        """Whether a Spanish word is a verb here: `trabajo aquí`, but not `mi trabajo`."""
        low, before = self.low(index), self.low(index - 1)
        if before in self.grammar.articles or before in self.grammar.mine | _NOT_BEFORE_VERB:
            return False
        if low in _WITH_ME:
            return before == "me"
        return low not in _NOUN_AND_VERB or before in _BEFORE_VERB

    def _is_dropped(self, low: str) -> bool:
        """Whether a Spanish word looks like a first person of the past: `compré`, `conocí`."""
        return (
            self.speech.language == "es"
            and len(low) > 3  # noqa: PLR2004 - shorter ones are `qué` and `así`
            and low.endswith(("é", "í"))
            and low not in _NO_PAST
        )

    def _root(self, index: int) -> tuple[str, str]:
        """A noun without its ending, and what the ending is: `'s` of a possessor, `is`, or none."""
        low = self.low(index)
        for ending in ("'s", "'"):
            if low.endswith(ending) and self.speech.language in {"en", "de"}:
                after = self.low(index + 1)
                state = after in _STATE or after in HUMAN or after.endswith("ing")
                state &= after not in RELATIONS[self.speech.language]
                return low.removesuffix(ending), "is" if state and ending == "'s" else "'s"
        return low, ""

    def relation_at(self, index: int, base: str, *, depth: int = 0) -> Phrase | None:
        """`wife`, `older sister`, `wife's brother`: a relation of `base`, within a few words."""
        table, grammar = RELATIONS[self.speech.language], self.grammar
        for at in range(index, index + _MAX_ADJECTIVES + 1):
            root, ending = self._root(at)
            if root in table:
                break
            low = self.low(at)
            closed = low in grammar.prepositions or low in grammar.breaks
            if closed or not low.isalpha() or low in grammar.auxiliaries:
                return None
        else:
            return None
        owner = relation_of(table[root], base)
        self.speech.relation = table[root]
        if ending == "'s":
            if depth < _MAX_DEPTH and (inner := self.relation_at(at + 1, owner, depth=depth + 1)):
                return inner
            return Phrase(owner, self._end_of_thing(at + 1), "person")
        possessor = self.possessor(at + 1) if base == self.speech.me else None
        if possessor is not None:
            owner = relation_of(table[root], possessor.owner)
            return Phrase(owner, possessor.end, "person", has_verb=ending == "is")
        name, end = self._apposition(at + 1)
        if self.speech.language == "en" and name.endswith("'s"):
            name = name.removesuffix("'s")
            end = self._end_of_thing(end)
        return Phrase(owner, end, "person", name=name, has_verb=ending == "is")

    def _apposition(self, index: int) -> tuple[str, int]:
        """The name after a relation, as in `my sister Clara` or `my sister, Clara,`."""
        low = self.low(index)
        if low == "," and self.low(index + 2) in {",", ""}:
            name = self.low(index + 1)
            is_name = name in NAMES or (
                self.speech.language != "de"
                and name.isalpha()
                and self.tokens[index + 1].is_capital
                and name not in _CALENDAR
                and self.base(index + 1) not in self.grammar.first
            )
            return (name, index + 3) if is_name else ("", index)
        if not low or not self.tokens[index].is_capital or self.base(index) in self.grammar.first:
            return "", index
        if self.speech.language == "de" and low not in NAMES:
            return "", index
        end = index + 1
        if self.low(end) and self.tokens[end].is_capital and self.low(end) not in {"i", "i'm"}:
            end += 1
        return low, end

    def possessor(self, index: int) -> Phrase | None:  # noqa: PLR0911 - one case each
        """The owner in `of my wife`, `meiner Frau`, `de mi mujer`, `of mine`."""
        low, language = self.low(index), self.speech.language
        if low not in self.grammar.of and low not in {"des", "der"}:
            return None
        if language == "de" and low != "von":
            if low in {"des", "der"}:
                is_user = self.low(index + 1) in self.grammar.user
                return Phrase(USER, index + 2, "person") if is_user else None
            base = self.speech.me if low[0] in "mu" else self.speech.owner_of_third("x")
            return self.relation_at(index + 1, base, depth=1)
        after = self.low(index + 1)
        if after in {"mine", "ours"}:
            return Phrase(self.speech.me, index + 2, "person")
        skip = index + 2 if after in {"the", "l'", "el", "la", "le"} else index + 1
        if self.low(skip) in self.grammar.user:
            return self._user_at(skip)
        if after in self.grammar.mine or after in _OBLIQUE:
            return self.relation_at(index + 2, self.speech.me, depth=1)
        if after in self.grammar.theirs:
            owner = self.speech.owner_of_third(self.grammar.theirs[after])
            return self.relation_at(index + 2, owner, depth=1)
        return self.named(index + 1) if after in NAMES else None

    def _end_of_thing(self, index: int) -> int:
        """The end of `car` or `old red car`, before its verb."""
        end = index
        while end < index + _MAX_ADJECTIVES and self.low(end) and self.tokens[end].is_word:
            if end > index and self.is_verb(end):
                break
            if self.low(end) in self.grammar.prepositions | self.grammar.breaks:
                break
            end += 1
        return end

    def _described(self, index: int) -> Phrase | None:  # noqa: PLR0911 - one case each
        """`the user`, `a friend of mine`, `one of my colleagues`, `both my sons`, `everyone`."""
        grammar, low = self.grammar, self.low(index)
        if low in grammar.people:
            return Phrase(WORLD, index + 1, "people")
        at = index if low in grammar.user else index + 1
        if self.low(at) in grammar.user:
            return self._user_at(at)
        after = self.low(at)
        if after in {"of", "von", "de", "des"} and self.low(at + 1) in grammar.mine | _OBLIQUE:
            return self.relation_at(at + 2, self.speech.me)
        if after in grammar.mine:
            return self.relation_at(at + 1, self.speech.me)
        phrase = self.relation_at(at, self.speech.me)
        if phrase is None:
            return None
        noun = self.low(phrase.end - 1)
        definite = low in _DEFINITE
        # `die Frau`, `la mujer` and `a dog` are anybody's, unless an owner follows.
        relation = phrase.owner.rsplit("'s ", 1)[-1]
        if low in grammar.articles and self.low(index - 1) in _HAVE:
            # `I have a sister`: related to whoever has one.
            subject = self.subject
            return replace(phrase, owner=relation_of(relation, subject.owner if subject else USER))
        anybody = noun in _ANYBODY and phrase.end == at + 1
        anybody |= not (definite or relation in _INDEFINITE)
        return replace(phrase, owner=UNKNOWN) if anybody else phrase

    def _user_at(self, index: int) -> Phrase:
        root, ending = self._root(index)
        self.speech.mention(USER, "x")
        if ending == "'s" or root == "users'":
            owned = self.relation_at(index + 1, USER)
            return owned or Phrase(USER, self._end_of_thing(index + 1), "person")
        return Phrase(USER, index + 1, "person", has_verb=ending == "is")

    def named(self, index: int) -> Phrase | None:
        """A person's name, on evidence; a capital alone is none."""
        token = self.tokens[index] if index < self.last else None
        if token is None or not token.is_capital:
            return None
        root, ending = self._root(index)
        end = index + 1
        if root in {"mr", "mrs", "ms", "dr", "frau", "herr"} and self.low(end):
            end += self.low(end) == "."
            if not self.low(end) or not self.tokens[end].is_capital:
                return None
            root, ending = self._root(end)
            end += 1
        elif not self._is_name(index, root):
            return None
        elif not ending and self.low(end) and self._is_surname(end):
            end += 1
        alias = self.speech.aliases.get(root)
        owner = alias or normal(root, self.speech.user_names)
        name = root if alias else ""
        if ending == "'s":
            owned = self.relation_at(end, owner)
            return owned or Phrase(owner, self._end_of_thing(end), "person")
        related = self._relation_of_name(end)
        if related is not None and related.owner != UNKNOWN:
            self.speech.aliases[root] = related.owner
            if self.low(end) == ",":
                end = related.end + (self.low(related.end) == ",")
            return Phrase(related.owner, end, "person", name=root)
        return Phrase(owner, end, "person", name=name, has_verb=ending == "is")

    def _relation_of_name(self, index: int) -> Phrase | None:
        """The relation in `Clara, my sister,` and `Clara is my sister`."""
        low, grammar = self.low(index), self.grammar
        if low != "," and low not in _IS | {"ist", "es", "est", "war", "c'est"}:
            return None
        # `Ben and Clara are my kids`: a relation of several names tells them not apart.
        if low == "are" or self.low(index - 2) in {"and", "und", "y", "et"}:
            return None
        after = self.low(index + 1)
        if after in grammar.mine:
            phrase = self.relation_at(index + 2, self.speech.me)
        elif after in grammar.theirs:
            owner = self.speech.owner_of_third(grammar.theirs[after])
            phrase = self.relation_at(index + 2, owner)
        else:
            return None
        # In `Ana, my sister lives here` the relation is a subject of its own.
        if phrase is not None and low == "," and self.low(phrase.end) not in {",", "", "."}:
            return None
        return phrase

    def _is_surname(self, index: int) -> bool:
        token = self.tokens[index]
        adjacent = token.start == self.tokens[index - 1].end + 1
        plain = token.is_capital and token.is_word and self.base(index) not in self.grammar.first
        return adjacent and plain and self.speech.language != "de"

    def _is_name(self, index: int, root: str) -> bool:
        if root in self.speech.aliases or root in self.speech.user_names or root == self.speech.me:
            return True
        grammar = self.grammar
        if root in _CALENDAR or root in grammar.auxiliaries or root in grammar.fillers:
            return False
        if root in NAMES and root not in NAME_AND_WORD:
            return True
        if self.speech.language == "de" and root not in NAMES:
            return False
        if self._relation_of_name(index + 1) is not None:
            return True
        return self._acts_like_a_person(index + 1, is_listed=root in NAMES)

    def _acts_like_a_person(self, index: int, *, is_listed: bool) -> bool:
        """Whether a verb or a state follows that only persons have."""
        low, second, third = (self.low(index + step) for step in range(3))
        if low in PRO_VERBS and second in {",", "", "but", "and"}:
            return True
        if low in {"works", "worked"}:
            return second in {"as", "at", "for", "in"}
        if low in _IS and second in {"a", "an"}:
            return third in OCCUPATIONS
        if low in _STRONG:
            return True
        words = {low, second, third} if low in self.grammar.auxiliaries else {low}
        return bool(words & (HUMAN if is_listed else _STRONG))

    def remember(self, phrase: Phrase) -> None:
        """Remember a person for the pronouns that follow."""
        if phrase.owner == UNKNOWN:
            return
        self.latest = phrase
        self.speech.mention(phrase.owner, gender_of(phrase.name or phrase.owner))
        if phrase.name:
            self.speech.aliases[phrase.name] = phrase.owner
