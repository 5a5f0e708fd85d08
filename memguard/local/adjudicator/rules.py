"""The rules by which the local adjudicator finds the situation and the attributes of units.

`AdjudicationRules` judges one read. It measures the units once, relates them to one another and to
the evidence, and builds a row for each unit.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memguard.local.adjudicator import cues
from memguard.local.adjudicator.cues import NAME, WEAKER
from memguard.local.adjudicator.relations import (
    FOREIGN,
    Nearness,
    contradict,
    is_small_talk,
    measure_nearness,
    read_situation,
    read_stances,
    recent_user_text,
    relevance_of,
    replaces,
)
from memguard.local.credibility import Credibility
from memguard.local.encoder import LocalEmbeddings, Matrix
from memguard.local.verifier.support import SupportVerifier
from memguard.local.verifier.words import looks_foreign, split_words
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


class AdjudicationRules:
    """The rules with the models they use; the arguments are those of `LocalAdjudicator`.

    Not thread-safe: `LocalAdjudicator` calls them in one thread.
    """

    def __init__(
        self, *, embeddings: LocalEmbeddings | None, verifier: SupportVerifier | None
    ) -> None:
        self._embeddings = embeddings or LocalEmbeddings()
        self._verifier = verifier or SupportVerifier(encoder=self._embeddings.encoder)

    def judge(self, case: ReadCase, units: Sequence[Unit], scheme: Scheme) -> Adjudication:
        """Judge the situation, then every unit in order; see `memguard.protocols.Adjudicator`."""
        situation = read_situation(case.query, dialogue=case.dialogue)
        names = _user_names(case, units)
        texts = [unit.text for unit in units]
        near = measure_nearness(case, texts, names=names, embeddings=self._embeddings)
        kinds: list[Kind] = [_kind(unit, names) for unit in units]
        relations = _relate(units, kinds, near, names=names, verifier=self._verifier)
        stances = read_stances(case.evidence, units, verifier=self._verifier)
        rules = _AttributeRules(case=case, situation=situation, names=names)
        rows: list[Row] = []
        for index, unit in enumerate(units):
            cosine = float(near.query[index])
            attributes = rules.attributes(
                unit, kind=kinds[index], cosine=cosine, shared=near.shared[index]
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
                    influence=min(max(cosine, 0.0), 1.0),
                    reason=f"by its wording; cosine with the query {cosine:.2f}, so "
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
    return cues.kind_of(unit.text, user_names=names)


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
    about = [cues.about_whom(unit.text, user_names=names) for unit in units]
    contrary: list[tuple[float, int, int]] = []
    replaced: set[str] = set()
    pairs, left_out = _near_pairs(near.between)
    left_out += len(units) - len(near.between)
    for i, j in pairs:
        cosine = float(near.between[i, j])
        if about[i] != about[j] or units[i].text == units[j].text:
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
        if contradict(units[i].text, units[j].text):
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
    new, old = (Credibility(cues.epistemic_of(one.text), one.said_by) for one in (unit, other))
    return new.may_replace and new.equals_or_exceeds(old)


class _AttributeRules:
    """The rules for a unit's attributes in one read."""

    def __init__(
        self, *, case: ReadCase, situation: Situation | Inconclusive, names: frozenset[str]
    ) -> None:
        self._case = case
        self._situation = situation
        self._small_talk = is_small_talk(case.query)
        text = f"{case.query} {recent_user_text(case.dialogue)}"
        self._words = {span.text.casefold() for span in split_words(text)}
        self._names = names

    def attributes(
        self, unit: Unit, *, kind: Kind, cosine: float, shared: frozenset[str]
    ) -> UnitAttributes:
        """The attributes of one unit, regardless of other units and of evidence."""
        return UnitAttributes(
            kind=kind,
            subject=self._subject(unit),
            epistemic=cues.epistemic_of(unit.text),
            temporality=cues.temporality_of(unit.text, said_at=unit.said_at, now=self._case.now),
            relevance=self._relevance(unit, kind=kind, cosine=cosine, shared=shared),
        )

    def factors(self, attributes: UnitAttributes) -> FactorAttributes:
        """The same attributes in the scheme of factors."""
        return FactorAttributes(
            scope=_SCOPE[attributes.relevance],
            subject=self._match(attributes.subject),
            role=_ROLE[attributes.kind],
            epistemic=attributes.epistemic,
            temporal=attributes.temporality,
            utility=_UTILITY[attributes.relevance],
            safety=attributes.kind == "safety",
        )

    def _relevance(
        self, unit: Unit, *, kind: Kind, cosine: float, shared: frozenset[str]
    ) -> Relevance:
        if self._small_talk:
            return "none"
        if isinstance(self._situation, Inconclusive) or looks_foreign(unit.text):
            return "uncertain"
        relevance = relevance_of(
            cosine, kind=kind, query=self._case.query, shared=shared, situation=self._situation
        )
        # "Always answer in German" shares no word with what is asked.
        if relevance == "none" and kind == "constraint" and cues.ANSWER_FORM.search(unit.text):
            return "indirect"
        return relevance

    def _subject(self, unit: Unit) -> Subject:
        about = cues.about_whom(unit.text, user_names=self._names)
        if about != "other":
            return about
        return "third_party" if self._speaks_of(unit) else "bystander"

    def _speaks_of(self, unit: Unit) -> bool:
        """Whether the query mentions whom a unit is about, or a group that may include them."""
        # Whom a unit is about is among its first words: "The user's good friend Michael ...".
        start = [span.text for span in split_words(cues.without_label(unit.text))[:5]]
        names = {word.casefold() for word in start if word[:1].isupper()}
        relation = cues.PEOPLE_WORD.findall(" ".join(start))
        named = (names | {word.casefold() for word in relation}) - {"the", "user", "my", "our"}
        if named & self._words:
            return True
        grouped = cues.GROUPS.search(self._case.query) is not None
        return grouped and isinstance(self._situation, Situation)

    def _match(self, subject: Subject) -> SubjectMatch:
        if subject == "uncertain" or isinstance(self._situation, Inconclusive):
            return "uncertain"
        # What users say of themselves does not fit an answer for somebody else.
        misses = subject == "user" and self._situation.target == "third_party"
        return "mismatch" if misses or subject == "bystander" else "match"


def _user_names(case: ReadCase, units: Sequence[Unit]) -> frozenset[str]:
    """Names of the user: of the user's turns, of labels, and what several memories begin with."""
    spoken = {turn.speaker.casefold() for turn in case.dialogue if turn.role == "user"}
    # The local writer puts the speaker's name before what the speaker said.
    labels = (cues.LABEL.match(unit.text) for unit in units)
    spoken |= {label[1].casefold() for label in labels if label is not None}
    matches = (cues.NAMED.match(unit.text) for unit in units)
    counts = Counter(match[1].casefold() for match in matches if match is not None)
    often = {name for name, count in counts.items() if count >= _MIN_NAME_COUNT}
    return frozenset({name for name in spoken | often if name})
