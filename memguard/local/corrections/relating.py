"""Relates two claims: what one says of the other, by their content and the words of change.

Everything here is symmetrical but `refines`: whether the later or the earlier of two memories
gives the new value is decided by their times, which are no concern of these rules.
"""

from collections.abc import Collection
from dataclasses import dataclass

from memguard.local.adjudicator.people import relations_in
from memguard.local.corrections.claims import ClaimText, parts_of
from memguard.local.corrections.lexicon import concepts, kinds, wider
from memguard.local.corrections.successors import is_succeeded
from memguard.local.owners import USER
from memguard.local.owners.words import NAMES
from memguard.schema.memory import same_text_form
from memguard.schema.relations import Relation

_OPEN = frozenset({"unreal", "reported", "temporary", "past"})
"""A claim that is meant like this neither replaces another nor is replaced."""
_MEANT = _OPEN | {"plural", "kept"}
"""Flags in which two claims that say the same must agree."""
_SIGNS = frozenset({"now", "change"})
_MAX_EXTRA = 4
"""Words that a claim may add and still refine another."""
_MAX_REST = 3
"""Words that a claim may have besides what ended."""
_MAX_VALUE = 2
"""Words of a value that is not in the table of attributes."""
_CHILDREN = frozenset(["baby", "child", "son", "daughter"])
_MIN_SHARED = 2
_MIN_ALIKE = 5
"""Letters that two words begin with, to be of one family."""
_MIN_ALIKE_SHARE = 0.6
"""Share of the longer one that this must be."""


@dataclass(frozen=True)
class RelationSign:
    """A relation with what supports it."""

    relation: Relation
    certain: bool = False
    reason: str = ""
    is_own: bool = False
    """Whether it is the user's to say, though the claim is about somebody else."""


_NONE = RelationSign("coexists")


@dataclass(frozen=True)
class _ClaimPair:
    """Two claims about one person."""

    new: ClaimText
    old: ClaimText
    names: frozenset[str]

    @property
    def swapped(self) -> "_ClaimPair":
        return _ClaimPair(self.old, self.new, self.names)

    @property
    def has_sign(self) -> bool:
        """Whether either of them says that something changed."""
        return bool((self.new.flags | self.old.flags) & _SIGNS)

    @property
    def is_settled(self) -> bool:
        """Whether both are said as so."""
        return not (self.new.flags | self.old.flags) & _OPEN


def relate(new: ClaimText, old: ClaimText, *, names: frozenset[str]) -> RelationSign:
    """The relation of a claim to an earlier one; `names` are those of the user, case-folded."""
    if _same_text(new.text, old.text):
        return RelationSign("duplicate", certain=True, reason="the same text")
    if "other" in {new.language, old.language}:
        return _NONE
    if is_succeeded(new, old, names) or is_succeeded(old, new, names):
        reason = "it names the one who left and the next"
        return RelationSign("supersedes", certain=True, reason=reason, is_own=True)
    return _relate_pair(_ClaimPair(new, old, names))


def _relate_pair(pair: _ClaimPair) -> RelationSign:
    new, old = pair.new, pair.old
    if not _same_person(pair):
        return _NONE
    same = _same_content(pair)
    if new.owner != old.owner:
        return same if same is not None and same.relation == "duplicate" else _NONE
    if same is not None or not pair.is_settled:
        return same or _NONE
    # A second home, job or pet says nothing of the first.
    change = _change(pair) if "also" not in new.flags | old.flags else None
    return change or _refines(pair) or _NONE


def _same_person(pair: _ClaimPair) -> bool:
    """Whether both are about one person: "my brother Paul", and "I have a brother, Paul, who"."""
    new, old = pair.new, pair.old
    persons = new.content & kinds()["person"]
    introduced = [one for one in (new, old) if one.owner == USER]
    is_introduced = len(introduced) == 1 and bool(
        new.names & old.names or "indefinite" in introduced[0].flags
    )
    is_same = persons == old.content & kinds()["person"] and len(persons) == 1
    return new.owner == old.owner or (is_introduced and is_same)


def _change(pair: _ClaimPair) -> RelationSign | None:
    """Whether one of the two takes the place of the other."""
    values = (
        _other_value(_ClaimPair(part, pair.old, pair.names))
        for part in parts_of(pair.new, pair.names)
    )
    signs = (_replaced(pair), _replaced(pair.swapped), *values)
    return next((sign for sign in signs if sign is not None), None)


def _same_text(first: str, second: str) -> bool:
    return same_text_form(first).casefold() == same_text_form(second).casefold()


def _same_content(pair: _ClaimPair) -> RelationSign | None:
    """Whether both say the same, or one denies what the other says."""
    new, old = pair.new, pair.old
    is_meant_alike = new.flags & _MEANT == old.flags & _MEANT and new.times == old.times
    if not _equal(new, old) or not is_meant_alike or _differ_in_person(pair):
        return None
    if new.denied == old.denied:
        return _same_order(pair)
    if not pair.is_settled or _denies_a_quality(pair):
        return None
    if pair.has_sign or "ended" in new.flags | old.flags:
        return RelationSign("supersedes", certain=True, reason="one says that it changed")
    return RelationSign("contradicts", certain=True, reason="one denies what the other says")


def _denies_a_quality(pair: _ClaimPair) -> bool:
    """Whether one denies only how something is: "my dog is not small any more"."""
    denied, other = (pair.new, pair.old) if pair.new.denied else (pair.old, pair.new)
    extra = denied.content - other.content
    return bool(extra - denied.without_soft(extra) - kinds()["generic"])


def _differ_in_person(pair: _ClaimPair) -> bool:
    """Whether they name different relations: an aunt and an uncle have one stem in Spanish."""
    first, second = (relations_in(one.text, one.language) for one in (pair.new, pair.old))
    return bool(first) and bool(second) and first.isdisjoint(second)


def _same_order(pair: _ClaimPair) -> RelationSign | None:
    new, old = pair.new, pair.old
    sets = kinds()
    is_ranking = "prefer" in new.content
    is_ordered = is_ranking or len(new.content & sets["person"]) > 1
    if is_ordered and new.order != old.order:
        # "I prefer tea to coffee" is not "I prefer coffee to tea".
        return _changed("rank", certain=pair.has_sign) if is_ranking else None
    # "Two cats and three dogs" has the words of "three cats and two dogs".
    if (len(new.numbers) > 1 or new.content & sets["unlike"]) and _bonds(new) != _bonds(old):
        return None
    return RelationSign("duplicate", certain=True, reason="the same in other words")


def _bonds(claim: ClaimText) -> frozenset[tuple[str, str]]:
    """The numbers and directions of a claim, each with the word that follows."""
    unlike = kinds()["unlike"]
    following = zip(claim.order, (*claim.order[1:], ""), strict=True)
    return frozenset((key, after) for key, after in following if key[0] == "#" or key in unlike)


def _equal(new: ClaimText, old: ClaimText) -> bool:
    """Whether two contents are the same, apart from what says little beside their value."""
    shared = new.content & old.content
    if not shared:
        return False
    slots = new.slots.keys() | old.slots.keys()
    beside = ({"work"} if "job" in slots else set()) | (set() if "home" in slots else {"home"})
    left = new.without_soft(new.content - shared - beside)
    right = old.without_soft(old.content - shared - beside)
    if len(left | right) == 1 and len(shared) >= _MIN_SHARED and not new.denied:
        claim, (word,) = (new, left) if left else (old, right)
        return _is_passing(claim, word)
    # "A stamp collection" and "I collect stamps".
    return len(left) == len(right) and all(any(_akin(a, b) for b in right) for a in left)


def _is_passing(claim: ClaimText, word: str) -> bool:
    """Whether a word is likely to be a verb or an adverb, which adds no detail by itself."""
    if word in concepts() or word in claim.names | claim.headed or not word.isalpha():
        return claim.language == "zh" and word not in concepts() and len(word) == 1
    return True


def _akin(first: str, second: str) -> bool:
    """Whether two words that are in no table begin alike."""
    words = first, second
    if first.removesuffix("s") == second.removesuffix("s"):
        return True
    if any(word in concepts() or word in NAMES or not word.isalpha() for word in words):
        return False
    shared = next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(map(len, words)),
    )
    return shared >= _MIN_ALIKE and shared >= _MIN_ALIKE_SHARE * max(map(len, words))


def _replaced(pair: _ClaimPair) -> RelationSign | None:
    """Whether the words of one claim say that the other no longer holds."""
    if pair.old.denied:
        return None
    for part in parts_of(pair.new, pair.names):
        if _names_change(part, pair.old):
            return RelationSign("supersedes", certain=True, reason="it names the change")
        sign = _ended(part, pair.old)
        if sign is not None:
            return sign
    return None


def _names_change(new: ClaimText, old: ClaimText) -> bool:
    """Whether a claim names an old and a new value, and the other one is about the old."""
    for before, after in new.changes:
        value = before - kinds()["relational"]
        if not value or not value <= old.content or after <= old.content:
            continue
        rest = old.content - before - kinds()["relational"] - kinds()["generic"]
        if rest <= new.content | kinds()["daypart"]:
            return True
    return False


def _ended(new: ClaimText, old: ClaimText) -> RelationSign | None:
    """Whether a claim says that what the other one states has ended."""
    # "From" says of what, as in "resigned from Bosch".
    content = new.content - {"from"}
    if "ended" not in new.flags or "ended" in old.flags or not content:
        return None
    sets = kinds()
    rest = old.content - content
    narrower = frozenset[str]().union(*(wider().get(key, frozenset()) for key in content))
    is_job = content == frozenset({"work"}) and bool(old.slots.keys() & {"job", "employer"})
    if is_job or (narrower & old.content and len(content) == 1):
        return RelationSign("supersedes", certain=not old.is_joint, reason="all of it ended")
    if not content <= old.content or len(rest) > _MAX_REST:
        return None
    # Who has no dog any more may still be allergic to dogs.
    if any(key in concepts() for key in rest - sets["relational"] - _beside()):
        return None
    # Who no longer drinks may still drink water.
    if content <= sets["relational"] and not rest <= _beside() | sets["relational"]:
        return None
    # What is joined to it may still hold.
    certain = not (old.is_joint and rest)
    return RelationSign("supersedes", certain=certain, reason="one says that it ended")


def _beside() -> frozenset[str]:
    """Concepts that only tell when, how much or who."""
    sets = kinds()
    times = sets["daypart"] | sets["frequency"] | sets["weekday"] | sets["month"]
    return times | sets["unit"] | sets["generic"] | sets["person"] | sets["occupation"]


def _other_value(pair: _ClaimPair) -> RelationSign | None:
    """Whether both give a value to the same attribute, and not the same one."""
    new, old = pair.new, pair.old
    # "On Friday, not on Thursday" denies only the old value.
    is_time_denied = len(new.times) > len(old.times) > 0
    if old.denied or (new.denied and not is_time_denied):
        return None
    opposite = _opposite(pair)
    if opposite is not None:
        return opposite
    sets = kinds()
    # A brother's job is not the user's, even if nothing else tells whose it is.
    if (new.content ^ old.content) & sets["person"] and not _same_attribute(pair):
        return None
    for name in new.slots.keys() & old.slots.keys():
        sign = _other_slot(pair, name)
        if sign is not None:
            return _unless_joint(sign, pair, name)
    for name in ("marital", "diet"):
        values = new.content & sets[name], old.content & sets[name]
        if all(len(value) == 1 for value in values) and values[0] != values[1]:
            certain = pair.has_sign or name == "marital"
            return _changed(name, certain=certain)
    return _other_detail(pair)


def _same_attribute(pair: _ClaimPair) -> bool:
    """Whether both are about one attribute that a person is the value of, such as the boss."""
    shared = pair.new.content & pair.old.content
    return bool(shared & (kinds()["single"] | kinds()["changing"] | kinds()["person"]))


def _changed(name: str, *, certain: bool) -> RelationSign:
    relation: Relation = "supersedes" if certain else "contradicts"
    return RelationSign(relation, certain=certain, reason=f"two values of one attribute: {name}")


def _unless_joint(sign: RelationSign, pair: _ClaimPair, name: str) -> RelationSign:
    """The same sign, uncertain if the old claim says more than this attribute."""
    more = [slot for slot in pair.old.slots if slot != name and slot not in pair.new.slots]
    if not sign.certain or (not more and not pair.old.is_joint):
        return sign
    return RelationSign(sign.relation, certain=False, reason=sign.reason)


def _other_slot(pair: _ClaimPair, name: str) -> RelationSign | None:
    new, old = pair.new.slots[name], pair.old.slots[name]
    # "New York" and "York", or "a nurse" and "a night nurse", may be one value.
    if new & old:
        return None
    if name == "home":
        return _other_home(pair, new, old)
    sets = kinds()
    flags = pair.new.flags | pair.old.flags
    extra = (pair.new.content | pair.old.content) & (sets["daypart"] | {"weekend"})
    is_name = all(_is_named(claim, claim.slots[name]) for claim in (pair.new, pair.old))
    if (name == "employer" and (extra or not is_name)) or "plural" in flags:
        return None
    status = (new | old) & {"retired", "unemployed"}
    is_open = name in {"job", "name"} and not status
    return _changed(name, certain=pair.has_sign or not is_open)


def _other_home(pair: _ClaimPair, new: frozenset[str], old: frozenset[str]) -> RelationSign | None:
    sets = kinds()
    places = sets["city"] | sets["region"]
    # A town lies in a country, and "in a small flat" is no town.
    if bool(new & sets["region"]) != bool(old & sets["region"]):
        return None
    for claim, value in ((pair.new, new), (pair.old, old)):
        if not value & places and not _is_named(claim, value):
            return None
    # A district that is not in the table may lie in the town of the other.
    are_towns = bool(new & sets["city"]) and bool(old & sets["city"])
    return _changed("home", certain=pair.has_sign or are_towns)


def _is_named(claim: ClaimText, value: Collection[str]) -> bool:
    """Whether a value may be a name: with a capital, or in Chinese, without a concept."""
    unknown = [key for key in value if key not in concepts() and not key.startswith("#")]
    is_plain = bool(unknown) and len(unknown) == len(value)
    return is_plain and (claim.language == "zh" or bool(set(unknown) & claim.names))


def _opposite(pair: _ClaimPair) -> RelationSign | None:
    """Whether one keeps a diet without meat and the other eats meat, and the like."""
    for first, second in ((pair.new, pair.old), (pair.old, pair.new)):
        if first.content & {"vegetarian", "vegan"} and {"eat", "meat"} <= second.content:
            return _changed("diet", certain=pair.has_sign)
        persons = (first.content | second.content) & kinds()["person"]
        is_birth = "birth" in second.content and persons <= _CHILDREN
        if "pregnant" in first.content and is_birth:
            return _changed("pregnancy", certain=True)
    return None


def _other_detail(pair: _ClaimPair) -> RelationSign | None:
    """Whether both are about the same attribute, and differ in one value of one kind."""
    sets = kinds()
    new, old = pair.new, pair.old
    shared = new.content & old.content
    single, fixed = shared & sets["single"], shared & sets["fixed"]
    is_changing = bool(shared & sets["changing"])
    is_told = pair.has_sign and (is_changing or len(shared) >= _MIN_SHARED)
    # Of what has an indefinite article there may be two.
    is_vague = "indefinite" in new.flags | old.flags and not pair.has_sign
    if not (single or fixed or is_told) or (shared & sets["event"] and is_vague):
        return None
    beside = sets["generic"] | (sets["event"] if pair.has_sign else frozenset[str]())
    values = new.content - shared - beside, old.content - shared - beside
    kind = "time" if not any(values) else _kind(new, values[0])
    is_dated = bool(shared & (sets["event"] | sets["fixed"])) and new.times and old.times
    is_other = is_dated and new.times != old.times if kind == "time" else new.times == old.times
    if not kind or not is_other or (kind != "time" and kind != _kind(old, values[1])):
        return None
    # Who starts another language may go on with the first.
    is_named_twice = kind.startswith("name") and not single and not fixed
    is_vague = "indefinite" in new.flags | old.flags
    if is_named_twice and (not is_changing or is_vague):
        return None
    return _changed("its value", certain=pair.has_sign or not fixed)


def _kind(claim: ClaimText, value: frozenset[str]) -> str:
    """The kind of a value, with its preposition; empty if it is none that can be compared."""
    sets = kinds()
    if not value:
        return ""
    for name in ("weekday", "month", "daypart", "colour", "city", "region", "vehicle"):
        if value <= sets[name]:
            return name
    if all(key.startswith("#") for key in value):
        return "number"
    if len(value) == 1 and "@" in next(iter(value)):
        return "address"
    if len(value) > _MAX_VALUE or not _is_named(claim, value):
        return ""
    return "name in" if value & claim.governed else "name"


def _refines(pair: _ClaimPair) -> RelationSign | None:
    new, old = pair.new, pair.old
    extra = new.without_soft(new.content - old.content)
    # What ended or changed is no detail.
    if "ended" in new.flags ^ old.flags or (new.changes and new.changes != old.changes):
        return None
    if (
        not extra
        or not old.content < new.content
        or len(extra) > _MAX_EXTRA
        or new.denied
        or old.denied
    ):
        return None
    if "plural" in new.flags ^ old.flags or (old.times and new.times != old.times):
        return None
    sets = kinds()
    # A restriction or another number says less or something else.
    # Whom it begins with is whom it is about: "did I mention that my sister lives in Leeds".
    first = extra & sets["person"] & set(new.order[:1])
    if first or extra & sets["unlike"] or (_adds_number(extra) and not extra & sets["unit"]):
        return None
    is_named = bool(old.content & sets["person"]) and extra <= new.names
    brief = sets["diet"] | sets["occupation"]
    if len(old.content) < _MIN_SHARED and not old.content & brief and not is_named:
        return None
    return RelationSign("refines", certain=True, reason="it adds a detail")


def _adds_number(extra: frozenset[str]) -> bool:
    return any(key.startswith("#") for key in extra)
