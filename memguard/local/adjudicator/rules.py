"""The rules by which the local adjudicator finds the situation and the attributes of units.

`AdjudicationRules` judges one read. It measures the units once, relates them to one another and to
the evidence, and builds a row for each unit.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from memguard.local.adjudicator import attributes as wording
from memguard.local.adjudicator import cues
from memguard.local.adjudicator.cues import NAME, WEAKER
from memguard.local.adjudicator.languages import language_of
from memguard.local.adjudicator.people import Addressees, aliases_in, owner_of_unit, same_owner
from memguard.local.adjudicator.relations import (
    Nearness,
    contradict,
    measure_nearness,
    read_stances,
    relevance_of,
    replaces,
    slots_of,
)
from memguard.local.adjudicator.situation import (
    ADVICE,
    FOREIGN,
    asks_for_record,
    is_small_talk,
    points_back,
    read_situation,
    recent_user_text,
    refers_to_person,
)
from memguard.local.credibility import Credibility
from memguard.local.encoder import LocalEmbeddings, Matrix
from memguard.local.look_ups import says_it_was_told
from memguard.local.owners.words import NAMES
from memguard.local.relevance import RelevanceModel
from memguard.local.verifier.support import SupportVerifier
from memguard.schema.decision import Inconclusive
from memguard.schema.read import Adjudication, Conflict, ReadCase, Row, Situation
from memguard.schema.units import (
    FactorAttributes,
    FactorRole,
    Kind,
    Relevance,
    Scheme,
    Scope,
    Subject,
    SubjectMatch,
    Unit,
    UnitAttributes,
    Utility,
)

# Minimum cosine of two units to be compared. Our own choice: below it we found no contradictions.
_COMPARED = 0.35
_OF_A_PERSON = frozenset({"preference", "belief", "fact", "experience"})
_BELONGS = re.compile(
    r"^(?:[\w'. -]{1,40}: ?)?(?:the user['\u2019]s|my|our|mein\w{0,2}|unser\w{0,2}|mis?|"
    r"nuestr[oa]s?|mon|ma|mes|notre|nos)\b|"
    r"^(?:用户|我)的",
    re.IGNORECASE,
)
_MAX_SLOT = 40
# How many units must begin with a name for it to be the user's.
_MIN_NAME_COUNT = 3
MAX_COMPARED_PAIRS = 20_000
"""Maximum number of pairs of units that are compared by their words, the nearest first."""
MAX_CHECKED_PAIRS = 200
"""Maximum number of pairs that the support verifier checks, the nearest first; that takes about a
second. Two hundred memories that differ only in a number would be twenty thousand pairs."""

_ROLE: dict[Kind, FactorRole] = {
    "safety": "constraint",
    "constraint": "constraint",
    "preference": "preference",
    "belief": "belief",
    "claim": "fact",
    "fact": "fact",
    "experience": "context",
}
_SCOPE: dict[Relevance, Scope] = {
    "direct": "in",
    "indirect": "in",
    "none": "out",
    "uncertain": "uncertain",
}
_UTILITY: dict[Relevance, Utility] = {
    "direct": "needed",
    "indirect": "helpful",
    "none": "none",
    "uncertain": "helpful",
}


_FIRST_NAME = re.compile(r"(?<![\w-])([A-Z][\w-]+)(?= |, )")


class AdjudicationRules:
    """The rules with the models they use; the arguments are those of `LocalAdjudicator`.

    Not thread-safe: `LocalAdjudicator` calls them in one thread.
    """

    def __init__(
        self, *, embeddings: LocalEmbeddings | None, verifier: SupportVerifier | None
    ) -> None:
        self._embeddings = embeddings or LocalEmbeddings()
        self._verifier = verifier or SupportVerifier(encoder=self._embeddings.encoder)
        self._relevance = RelevanceModel(embeddings=self._embeddings)

    def judge(self, case: ReadCase, units: Sequence[Unit], scheme: Scheme) -> Adjudication:
        """Judge the situation, then every unit in order; see `memguard.protocols.Adjudicator`."""
        names = _user_names(case, units)
        texts = [unit.text for unit in units]
        situation = read_situation(
            case.query,
            dialogue=case.dialogue,
            user_names=names,
            persons=frozenset(owner_of_unit(text, names) for text in texts),
        )
        near = measure_nearness(
            case, texts, names=names, embeddings=self._embeddings, relevance=self._relevance
        )
        kinds: list[Kind] = [_kind(unit, names) for unit in units]
        relations = _relate(units, kinds, near, names=names, verifier=self._verifier)
        stances = read_stances(case.evidence, units, names=names, verifier=self._verifier)
        rules = _AttributeRules(case=case, situation=situation, names=names, texts=texts)
        rows: list[Row] = []
        for index, unit in enumerate(units):
            score = float(near.query[index])
            attributes = rules.attributes(
                unit, kind=kinds[index], score=score, shared=near.shared[index]
            )
            if unit.id in relations.replaced:
                attributes = attributes.model_copy(update={"temporality": "superseded"})
            stance = stances.get(unit.id)
            if stance == "confirms":
                attributes = attributes.model_copy(update={"epistemic": "verified"})
            rows.append(
                Row(
                    unit_id=unit.id,
                    attributes=attributes if scheme == "units" else rules.factors(attributes),
                    evidence_conflict=stance == "contradicts",
                    influence=min(max(score, 0.0), 1.0),
                    reason=f"by its wording; relevance score {score:.2f}, so "
                    f"{attributes.relevance}",
                )
            )
        return Adjudication(
            situation=situation,
            rows=tuple(rows),
            conflicts=relations.conflicts,
            adjudicator=NAME,
            flags=("local_adjudicator",),
            notes=_notes(situation, relations),
            fails_open=True,
        )


def _notes(situation: Situation | Inconclusive, relations: "_Relations") -> tuple[str, ...]:
    notes = (WEAKER, FOREIGN) if isinstance(situation, Inconclusive) else (WEAKER,)
    if relations.unchecked:
        notes += (f"conflicts judged by words alone, because too many: {relations.unchecked}",)
    if relations.left_out:
        notes += (f"units and pairs not compared, because too many: {relations.left_out}",)
    return notes


def _kind(unit: Unit, names: frozenset[str]) -> Kind:
    """The kind of a unit from its decomposition, or from its wording."""
    # The decomposer does not know the user's names: its `claim` may be "Ana lives in Rome".
    if unit.kind is not None and unit.kind != "claim":
        return unit.kind
    return wording.kind_of(unit.text, user_names=names)


@dataclass(frozen=True)
class _Relations:
    """How the units relate to one another."""

    replaced: frozenset[str]
    """Ids of units that another unit replaces."""
    conflicts: tuple[Conflict, ...]
    """Pairs of units that contradict each other."""
    unchecked: int
    """How many of the conflicts the support verifier has not checked."""
    left_out: int
    """How many units, and pairs of units, were not compared, because there are too many."""


def _relate(
    units: Sequence[Unit],
    kinds: Sequence[Kind],
    near: Nearness,
    *,
    names: frozenset[str],
    verifier: SupportVerifier,
) -> _Relations:
    """Compare all pairs of units that are near each other and about the same person."""
    contrary: list[tuple[float, int, int]] = []
    replaced: set[str] = set()
    pairs, left_out = _near_pairs(near.between)
    pairs = sorted({*pairs, *_pairs_of_slots(units[: len(near.between)])})
    left_out += len(units) - len(near.between)
    for i, j in pairs:
        cosine = float(near.between[i, j])
        if units[i].text == units[j].text or not _is_comparable(units[i], units[j], names):
            continue
        for new, old in ((i, j), (j, i)):
            if (
                not _is_earlier(units[new], units[old])
                and _outranks(units[new], units[old])
                and replaces(
                    units[new].text, units[old].text, kinds=(kinds[new], kinds[old]), cosine=cosine
                )
            ):
                replaced.add(units[old].id)
        # What happened once may happen again: a first win and a fourth one are both true.
        is_event = kinds[i] == kinds[j] == "experience"
        if not is_event and contradict(units[i].text, units[j].text):
            contrary.append((cosine, i, j))
    # A unit that was replaced is no longer current, so it contradicts nothing.
    current = [pair for pair in contrary if replaced.isdisjoint(units[at].id for at in pair[1:])]
    nearest = set(sorted(current, key=lambda pair: -pair[0])[:MAX_CHECKED_PAIRS])
    # An unchecked pair stays a conflict: to hide one is worse than to show one too many.
    conflicts = [
        Conflict(first=units[i].id, second=units[j].id)
        for cosine, i, j in current
        if (cosine, i, j) not in nearest or not _supports(verifier, units[i], units[j])
    ]
    return _Relations(
        replaced=frozenset(replaced),
        conflicts=tuple(conflicts),
        unchecked=len(current) - len(nearest),
        left_out=left_out,
    )


def _is_comparable(first: Unit, second: Unit, names: frozenset[str]) -> bool:
    """Whether one of two units may say something about the other: both of one owner."""
    return same_owner(first.text, second.text, names)


def _pairs_of_slots(units: Sequence[Unit]) -> list[tuple[int, int]]:
    """Pairs of units with a value for the same slot, whose cosine may be low: two cities."""
    by_slot: defaultdict[str, list[int]] = defaultdict(list)
    for index, unit in enumerate(units):
        for slot in slots_of(unit.text):
            by_slot[slot].append(index)
    # Of one slot there are few values; more of them would be pairs without end.
    groups = (indexes[:_MAX_SLOT] for indexes in by_slot.values())
    return [pair for indexes in groups for pair in combinations(indexes, 2)]


def _near_pairs(between: Matrix) -> tuple[list[tuple[int, int]], int]:
    """The pairs of units to compare, the nearest `MAX_COMPARED_PAIRS`, and how many are not."""
    rows, columns = np.nonzero(np.triu(between >= _COMPARED, k=1))
    # A stable sort, so that equal pairs keep the order of recall on every machine.
    nearest = np.argsort(-between[rows, columns], kind="stable")[:MAX_COMPARED_PAIRS]
    kept = np.sort(nearest)
    pairs = zip(rows[kept].tolist(), columns[kept].tolist(), strict=True)
    return list(pairs), len(rows) - len(kept)


def _supports(verifier: SupportVerifier, first: Unit, second: Unit) -> bool:
    """Whether the first unit follows from the second, so that they do not contradict each other."""
    return verifier.judge(candidate=first.text, context=second.text).ruling == "supported"


def _is_earlier(unit: Unit, other: Unit) -> bool:
    return unit.said_at is not None and other.said_at is not None and unit.said_at < other.said_at


def _outranks(unit: Unit, other: Unit) -> bool:
    """Whether a unit may replace another one: a doubtful one, or a stranger's, may not."""
    new, old = (Credibility(wording.epistemic_of(one.text), one.said_by) for one in (unit, other))
    return new.may_replace and new.equals_or_exceeds(old)


def _is_of_person(text: str, kind: Kind) -> bool:
    """Whether a unit is about a person, or about what belongs to the user: "my table seats six"."""
    # A safety constraint without anything in common is still shown, as context.
    return kind in _OF_A_PERSON or kind == "safety" or _BELONGS.search(text) is not None


class _AttributeRules:
    """The rules for a unit's attributes in one read."""

    def __init__(
        self,
        *,
        case: ReadCase,
        situation: Situation | Inconclusive,
        names: frozenset[str],
        texts: Sequence[str],
    ) -> None:
        self._case = case
        self._situation = situation
        self._small_talk = is_small_talk(case.query)
        self._asks_past = isinstance(situation, Situation) and situation.lookup == "past"
        self._asks_record = asks_for_record(case.query)
        self._asks_told = says_it_was_told(case.query)
        self._names = names
        # What a query points back to tells whom the answer is for.
        is_back = points_back(case.query) or refers_to_person(case.query)
        back = f" {recent_user_text(case.dialogue)}" if is_back else ""
        self._addressees = Addressees(
            query=case.query + back,
            names=names,
            aliases=aliases_in((*texts, *(turn.content for turn in case.dialogue)), names),
        )

    @property
    def _is_look_up(self) -> bool:
        situation = self._situation
        return isinstance(situation, Situation) and (
            situation.lookup != "none"
            or (situation.mode == "factual" and situation.target == "world")
        )

    @property
    def _is_about_world(self) -> bool:
        """Whether the query is about nobody, and asks for no advice: a fact, a translation."""
        situation = self._situation
        # A look-up is about the user's own life, whatever its words.
        return isinstance(situation, Situation) and (
            situation.target == "world"
            and situation.mode not in ADVICE
            and situation.lookup == "none"
        )

    @property
    def _is_advice(self) -> bool:
        situation = self._situation
        return isinstance(situation, Situation) and situation.mode in ADVICE

    @property
    def _is_about_facts(self) -> bool:
        situation = self._situation
        return (
            isinstance(situation, Situation)
            and situation.mode == "factual"
            and not situation.asks_view
        )

    def attributes(
        self, unit: Unit, *, kind: Kind, score: float, shared: frozenset[str]
    ) -> UnitAttributes:
        """The attributes of one unit, regardless of other units and of evidence."""
        temporality = wording.temporality_of(unit.text, said_at=unit.said_at, now=self._case.now)
        is_over = wording.is_expired_plan(unit.text, said_at=unit.said_at, now=self._case.now)
        # An expired plan answers only a question about the past, or about what was told.
        is_wanted_record = self._asks_past or self._asks_told or (self._asks_record and not is_over)
        if temporality == "superseded" and (is_wanted_record or kind == "safety"):
            temporality = "uncertain"
        subject = self._addressees.subject_of(unit.text, of_safety=kind == "safety")
        is_wish = kind in {"preference", "constraint"}
        is_wanted = is_wish and (self._is_advice or subject == "third_party")
        relevance = self._relevance(
            unit, kind=kind, score=score, shared=shared, is_wanted=is_wanted
        )
        epistemic = wording.epistemic_of(unit.text)
        if self._is_hearsay(unit, kind=kind, subject=subject):
            kind = "claim" if kind == "belief" else kind
            epistemic = "uncertain" if epistemic == "stated" else epistemic
        # A view on the very fact that is asked for invites agreement with it.
        if kind == "belief" and relevance == "direct" and self._is_about_facts:
            relevance = "indirect"
        return UnitAttributes(
            kind=kind,
            subject=self._subject(subject, kind=kind, relevance=relevance),
            epistemic=epistemic,
            temporality=temporality,
            relevance=relevance,
        )

    def _is_hearsay(self, unit: Unit, *, kind: Kind, subject: Subject) -> bool:
        """Whether a unit reports what somebody else said of the matter.

        What somebody else believes answers a look-up as hearsay. In a question about the world,
        what somebody said is no more than that.
        """
        situation = self._situation
        if isinstance(situation, Inconclusive):
            return False
        if situation.lookup != "none":
            return kind == "belief" and subject in {"bystander", "third_party"}
        is_open = self._is_about_world and kind in {"claim", "fact", "experience"}
        return is_open and wording.reports_speech(unit.text)

    def factors(self, attributes: UnitAttributes) -> FactorAttributes:
        """The same attributes in the scheme of factors."""
        # A view on something nearby would only invite agreement.
        aside = attributes.kind == "belief" and attributes.relevance == "indirect"
        return FactorAttributes(
            scope="uncertain" if aside else _SCOPE[attributes.relevance],
            subject=self._match(attributes),
            role=_ROLE[attributes.kind],
            epistemic=attributes.epistemic,
            temporal=attributes.temporality,
            utility=_UTILITY[attributes.relevance],
            safety=attributes.kind == "safety",
        )

    def _relevance(
        self, unit: Unit, *, kind: Kind, score: float, shared: frozenset[str], is_wanted: bool
    ) -> Relevance:
        if self._small_talk:
            return "none"
        if isinstance(self._situation, Inconclusive) or not language_of(unit.text):
            return "uncertain"
        relevance = relevance_of(
            score,
            kind=kind,
            query=self._case.query,
            text=unit.text,
            shared=shared,
            is_wanted=is_wanted,
            is_about_world=self._is_about_world and _is_of_person(unit.text, kind),
        )
        # What is looked up is often asked for in few words: "Where do I live?".
        if relevance == "indirect" and shared and self._situation.lookup != "none":
            return "direct"
        # "Always answer in German" shares no word with what is asked.
        if relevance == "none" and kind == "constraint" and cues.ANSWER_FORM.search(unit.text):
            return "indirect"
        return relevance

    def _subject(self, subject: Subject, *, kind: Kind, relevance: Relevance) -> Subject:
        # "When is the regatta?" may be answered by what somebody else said of it.
        if (
            subject == "bystander"
            and self._is_look_up
            and relevance == "direct"
            and kind != "preference"
        ):
            return "third_party"
        return subject

    def _match(self, attributes: UnitAttributes) -> SubjectMatch:
        if attributes.subject == "bystander":
            return "mismatch"
        if attributes.subject == "uncertain" or isinstance(self._situation, Inconclusive):
            return "uncertain"
        if attributes.subject == "user" and self._situation.target == "third_party":
            # A taste is the user's alone; a limit or a fact may bear on what the user does.
            return "mismatch" if attributes.kind in {"preference", "belief"} else "uncertain"
        return "match"


def _user_names(case: ReadCase, units: Sequence[Unit]) -> frozenset[str]:
    """Names of the user: of the user's turns, of labels, and what several memories begin with."""
    spoken = {turn.speaker.casefold() for turn in case.dialogue if turn.role == "user"}
    # The local writer puts the speaker's name before what the speaker said.
    labels = (cues.LABEL.match(unit.text) for unit in units)
    spoken |= {label[1].casefold() for label in labels if label is not None}
    matches = (_FIRST_NAME.match(unit.text) for unit in units)
    counts = Counter(match[1].casefold() for match in matches if match is not None)
    often = {name for name, count in counts.items() if count >= _MIN_NAME_COUNT}
    return frozenset({name for name in spoken | (often & NAMES) if name})
