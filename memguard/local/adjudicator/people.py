"""Whom a unit is about, and whether the answer to a query is for that person.

`owners` tells whose fact a unit is. This module compares the owner with whom the query mentions: by
name, by relation, or as one of a group.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

from memguard.local.adjudicator import cues
from memguard.local.adjudicator.languages import WORDINGS, language_of
from memguard.local.languages import CHINESE
from memguard.local.owners import UNKNOWN, USER, WORLD, Clause, aliases_of, split_clauses
from memguard.local.owners.words import BARE, NAME_AND_WORD, NAMES, RELATIONS
from memguard.local.safety import looks_like_safety
from memguard.local.verifier.lexicon import word_set
from memguard.schema.units import Subject

About = Literal["user", "other", "world"]
"""Whom a text is about, independent of a query."""

HOUSEHOLD = word_set(
    "son daughter child baby wife husband partner girlfriend boyfriend fiance fiancee roommate "
    "stepson stepdaughter"
)
"""Relations who may share the user's table without being mentioned."""
SERVICES = word_set(
    "doctor dentist therapist teacher coach landlord lawyer accountant nanny nurse assistant tenant"
)
"""Relations who serve the user: what is said of them is a fact of the user's life."""
_PARTNERS = word_set("wife husband partner girlfriend boyfriend fiance fiancee")
_MEMBERS: dict[str, frozenset[str]] = {
    "child": frozenset({"son", "daughter", "baby", "child", "stepson", "stepdaughter"}),
    "baby": frozenset({"child"}),
    "son": frozenset({"child", "baby"}),
    "daughter": frozenset({"child", "baby"}),
    "parent": frozenset({"mother", "father", "parent"}),
    "sibling": frozenset({"sister", "brother"}),
    "grandparent": frozenset({"grandmother", "grandfather"}),
    "grandchild": frozenset({"grandson", "granddaughter"}),
    "in-law": frozenset({"mother-in-law", "father-in-law"}),
    **dict.fromkeys(_PARTNERS, _PARTNERS),
}
"""Other words by which a query may mean the same person."""
_KIN = frozenset().union(*_MEMBERS.values()) - {"roommate"}
_GROUPS: dict[str, frozenset[str]] = {
    "family": _KIN | {"family", "relative", "aunt", "uncle", "cousin", "niece", "nephew"},
    "colleague": frozenset({"colleague", "boss", "manager", "client", "intern"}),
    "friend": frozenset({"friend", "classmate"}),
}
"""Who belongs to a group of which a query speaks."""
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_WHO = re.compile(
    r"\b(?:who|whom|anyone|anybody|somebody|wer|wen|wem|jemand\w*|qui[eé]n\w*|alguien|qui|"
    r"quelqu['\u2019]un)\b|谁|哪位",
    re.IGNORECASE,
)
_MIN_OWN_WORDS = 3
_FORMER = re.compile(r"\b(?:former|ex|ehemalig\w*|antigu[oa]|ancien(?:ne)?)\b|前", re.IGNORECASE)
_POSSESSIVES = frozenset({"her", "his", "their"})
# "Anke, the user's cousin, reads": what stands between the commas tells that it is a person.
_APPOSED = re.compile(r"^([A-ZÀ-Þ][\w-]{1,40}), [^,.]{1,60},")
_OF_USER = re.compile(
    r"\b(?:user|i|i['\u2019]\w+|my|me|our|ich|mein\w{0,2}|mir|mich|nutzer\w*|yo|mi|mis|"
    r"usuari[oa]|je|"
    r"j['\u2019]\w+|mon|ma|mes|moi|utilisat\w+)\b|我|用户",
    re.IGNORECASE,
)
_AT_HOME = re.compile(
    r"\b(?:cook|bak(?:e|ing)|dinner|recipe|grocer|shopping list|koch|back|abendessen|rezept|"
    r"einkauf|"
    r"cocin|cena|receta|prepar|cuisin|dîner|recette|prépar)|[做煮烤]",
    re.IGNORECASE,
)
"""A meal that a household shares; a snack at the desk is the user's alone."""


@lru_cache(maxsize=8192)
def relations_in(text: str, language: str | None = None) -> frozenset[str]:
    """The relations that a text mentions, by their English names."""
    language = language_of(text) if language is None else language
    table = RELATIONS.get(language, {})
    if language == "zh":
        hits = sorted((word for word in table if word in text), key=len, reverse=True)
        # `表妹` is a cousin, and not a sister as well.
        longest = [w for i, w in enumerate(hits) if not any(w in other for other in hits[:i])]
        return frozenset(table[word] for word in longest)
    words = {word.removesuffix("s") if word not in table else word for word in _words(text)}
    return frozenset(table[word] for word in words if word in table) | frozenset(
        RELATIONS["en"][word] for word in words & BARE if word in RELATIONS["en"]
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


@lru_cache(maxsize=8192)
def clauses_of(text: str, names: frozenset[str]) -> tuple[Clause, ...]:
    """The clauses of a unit, without the label of the local writer."""
    return split_clauses(cues.without_label(text), user_names=names)


@lru_cache(maxsize=8192)
def owner_of_unit(text: str, names: frozenset[str] = frozenset()) -> str:
    """The owner of a unit; `names` are the user's, case-folded.

    A clause about safety decides before the others, since it is what must not be lost. The user
    decides before another person if both have a clause of their own.
    """
    named = _APPOSED.match(text)
    if named is not None and relations_in(named[0]):
        return named[1].casefold()
    clauses = clauses_of(text, names)
    # "Ana: I love tea" was copied by the local writer from what Ana, the user, said.
    spoken = [clause for clause in clauses if not clause.is_elided] or list(clauses)
    of_safety = [clause for clause in spoken if looks_like_safety(clause.text)]
    owners = [clause.owner for clause in of_safety or spoken]
    if USER in owners and (of_safety or owners[0] in {USER, WORLD, UNKNOWN}):
        return USER
    persons = [owner for owner in owners if owner not in {WORLD, UNKNOWN}]
    if persons:
        return persons[0]
    return _named_at_start(text) or (WORLD if WORLD in owners else UNKNOWN)


def _named_at_start(text: str) -> str:
    """A person whom a text begins with: a common first name, or a relation of somebody else."""
    first, _, rest = text.partition(" ")
    word = first.strip(",").casefold()
    if word in _POSSESSIVES:
        relations = relations_in(" ".join(rest.split()[:2]), "en")
        return next(iter(sorted(relations)), "")
    return word if first[:1].isupper() and word in NAMES - NAME_AND_WORD else ""


def _without_owner(text: str, *, is_world: bool) -> Subject:
    if is_world:
        return "world"
    return "user" if _OF_USER.search(text) else "uncertain"


def about_whom(text: str, *, user_names: frozenset[str] = frozenset()) -> About:
    """Whom a text is about; `user_names` are names of the user, case-folded."""
    owner = owner_of_unit(text, user_names)
    if owner == USER or owner in user_names:
        return "user"
    if owner == UNKNOWN and _OF_USER.search(text):
        return "user"
    return "world" if owner in {WORLD, UNKNOWN} else "other"


def same_owner(first: str, second: str, names: frozenset[str]) -> bool:
    """Whether two units are certainly about the same person, or both about none."""
    owners = owner_of_unit(first, names), owner_of_unit(second, names)
    # What the user says of the world, as of the wifi, is compared with what the user says.
    plain = [USER if owner in {WORLD, UNKNOWN} else owner for owner in owners]
    return plain[0] == plain[1]


@dataclass(frozen=True)
class Addressees:
    """Whom the answer to a query is for, as far as the query and the units tell."""

    query: str
    """The query, with what it points back to."""
    names: frozenset[str] = frozenset()
    """Names of the user, case-folded."""
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Relations by name: `my son Jonas` makes `jonas` the `son`."""

    @cached_property
    def relations(self) -> frozenset[str]:
        """The relations that the query mentions, with other words for the same persons."""
        direct = relations_in(self.query)
        return direct.union(*(_MEMBERS.get(relation, frozenset()) for relation in direct))

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """The words of the query."""
        return frozenset(word.removesuffix("s") for word in _words(self.query)) | frozenset(
            _words(self.query)
        )

    @cached_property
    def _is_together(self) -> bool:
        language = language_of(self.query)
        if language in WORDINGS:
            return WORDINGS[language].together.search(self.query) is not None
        return cues.TOGETHER.search(self.query) is not None

    @cached_property
    def _is_alone(self) -> bool:
        language = language_of(self.query)
        pattern = WORDINGS[language].alone if language in WORDINGS else cues.ALONE
        return pattern.search(self.query) is not None

    def subject_of(self, text: str, *, of_safety: bool) -> Subject:
        """The subject of a unit."""
        owner = owner_of_unit(text, self.names)
        if owner == USER or owner in self.names or owner in SERVICES:
            return "user"
        if owner in {WORLD, UNKNOWN}:
            return _without_owner(text, is_world=owner == WORLD)
        if self._includes(owner, text) or _WHO.search(self.query):
            return "third_party"
        at_table = of_safety and HOUSEHOLD & self._called(owner) and self._is_at_home
        # The user's own words in it may not be lost with what they say of somebody else.
        return "uncertain" if at_table or self._has_own_words(text) else "bystander"

    @property
    def _is_at_home(self) -> bool:
        return _AT_HOME.search(self.query) is not None and not self._is_alone

    def _has_own_words(self, text: str) -> bool:
        statements = (
            c.text for c in clauses_of(text, self.names) if c.owner == USER and not c.is_elided
        )
        return any(len(_words(clause)) >= _MIN_OWN_WORDS for clause in statements)

    def _called(self, owner: str) -> frozenset[str]:
        """The owner by name and by relation."""
        names = {name for name, relation in self.aliases.items() if relation == owner}
        alias = self.aliases.get(owner)
        # Whoever asks about Ana may mean what is said of Ana's mother.
        possessor = owner.partition("'s ")[0]
        return frozenset({owner, possessor, *names} | ({alias} if alias else set()))

    def _includes(self, owner: str, text: str) -> bool:
        called = self._called(owner)
        if called & (self.mentioned | self.relations):
            return True
        # Names in Chinese stand between other characters.
        if any(CHINESE.match(name) and name in self.query for name in called):
            return True
        if any(called & _GROUPS[group] for group in _GROUPS.keys() & relations_in(self.query)):
            return True
        is_former = _FORMER.search(text) is not None
        return self._is_together and not self._is_alone and not is_former and self._may_join(called)

    def _may_join(self, called: frozenset[str]) -> bool:
        """Whether a person may be one of several whom the query does not name."""
        relations = {relation for table in RELATIONS.values() for relation in table.values()}
        # A named person without a relation is an acquaintance, who may be among the guests.
        known = called & relations
        return not known or bool(known & (HOUSEHOLD | _KIN | {"friend", "guest", "family"}))


def aliases_in(texts: Iterable[str], names: frozenset[str]) -> dict[str, str]:
    """The names that texts give to relations of the user."""
    aliases: dict[str, str] = {}
    for text in texts:
        aliases |= aliases_of(clauses_of(text, names))
    return aliases


def names_in(query: str, known: Sequence[str] = ()) -> frozenset[str]:
    """The persons whom a query names, case-folded: by a common first name, or a known one."""
    capitals = re.findall(r"(?<!\w)[A-ZÀ-Þ][^\W\d_]+", query)
    names = {word.casefold() for word in capitals}
    return frozenset(names & ((NAMES - NAME_AND_WORD) | set(known)))
