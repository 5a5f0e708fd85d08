"""Checks whose fact the words of a candidate are: `My wife is vegan` says nothing about the user.

`check_owners` compares the owner of every clause of a candidate with those of the clauses in which
its words were found. A word that only a clause about somebody else has is lost. The scores of the
network do not enter.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memguard.local.encoder import Matrix
from memguard.local.owners import UNKNOWN, USER, WORLD, Clause
from memguard.local.owners.reader import split
from memguard.local.owners.words import RELATIONS, word_set
from memguard.local.verifier.alignment import Alignment
from memguard.local.verifier.numbers import is_stated, values_of
from memguard.local.verifier.units import TextUnit
from memguard.local.verifier.words import Flags

Ownership = Literal["same", "other", "unclear"]
"""Whose clauses state the candidate: its owner's, somebody else's, or it cannot be told."""

# Shares of a candidate's weight that may be lost; chosen on the development pairs.
_MAX_LOST = 0.25
_MAX_UNCLEAR = 0.5
_SIMILAR = 0.45
_HARDLY = 0.5
_MAX_BETWEEN = 2
_ROLES = {"user": USER, "assistant": "assistant", "tool": "tool", "document": "document"}
_GENERIC = word_set("speaker user assistant system tool document the mr mrs dr")
_OBJECT_ME = re.compile(r"\b(?:me|us|myself)\b", re.IGNORECASE)
_PRONOUN = re.compile(r"\b(?:it|them|one|ones|that|mine|this)\b", re.IGNORECASE)
_UNREAL = re.compile(
    r"\b(?:if|would|could|might|may|maybe|perhaps|wish|hope|want|used|almost|nearly|should|unless|"
    r"quit|stopped|avoids?|refused?|sold|lost|pretend|imagine|probably|think|thought|except|instead|rather|longer|until|from|before)\b"
    r"|['\u2019]d\b",
    re.IGNORECASE,
)
_VERBS = (
    re.compile(r"\b(?:am|is|are|was|were|be|been)\b|['\u2019](?:m|s|re)\b|\bim\b", re.IGNORECASE),
    re.compile(r"\b(?:has|have|had|got|having)\b|['\u2019]ve\b", re.IGNORECASE),
    re.compile(r"\b(?:can|cannot|can['\u2019]?t)\b", re.IGNORECASE),
)
_NO_EVIDENCE = frozenset({"assistant", "tool", "document", "system"})
_AGREES = re.compile(r"(?:me|same|so|neither|nor|likewise|ditto)\b", re.IGNORECASE)
_FIRST_WORD = re.compile(r"[A-Z]\w*")
_CLOSING = re.compile(r"[.!?\n\u3002\uff01\uff1f;]")
_SENTENCE_END = re.compile(r"[.!?\n]")
_WE = re.compile(r"\b(?:we|let's|our|we're|we've)\b", re.IGNORECASE)
_DENIES = re.compile(
    r"\b(?:not|cannot|cant|dont|doesnt|without|nobody|nothing|no|never|neither|nor|nicht)\b|n't\b",
    re.IGNORECASE,
)
# A word for several relations is compatible with each of them.
_GENERAL = {
    "partner": {"wife", "husband", "girlfriend", "boyfriend", "fiancee", "fiance", "ex"},
    "parent": {"mother", "father"},
    "child": {"son", "daughter", "baby"},
    "sibling": {"brother", "sister"},
    "grandparent": {"grandmother", "grandfather"},
    "grandchild": {"grandson", "granddaughter"},
    "pet": {"dog", "cat", "horse", "rabbit", "hamster", "parrot"},
    "wife": {"fiancee", "girlfriend"},
    "husband": {"fiance", "boyfriend"},
    "boss": {"manager"},
    "colleague": {"friend", "boss", "manager"},
    "friend": {"roommate", "classmate", "neighbour"},
}
_RELATIONS = frozenset(RELATIONS["en"].values())
_SAME, _MAYBE, _OTHER = 0, 1, 2


@dataclass(frozen=True, slots=True)
class OwnedClause:
    """A clause of the context."""

    clause: Clause
    """The clause, with offsets in its unit's text."""
    unit: int
    """Index of its unit."""
    speaker: str
    """Who says it, as an owner."""
    is_question: bool = False
    """Whether its sentence ends with a question mark."""


@dataclass(frozen=True, slots=True)
class OwnerCheck:
    """Whose clauses state a candidate, and whom it is about."""

    ownership: Ownership
    """The result."""
    owner: str = ""
    """Whom the candidate is about, where this matters."""
    stated_of: str = ""
    """Whom the context says it of."""
    share: float = 0.0
    """How much of what it says is unclear, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class ClauseMap:
    """The clauses of a context, and which of them every word is in."""

    clauses: tuple[OwnedClause, ...]
    """In the order of the context."""
    columns: NDArray[np.int64]
    """Index of the clause of every context word, shape (C,); -1 for a label."""
    in_subject: Flags
    """Whether the word belongs to its clause's subject, shape (C,)."""
    aliases: dict[str, str]
    """Names that the context gives to relations."""
    owners: frozenset[str]
    """Whose facts its clauses are, by relation where a name has one."""
    speakers: frozenset[str]
    """Whoever speaks, as an owner."""
    sentences: NDArray[np.int64]
    """The number of the sentence of every context word, shape (C,)."""
    cover: Matrix
    """How well every context word states every candidate word, in [0, 1], shape (F, C)."""


def candidate_clauses(text: str, units: Sequence[TextUnit]) -> tuple[Clause, ...]:
    """The clauses of a candidate; the only named speaker of a context is the user."""
    return split(text, "", _user_names(units), "")


def map_clauses(alignment: Alignment, units: Sequence[TextUnit], *, about_user: bool) -> ClauseMap:
    """Split the units of a context into clauses, and locate its words in them.

    Args:
        alignment: A candidate aligned with the units.
        units: The units.
        about_user: Whether the candidate is about the user; then every named speaker counts as one.
    """
    names = _user_names(units)
    labels = list(dict.fromkeys(unit.speaker for unit in units))
    clauses: list[OwnedClause] = []
    columns: list[int] = []
    in_subject: list[bool] = []
    sentences: list[int] = []
    sentence = 0
    people: tuple[str, ...] = ()
    for index, (unit, source) in enumerate(zip(units, alignment.sources, strict=True)):
        label = _label(unit.speaker)
        is_user = unit.by_user and label not in _ROLES.values()
        views = names | {label} if about_user and is_user else names
        others = [_label(other) for other in labels if other != unit.speaker]
        listener = others[0] if len(others) == 1 else ""
        split_unit = split(unit.text, label, views, listener, people)
        speaker = USER if not label or label in views else label
        first = len(clauses)
        clauses += [
            OwnedClause(clause, index, speaker, _is_question(unit.text, clause.end))
            for clause in split_unit
        ]
        people = _latest_people(people, split_unit, speaker)
        shift = len(unit.labelled) - len(unit.text)
        at, end = -1, 0
        sentence += 1
        for span in source.encoded.words.spans:
            sentence += bool(_SENTENCE_END.search(unit.labelled, end, span.start))
            sentences.append(sentence)
            start, end = span.start - shift, span.end
            while at + 1 < len(split_unit) and split_unit[at + 1].start <= start:
                at += 1
            inside = start >= 0 and at >= 0
            columns.append(first + at if inside else -1)
            in_subject.append(inside and start < split_unit[at].subject_end)
    aliases = {owned.clause.name: owned.clause.owner for owned in clauses if owned.clause.name}
    return ClauseMap(
        clauses=tuple(clauses),
        columns=np.array(columns, dtype=np.int64),
        in_subject=np.array(in_subject, dtype=bool),
        aliases=aliases,
        owners=frozenset(_canonical(owned.clause.owner, aliases) for owned in clauses),
        speakers=frozenset(owned.speaker for owned in clauses),
        sentences=np.array(sentences, dtype=np.int64),
        cover=_cover(alignment),
    )


def _is_question(text: str, end: int) -> bool:
    stop = _CLOSING.search(text, end)
    return stop is not None and stop[0] in {"?", "\uff1f"}


def recognise_owners(claim: Sequence[Clause], clause_map: ClauseMap) -> tuple[Clause, ...]:
    """The clauses of a candidate, with persons as owners that only the context shows to be some.

    `Rui has asthma` alone may be about a thing; beside `Rui is allergic to nuts` it is not.
    """
    people = clause_map.owners | frozenset(clause_map.aliases)
    result: list[Clause] = []
    for clause in claim:
        first = _FIRST_WORD.match(clause.text)
        name = first[0].casefold() if first else ""
        is_person = clause.owner in {WORLD, UNKNOWN} and name in people - _RELATIONS
        if first is not None and is_person:
            subject_end = max(clause.subject_end, clause.start + first.end())
            clause = replace(clause, owner=name, subject_end=subject_end)  # noqa: PLW2901
        result.append(clause)
    return tuple(result)


def says_of(claim: Clause, owned: OwnedClause, clause_map: ClauseMap) -> bool:
    """Whether a clause of the context is surely about the owner of a clause of a candidate."""
    return (
        owned.clause.owner not in {WORLD, UNKNOWN} and _compare(claim, owned, clause_map) == _SAME
    )


def source_of(clause_map: ClauseMap, index: int) -> int | None:
    """The clause that `me too` repeats; `None` for an elided clause that decides by itself."""
    if not _AGREES.match(clause_map.clauses[index].clause.text):
        return None
    return _repeated_clause(clause_map, index)


def is_of_user(owner: str) -> bool:
    """Whether an owner is the user, or a relation of the user."""
    return owner == USER or owner.split("'s ", 1)[0] in _RELATIONS


def _user_names(units: Sequence[TextUnit]) -> frozenset[str]:
    labels = {_label(unit.speaker) for unit in units if unit.by_user} - {"", *_ROLES.values()}
    return frozenset(labels) if len(labels) == 1 else frozenset()


def _label(speaker: str) -> str:
    """A speaker as an owner: the first name, unless it says nothing."""
    low = speaker.casefold().strip()
    if low in _ROLES:
        return _ROLES[low]
    first = low.split(" ", 1)[0]
    return low if first in _GENERIC else first


def _latest_people(
    people: tuple[str, ...], clauses: Sequence[Clause], speaker: str
) -> tuple[str, ...]:
    """Whom `she` may mean in the next turn, the latest last."""
    mentioned = [
        clause.owner for clause in clauses if clause.owner not in {speaker, USER, WORLD, UNKNOWN}
    ]
    return (*people, *mentioned)[-4:]


def check_owners(
    alignment: Alignment, clause_map: ClauseMap, *, claim: Sequence[Clause], start: int
) -> OwnerCheck:
    """Whether the clauses that state a sentence are about the person the sentence is about.

    Args:
        alignment: The sentence aligned with its units.
        clause_map: The clauses of these units.
        claim: The clauses of the whole candidate.
        start: Offset of the sentence in the candidate.
    """
    cover = clause_map.cover
    words = alignment.fact.words
    rows = np.arange(len(words))
    offsets = np.array([span.start + start for span in words.spans])
    worst = OwnerCheck("same")
    for clause in claim:
        inside = (offsets >= clause.start) & (offsets < clause.end)
        inside &= (offsets >= clause.subject_end) | ~words.stop
        if clause.owner in {UNKNOWN, WORLD}:
            continue
        subject = offsets < clause.subject_end
        selected = rows[inside & ~subject & (alignment.weight > 0)]
        if not len(selected):
            continue
        check = _check_clause(alignment, clause_map, clause, cover, selected)
        if check.ownership == "other":
            return check
        worst = check if check.ownership == "unclear" else worst
    return worst


def _cover(alignment: Alignment) -> Matrix:
    """How well every context word states every candidate word, in [0, 1], shape (F, C)."""
    words = alignment.fact.words
    similar = np.where(alignment.cos >= _SIMILAR, alignment.cos, 0.0)
    # A name or a number is stated or not: a similar one is another.
    similar[words.capital | words.number] = 0.0
    # The vector of `it` is near to what it means, whoever said that.
    similar[:, np.concatenate([source.encoded.words.stop for source in alignment.sources])] = 0.0
    cover = np.where(alignment.same, 1.0, similar)
    readings = [
        reading for source in alignment.sources for reading in source.encoded.words.readings
    ]
    for row in np.flatnonzero(words.number):
        wanted = words.readings[int(row)]
        for column, reading in enumerate(readings):
            if not reading:
                continue
            values = values_of(reading)
            if is_stated(wanted, values):
                cover[row, column] = 1.0
            elif values & values_of(wanted):
                # `1990-03-03` has a part of its date in `1990`.
                cover[row, column] = _SIMILAR
    return cover.astype(np.float32)


def is_restated(
    alignment: Alignment, clause_map: ClauseMap, *, claim: Sequence[Clause], start: int
) -> bool:
    """Whether a sentence repeats clauses of the same owners, apart from the grammatical person.

    Every word that carries a detail is in one clause, in the same order, with the same verb, and
    both deny or neither does. The arguments are those of `check_owners`.
    """
    words = alignment.fact.words
    offsets = np.array([span.start + start for span in words.spans])
    cover = clause_map.cover
    checked = False
    for clause in claim:
        if clause.owner in {UNKNOWN, WORLD} or clause.is_elided:
            return False
        inside = (offsets >= clause.subject_end) & (offsets < clause.end)
        rows = np.flatnonzero(inside & (alignment.weight > 0) & ~words.negation)
        if not len(rows):
            if (inside & ~words.stop).any():
                return False
            continue
        if not any(
            _repeats(alignment, clause_map, index, clause, cover[rows])
            for index in range(len(clause_map.clauses))
        ):
            return False
        checked = True
    return checked


def _repeats(  # noqa: PLR0911 - one condition each
    alignment: Alignment, clause_map: ClauseMap, index: int, claim: Clause, cover: Matrix
) -> bool:
    owned = clause_map.clauses[index]
    clause = owned.clause
    if owned.speaker in _NO_EVIDENCE or clause.owner == WORLD:
        return False
    if _compare(claim, owned, clause_map) != _SAME:
        return False
    denies = bool(_DENIES.search(clause.text))
    if clause.is_elided:
        # `Me too` repeats what the other speaker said.
        source = _repeated_clause(clause_map, index)
        if source is None or not _AGREES.match(clause.text):
            return False
        index, clause = source, clause_map.clauses[source].clause
        denies = bool(_DENIES.search(clause.text))
    columns = np.flatnonzero((clause_map.columns == index) & ~clause_map.in_subject)
    matches: list[int] = []
    for row in cover:
        later = columns[(columns > (matches[-1] if matches else -1)) & (row[columns] >= 1.0)]
        if not len(later):
            return False
        matches.append(int(later[0]))
    # What is left out in between may be the partner of a word: `three nephews and one niece`.
    words = [source.encoded.words for source in alignment.sources]
    between = np.arange(matches[0], matches[-1] + 1)
    between = between[~np.isin(between, matches)]
    plain = ~np.concatenate([unit.stop for unit in words])
    segments = np.concatenate([unit.clause for unit in words])
    if plain[between].sum() > _MAX_BETWEEN or len(set(segments[matches].tolist())) > 1:
        return False
    question = np.concatenate([source.encoded.words.question for source in alignment.sources])
    if question[columns].any() or _UNREAL.search(clause.text) or _UNREAL.search(claim.text):
        return False
    if denies != bool(_DENIES.search(claim.text)):
        return False
    # `The user is a dog` has the words of `I have a dog`.
    predicate = claim.text[max(0, claim.subject_end - claim.start) :]
    return all(verb.search(clause.text) for verb in _VERBS if verb.search(predicate))


def _check_clause(
    alignment: Alignment,
    clause_map: ClauseMap,
    clause: Clause,
    cover: Matrix,
    rows: NDArray[np.int64],
) -> OwnerCheck:
    claim_denies = bool(_DENIES.search(clause.text))
    kinds = np.array(
        [_compare(clause, owned, clause_map) for owned in clause_map.clauses], dtype=np.int64
    )
    of_column = np.where(clause_map.columns >= 0, kinds[clause_map.columns], _MAYBE)
    of_column = _with_mentions(of_column, alignment, clause_map, clause)
    best = np.zeros((3, len(rows)), dtype=np.float32)
    for kind in (_SAME, _MAYBE, _OTHER):
        chosen = of_column == kind
        if chosen.any():
            best[kind] = cover[rows][:, chosen].max(axis=1)
    repeated = _repeated_columns(clause_map, kinds, claim_denies=claim_denies)
    if repeated.any():
        best[_SAME] = np.maximum(best[_SAME], cover[rows][:, repeated].max(axis=1))
    shared = _shared_verbs(alignment, clause_map, kinds)
    if shared.any():
        best[_SAME] = np.maximum(best[_SAME], cover[rows][:, shared].max(axis=1))
    meant = _meant_columns(clause_map, kinds)
    if meant.any():
        best[_MAYBE] = np.maximum(best[_MAYBE], cover[rows][:, meant].max(axis=1))
    weight = alignment.weight[rows]
    # What somebody else's clause states word for word is hardly meant by a similar word.
    supported = np.where(best[_SAME] < 1.0, _HARDLY * best[_SAME], best[_SAME])
    supported = np.where(best[_OTHER] >= 1.0, supported, best[_SAME])
    doubted = np.where(best[_OTHER] >= 1.0, _HARDLY, 1.0) * best[_MAYBE]
    lost = weight * np.maximum(0.0, best[_OTHER] - np.maximum(supported, doubted))
    unclear = weight * np.maximum(0.0, np.maximum(best[_MAYBE], best[_OTHER]) - best[_SAME])
    details = (alignment.fact.words.number | alignment.fact.words.capital)[rows]
    is_other = lost.sum() >= _MAX_LOST * weight.sum() or bool((details & (lost > 0)).any())
    if is_other:
        row = int(rows[int(np.argmax(lost))])
        columns = np.flatnonzero((of_column == _OTHER) & (cover[row] > 0))
        at = clause_map.columns[int(columns[np.argmax(cover[row][columns])])]
        stated_of = clause_map.clauses[int(at)].clause.owner
        return OwnerCheck("other", owner=clause.owner, stated_of=stated_of)
    if unclear.sum() >= _MAX_UNCLEAR * weight.sum():
        share = float(unclear.sum() / weight.sum())
        return OwnerCheck("unclear", owner=clause.owner, share=share)
    return OwnerCheck("same")


def _compare(claim: Clause, owned: OwnedClause, clause_map: ClauseMap) -> int:
    """Whether a clause of the context is about the owner of a clause of the candidate."""
    clause = owned.clause
    if claim.name and clause.name and claim.name != clause.name:
        return _OTHER
    wanted = {_canonical(owner, clause_map.aliases) for owner in (claim.owner, *claim.also)}
    owners = {_canonical(owner, clause_map.aliases) for owner in (clause.owner, *clause.also)}
    if any(_compatible(first, second) for first in wanted for second in owners):
        return _SAME
    if claim.name and claim.name in {clause.owner, clause.name}:
        return _SAME
    if WORLD in owners or UNKNOWN in owners:
        # `Jazz is great` is the view of whoever says it, and of nobody else.
        # A fragment without a subject, too: `Took a trip to Rome`.
        fragment = clause.subject_end == clause.start and not clause.is_carried
        return _SAME if owned.speaker in wanted and (WORLD in owners or fragment) else _MAYBE
    if owned.speaker in owners and owned.speaker not in wanted:
        head = clause.text[: max(0, clause.subject_end - clause.start)]
        if _WE.search(head) and wanted & clause_map.speakers:
            return _MAYBE
    # A name that no clause explains may be that of any relation.
    names = {owner for owner in wanted if owner not in clause_map.speakers and owner != USER}
    return (
        _OTHER
        if not names or names & clause_map.owners or _are_relations(names, owners)
        else _MAYBE
    )


def _are_relations(wanted: set[str], owners: set[str]) -> bool:
    relations = _RELATIONS | {USER}
    return all(owner.rsplit("'s ", 1)[-1] in relations for owner in wanted | owners)


def _canonical(owner: str, aliases: dict[str, str]) -> str:
    head, mark, tail = owner.partition("'s ")
    return aliases.get(head, head) + mark + tail


def _compatible(first: str, second: str) -> bool:
    if first == second:
        return True
    head, _, relation = first.rpartition("'s ")
    other_head, _, other = second.rpartition("'s ")
    if head != other_head:
        return False
    return other in _GENERAL.get(relation, ()) or relation in _GENERAL.get(other, ())


def _with_mentions(
    of_column: NDArray[np.int64], alignment: Alignment, clause_map: ClauseMap, claim: Clause
) -> NDArray[np.int64]:
    """Words by which a clause about somebody else tells something of the owner, too.

    `My sister Clara lives in Lyon` tells that the user has a sister Clara, `my wife loves my
    garden` that the user has a garden, and `my mother taught me Polish` that the user learned it.
    """
    result = of_column.copy()
    words = [source.encoded.words for source in alignment.sources]
    lowered = [span.text.lower().removesuffix("'s") for unit in words for span in unit.spans]
    for index, owned in enumerate(clause_map.clauses):
        columns = np.flatnonzero(clause_map.columns == index)
        if not len(columns) or of_column[columns[0]] != _OTHER:
            continue
        clause = owned.clause
        if owned.speaker == claim.owner:
            names = {clause.owner.rsplit("'s ", 1)[-1], clause.name}
            for column in columns[clause_map.in_subject[columns]]:
                # Not all of the subject: in `my son's nut allergy` the allergy is the son's.
                if RELATIONS["en"].get(lowered[column], lowered[column]) in names:
                    result[column] = _SAME
            rest = clause.text[max(0, clause.subject_end - clause.start) :]
            if _OBJECT_ME.search(rest):
                result[columns] = _MAYBE
            for column in columns:
                before = range(max(0, int(column) - 2), int(column))
                if any(
                    lowered[at] in {"my", "our"} and not clause_map.in_subject[at] for at in before
                ):
                    result[column] = _SAME
        elif owned.speaker == clause.owner and _mentions(claim, clause, clause_map):
            result[columns] = _MAYBE
    return result


def _mentions(claim: Clause, clause: Clause, clause_map: ClauseMap) -> bool:
    """Whether a clause names the claim's owner other than as its subject."""
    rest = clause.text[max(0, clause.subject_end - clause.start) :].casefold()
    last = claim.owner.rsplit("'s ", 1)[-1]
    names = {last, claim.name, *(n for n, o in clause_map.aliases.items() if o == claim.owner)}
    return any(name and re.search(rf"\b{re.escape(name)}\b", rest) for name in names)


def _repeated_columns(
    clause_map: ClauseMap, kinds: NDArray[np.int64], *, claim_denies: bool
) -> Flags:
    """Words of the statements that an elided clause of the owner completes: `me too`, `I do`."""
    repeated = np.zeros(len(clause_map.columns), dtype=bool)
    for index, owned in enumerate(clause_map.clauses):
        clause = owned.clause
        if not clause.is_elided or kinds[index] != _SAME:
            continue
        source = _repeated_clause(clause_map, index)
        if source is None:
            continue
        text = clause_map.clauses[source].clause.text
        denies = bool(_DENIES.search(clause.text))
        # `Me too` takes over a negation; `I do` and `I don't` decide it themselves.
        agrees = not re.search(r"\b(?:do|am|have|did|can|was|will|does|is)\b|n't\b", clause.text)
        denies = denies or (agrees and bool(_DENIES.search(text)))
        if denies == claim_denies:
            repeated |= clause_map.columns == source
    return repeated


def _shared_verbs(alignment: Alignment, clause_map: ClauseMap, kinds: NDArray[np.int64]) -> Flags:
    """The verb of a clause before one of the owner's that has none of its own."""
    shared = np.zeros(len(clause_map.columns), dtype=bool)
    sources = [source.encoded.words for source in alignment.sources]
    stop = np.concatenate([source.stop for source in sources])
    details = np.concatenate([source.number | source.capital for source in sources])
    for index, owned in enumerate(clause_map.clauses):
        if index and owned.clause.shares_verb and kinds[index] == _SAME:
            before = (clause_map.columns == index - 1) & ~clause_map.in_subject & ~stop
            shared[np.flatnonzero(before & ~details)[:1]] = True
    return shared


def _meant_columns(clause_map: ClauseMap, kinds: NDArray[np.int64]) -> Flags:
    """Words that a pronoun in a clause of the owner may mean: `Lena is allergic and I love it`."""
    meant = np.zeros(len(clause_map.columns), dtype=bool)
    for index, owned in enumerate(clause_map.clauses):
        rest = owned.clause.text[max(0, owned.clause.subject_end - owned.clause.start) :]
        if kinds[index] == _SAME and index and _PRONOUN.search(rest):
            before = owned.unit - 1
            for earlier in range(index - 1, -1, -1):
                if clause_map.clauses[earlier].unit < before:
                    break
                meant |= clause_map.columns == earlier
    return meant


def _repeated_clause(clause_map: ClauseMap, index: int) -> int | None:
    for before in range(index - 1, -1, -1):
        owned = clause_map.clauses[before]
        if not owned.clause.is_elided:
            return before
    return None
