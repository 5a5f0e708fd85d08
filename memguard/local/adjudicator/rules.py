"""How the local adjudicator finds situation and attributes: by rules and cosines."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from memguard.local.adjudicator import cues, patterns
from memguard.local.adjudicator.contradiction import contradict, replaces
from memguard.local.adjudicator.evidence import EvidenceReader
from memguard.local.adjudicator.nearness import Nearness, measure, relevance_of
from memguard.local.adjudicator.patterns import NAME, WEAKER
from memguard.local.adjudicator.situation import FOREIGN, is_small_talk, read_situation
from memguard.local.embedder import LocalEmbeddings
from memguard.local.verifier.support import SupportVerifier
from memguard.local.verifier.words import looks_foreign, split_words
from memguard.schema.ledger import Adjudication, Conflict, Row
from memguard.schema.read import ReadCase, Situation
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
from memguard.schema.verdict import Inconclusive

_NEAR_ENOUGH = 0.35
"""Cosine from which two units are compared; below it nothing was found to conflict. Ours."""
_MOST_NAMES = 3
MOST_CHECKED = 200
"""Pairs of units that the support verifier is asked about, the nearest first, which takes a second.
Of two hundred memories that differ in a number only there would be twenty thousand."""

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


class Rules:
    """The rules with the models that they use; called from one thread.

    Args:
        embeddings: The embedder.
        verifier: Says whether evidence or another unit supports a unit; a new one, on the same
            model, when not given.
    """

    def __init__(
        self, *, embeddings: LocalEmbeddings | None, verifier: SupportVerifier | None
    ) -> None:
        self._embeddings = embeddings or LocalEmbeddings()
        self._verifier = verifier or SupportVerifier(encoder=self._embeddings.encoder)
        self._evidence = EvidenceReader(verifier=self._verifier)

    def judge(self, case: ReadCase, units: Sequence[Unit], scheme: Scheme) -> Adjudication:
        """Judge the situation, and then every unit."""
        situation = read_situation(case.query, dialogue=case.dialogue)
        names = _own_names(case, units)
        texts = [unit.text for unit in units]
        near = measure(case, texts, names=names, embeddings=self._embeddings)
        kinds: list[Kind] = [_kind(unit, names) for unit in units]
        relations = _relate(units, kinds, near, names=names, verifier=self._verifier)
        evidence = self._evidence.read(case.evidence, units=units)
        read = _Read(case=case, situation=situation, names=names)
        rows: list[Row] = []
        for place, unit in enumerate(units):
            found = read.attributes(
                unit,
                kind=kinds[place],
                cosine=float(near.query[place]),
                shared=near.shared[place],
            )
            if unit.id in relations.replaced:
                found = found.model_copy(update={"temporality": "superseded"})
            stance = evidence.get(unit.id)
            if stance == "confirms":
                found = found.model_copy(update={"epistemic": "verified"})
            rows.append(
                Row(
                    unit_id=unit.id,
                    attributes=found if scheme == "units" else read.factors(found),
                    evidence_conflict=stance == "contradicts",
                    influence=float(np.clip(near.query[place], 0.0, 1.0)),
                    reason=_reason(found, cosine=float(near.query[place])),
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
        notes += (f"conflicts told by words alone, being too many: {relations.unchecked}",)
    return notes


def _kind(unit: Unit, names: frozenset[str]) -> Kind:
    """What a unit is: as it was cut, unless it was taken for a statement about the world."""
    if unit.kind is not None and unit.kind != "claim":
        return unit.kind
    return cues.kind_of(unit.text, own_names=names)


class _Relations:
    """Which units take the place of others, and which cannot both hold."""

    def __init__(self) -> None:
        self.replaced: set[str] = set()
        self.conflicts: tuple[Conflict, ...] = ()
        self.unchecked = 0
        """Conflicts by their words alone."""


def _relate(
    units: Sequence[Unit],
    kinds: Sequence[Kind],
    near: Nearness,
    *,
    names: frozenset[str],
    verifier: SupportVerifier,
) -> _Relations:
    """Compare the units that are near one another and about the same person."""
    found = _Relations()
    about = [cues.about_whom(unit.text, own_names=names) for unit in units]
    contrary: list[tuple[float, int, int]] = []
    for i, j in combinations(range(len(units)), 2):
        cosine = float(near.between[i, j])
        if cosine < _NEAR_ENOUGH or about[i] != about[j] or units[i].text == units[j].text:
            continue
        for new, old in ((i, j), (j, i)):
            backwards = _is_earlier(units[new], units[old])
            if not backwards and replaces(
                units[new].text,
                units[old].text,
                kinds=(kinds[new], kinds[old]),
                cosine=cosine,
            ):
                found.replaced.add(units[old].id)
        if contradict(units[i].text, units[j].text):
            contrary.append((cosine, i, j))
    open_pairs = [
        (cosine, i, j)
        for cosine, i, j in contrary
        if not {units[i].id, units[j].id} & found.replaced
    ]
    nearest = set(sorted(open_pairs, key=lambda pair: -pair[0])[:MOST_CHECKED])
    found.unchecked = len(open_pairs) - len(nearest)
    found.conflicts = tuple(
        Conflict(first=units[i].id, second=units[j].id)
        for cosine, i, j in open_pairs
        if (cosine, i, j) not in nearest or not _supports(verifier, units[i], units[j])
    )
    return found


def _supports(verifier: SupportVerifier, first: Unit, second: Unit) -> bool:
    """Whether the support verifier holds that one follows from the other; then words misled."""
    judged = verifier.judge(candidate=first.text, context=second.text)
    return judged.ruling == "supported"


def _is_earlier(unit: Unit, other: Unit) -> bool:
    one, two = unit.said_at, other.said_at
    return one is not None and two is not None and one < two


class _Read:
    """What the units of one read have in common."""

    def __init__(
        self, *, case: ReadCase, situation: Situation | Inconclusive, names: frozenset[str]
    ) -> None:
        self._case = case
        self._situation = situation
        self._small_talk = is_small_talk(case.query)
        spoken = " ".join(turn.content for turn in case.dialogue[-4:] if turn.role == "user")
        self._asked = {span.text.casefold() for span in split_words(f"{case.query} {spoken}")}
        self._names = names

    def attributes(
        self, unit: Unit, *, kind: Kind, cosine: float, shared: frozenset[str]
    ) -> UnitAttributes:
        """What is found of one unit by itself."""
        return UnitAttributes(
            kind=kind,
            subject=self._subject(unit),
            epistemic=cues.epistemic_of(unit.text),
            temporality=cues.temporality_of(unit.text, said_at=unit.said_at, now=self._case.now),
            relevance=self._relevance(unit, kind=kind, cosine=cosine, shared=shared),
        )

    def factors(self, found: UnitAttributes) -> FactorAttributes:
        """The same in the other scheme."""
        return FactorAttributes(
            scope=_SCOPE[found.relevance],
            subject=self._match(found.subject),
            role=_ROLE[found.kind],
            epistemic=found.epistemic,
            temporal=found.temporality,
            utility=_UTILITY[found.relevance],
            safety=found.kind == "safety",
        )

    def _relevance(
        self, unit: Unit, *, kind: Kind, cosine: float, shared: frozenset[str]
    ) -> Relevance:
        if self._small_talk:
            return "none"
        if isinstance(self._situation, Inconclusive) or looks_foreign(unit.text):
            return "uncertain"
        return relevance_of(
            cosine,
            kind=kind,
            query=self._case.query,
            shared=shared,
            situation=self._situation,
        )

    def _subject(self, unit: Unit) -> Subject:
        about = cues.about_whom(unit.text, own_names=self._names)
        if about != "other":
            return about
        return "third_party" if self._speaks_of(unit) else "bystander"

    def _speaks_of(self, unit: Unit) -> bool:
        """Whether the query names the person whom a unit is about, or a group they may be in."""
        start = [span.text for span in split_words(cues.bare(unit.text))[:5]]
        names = {word.casefold() for word in start if word[:1].isupper()}
        relation = patterns.PEOPLE_WORD.findall(" ".join(start))
        named = (names | {word.casefold() for word in relation}) - {"the", "user", "my", "our"}
        if named & self._asked:
            return True
        grouped = patterns.GROUPS.search(self._case.query) is not None
        return grouped and isinstance(self._situation, Situation)

    def _match(self, subject: Subject) -> SubjectMatch:
        if subject == "uncertain" or isinstance(self._situation, Inconclusive):
            return "uncertain"
        if subject == "bystander":
            return "mismatch"
        if subject == "user" and self._situation.target == "third_party":
            return "mismatch"
        return "match"


def _own_names(case: ReadCase, units: Sequence[Unit]) -> frozenset[str]:
    """Names that stand for the user: of speakers, and what several memories begin with."""
    spoken = {turn.speaker.casefold() for turn in case.dialogue if turn.role == "user"}
    counts: dict[str, int] = {}
    # The local writer puts the speaker's name before what the speaker said.
    labels = (patterns.LABEL.match(unit.text) for unit in units)
    spoken |= {label[1].casefold() for label in labels if label is not None}
    for unit in units:
        named = patterns.NAMED.match(unit.text)
        if named is not None:
            counts[named[1].casefold()] = counts.get(named[1].casefold(), 0) + 1
    often = {name for name, count in counts.items() if count >= _MOST_NAMES}
    return frozenset({name for name in spoken | often if name})


def _reason(found: UnitAttributes, *, cosine: float) -> str:
    return f"by its wording; nearness to the query {cosine:.2f}, so {found.relevance}"
