"""Finds in the log what a forgetting concerns.

Decisions on the memory itself are erased: its receipts with their events, reads that recalled it,
cached extractions and decompositions. Receipts of other decisions stay, and lose what they quote of
it. Nothing is changed here; `erase_traces` in `memguard.journal.erasing` does that.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from memguard.errors import ErrorCode, InvalidInputError
from memguard.journal.erasure import Quotes, repeats, text_form, words_of
from memguard.journal.events import events_of, namespace_bounds, to_json
from memguard.journal.marks import location_id
from memguard.journal.rewriting import DocumentTable, find_rewrites
from memguard.redaction import redact
from memguard.schema.base import Namespace
from memguard.schema.forgetting import ForgetSelection

NamespacedKey = tuple[Namespace, str]

_SCRUB = "scrub"


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemText:
    """An item of the store, with what a selection compares."""

    namespace: Namespace
    key: str
    text: str
    """The text of a memory; another item as JSON."""
    candidate_id: str = ""
    is_current: bool = True

    @property
    def location(self) -> NamespacedKey:
        """The namespace and key."""
        return self.namespace, self.key


@dataclass(frozen=True, kw_only=True, slots=True)
class _Decision:
    """The columns of a receipt, and what a selection compares."""

    seq: int
    id: str
    candidate_id: str
    namespace: Namespace
    key: str
    outcome: str
    run_id: str
    text: str
    has_value: bool
    is_scrub: bool
    conversation: str

    @property
    def form(self) -> tuple[Namespace, str]:
        return self.namespace, text_form(self.text)

    @property
    def scrubbed(self) -> tuple[str, str]:
        """What the original and the redacted form of a scrubbed record have in common."""
        return self.run_id, redact(self.text, screen="personal")

    @property
    def location(self) -> NamespacedKey | None:
        """The place of its record, if the text alone decides it."""
        return (self.namespace, self.key) if self.key and not self.has_value else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Traces:
    """What is to be erased, by the position of the rows in their tables."""

    locations: frozenset[NamespacedKey]
    """The records in the store."""
    items: frozenset[NamespacedKey]
    """Those of the records that are known to be in the store."""
    receipts: Mapping[int, str]
    """The receipts, with their ids."""
    candidate_ids: frozenset[str]
    quarantined: int
    events: tuple[int, ...]
    reads: Mapping[int, str]
    extractions: tuple[int, ...]
    decompositions: tuple[int, ...]
    rewrites: Mapping[tuple[DocumentTable, int], str]
    """The new documents of rows that quote a memory."""
    quotes: Quotes
    """What other documents and marks may not repeat."""
    originals: frozenset[str]
    """The texts as they were written."""


@dataclass(kw_only=True, slots=True)
class _Targets:
    """What the first passes collect."""

    decisions: list[_Decision] = field(default_factory=list["_Decision"])
    others: list[_Decision] = field(default_factory=list["_Decision"])
    items: list[ItemText] = field(default_factory=list[ItemText])
    candidate_ids: set[str] = field(default_factory=set[str])
    texts: set[str] = field(default_factory=set[str])
    other_texts: set[str] = field(default_factory=set[str])

    @property
    def namespaces(self) -> set[Namespace]:
        """The namespaces of the decisions and the items."""
        return {entry.namespace for entry in (*self.decisions, *self.items)}


def find_traces(
    db: sqlite3.Connection,
    selection: ForgetSelection,
    items: Sequence[ItemText] = (),
    *,
    last_receipt: int | None = None,
) -> Traces:
    """Find what a selection concerns.

    Args:
        db: The log.
        selection: What is to be forgotten.
        items: The items of the store that may be concerned.
        last_receipt: The position of the last receipt that counts, if a forgetting that was
            interrupted is completed: later ones are new memories.

    Raises:
        InvalidInputError: If there is no such memory, or more than one.
    """
    targets = _find(db, selection, items, last_receipt=last_receipt)
    ids = frozenset(decision.id for decision in targets.decisions)
    extractions = _extractions(db, selection, targets)
    locations = {at for d in targets.decisions if (at := d.location) is not None}
    in_store = {item.location for item in targets.items}
    # The log names a changed memory by a digest of its place.
    places = {location_id(*location) for location in locations | in_store}
    turns = _cited_turns(db, targets.decisions)
    originals = frozenset(text for text in {*targets.texts, *turns} if text.strip())
    vocabulary = words_of("\n".join(targets.other_texts))
    quotes = Quotes(
        texts=frozenset(map(text_form, originals)) - {""},
        needles=frozenset({text_form(selection.contains)} - {""}),
        words=words_of("\n".join(targets.texts)) - vocabulary,
        ids=frozenset({*targets.candidate_ids, *(key for _, key in locations | in_store), *places}),
    )
    return Traces(
        locations=frozenset(locations | in_store),
        items=frozenset(in_store),
        receipts={decision.seq: decision.id for decision in targets.decisions},
        candidate_ids=frozenset(targets.candidate_ids),
        quarantined=_count_held(db, ids),
        events=_events(db, ids, places),
        reads=_reads(db, selection, targets, quotes),
        extractions=extractions,
        decompositions=_decompositions(db, targets.candidate_ids, quotes),
        rewrites=find_rewrites(
            db,
            quotes,
            erased=ids,
            namespaces=targets.namespaces,
            conversations={d.conversation for d in targets.decisions} - {""},
            originals=originals,
        ),
        quotes=quotes,
        originals=originals,
    )


def namespaces_of(db: sqlite3.Connection, which: str) -> tuple[Namespace, ...]:
    """The namespaces of the receipts with this id, candidate or key, or the beginning of one."""
    condition, values = _beginning(which)
    rows = db.execute(f"SELECT DISTINCT namespace FROM receipts WHERE {condition}", values)  # noqa: S608 - constants
    return tuple(tuple(json.loads(row[0])) for row in rows)


def was_forgotten(db: sqlite3.Connection, receipt_id: str) -> bool:
    """Whether the receipt with this id was erased."""
    return any(event.kind == "forgotten" for event in events_of(db, receipt_id))


# -- the decisions on the memories ------------------------------------------------------------


def _find(
    db: sqlite3.Connection,
    selection: ForgetSelection,
    items: Sequence[ItemText],
    *,
    last_receipt: int | None,
) -> _Targets:
    scope, values = _scope(db, selection)
    decisions = [
        decision
        for decision in _decisions(db, scope, values)
        if last_receipt is None or decision.seq <= last_receipt
    ]
    extracted = _extracted(db) if selection.memory else []
    chosen, chosen_items = _choose(db, selection, decisions, items, extracted)
    places = _places(chosen_items)
    targets = _Targets(candidate_ids=_extracted_ids(selection, extracted))
    forms = {decision.form for decision in chosen} | {
        (item.namespace, text_form(item.text)) for item in chosen_items
    }
    locations = {decision.location for decision in chosen} | places
    chosen_ids = {decision.id for decision in chosen}
    for decision in _closure(decisions, chosen_ids, forms, locations):
        targets.decisions.append(decision)
        targets.candidate_ids.add(decision.candidate_id)
        targets.texts.add(decision.text)
    taken = {decision.id for decision in targets.decisions}
    locations |= {decision.location for decision in targets.decisions}
    for item in items:
        if (
            item.location in places
            or item.location in locations
            or item.candidate_id in targets.candidate_ids
            or (item.namespace, text_form(item.text)) in forms
        ):
            targets.items.append(item)
            targets.texts.add(item.text)
            targets.candidate_ids.update({item.candidate_id} - {""})
        else:
            targets.other_texts.add(item.text)
    targets.others = [decision for decision in decisions if decision.id not in taken]
    targets.other_texts |= {decision.text for decision in targets.others}
    return targets


def _scope(db: sqlite3.Connection, selection: ForgetSelection) -> tuple[str, tuple[str, ...]]:
    """The condition of the receipts to look at, in SQL, and the values of its slots."""
    if selection.memory:
        # All decisions in the namespaces of the memory: its text may have others.
        logged = namespaces_of(db, selection.memory)
        names = [to_json(name) for name in logged if selection.covers(name)]
        return "namespace IN (SELECT value FROM json_each(?))", (to_json(names),)
    if selection.exact:
        return "namespace = ?", (to_json(selection.namespace),)
    if not selection.namespace:
        return "1", ()
    return "(namespace = ? OR (namespace > ? AND namespace < ?))", namespace_bounds(
        selection.namespace
    )


def _decisions(
    db: sqlite3.Connection, condition: str, values: tuple[str, ...]
) -> Iterator[_Decision]:
    rows = db.execute(
        "SELECT seq, id, candidate_id, namespace, record_key, outcome, run_id, body FROM receipts "  # noqa: S608 - constants
        f"WHERE {condition} ORDER BY seq",
        values,
    )
    for seq, receipt_id, candidate_id, namespace, key, outcome, run_id, body in rows:
        document = json.loads(body)
        candidate, value = document["candidate"], document.get("value")
        text = candidate["text"]
        yield _Decision(
            seq=seq,
            id=receipt_id,
            candidate_id=candidate_id,
            namespace=tuple(json.loads(namespace)),
            key=key,
            outcome=outcome,
            run_id=run_id,
            text=text,
            has_value=value is not None,
            is_scrub=document["decision"].get("method") == _SCRUB,
            conversation=candidate.get("conversation_id") or "",
        )


def _choose(
    db: sqlite3.Connection,
    selection: ForgetSelection,
    decisions: Sequence[_Decision],
    items: Sequence[ItemText],
    extracted: Sequence["_Extracted"],
) -> tuple[list[_Decision], list[ItemText]]:
    """The decisions and items that a selection names by itself."""
    if selection.everything:
        return list(decisions), list(items)
    if selection.contains:
        needle = text_form(selection.contains)
        return (
            [decision for decision in decisions if needle in text_form(decision.text)],
            [item for item in items if needle in text_form(item.text)],
        )
    which = selection.memory

    def is_named(name: str) -> bool:
        return name == which

    def begins(name: str) -> bool:
        return name.startswith(which)

    for matches in (is_named, begins):
        chosen = [
            decision
            for decision in decisions
            if any(map(matches, (decision.id, decision.candidate_id, decision.key)))
        ]
        chosen_items = [item for item in items if matches(item.key)]
        forms = {decision.form for decision in chosen} | {
            (item.namespace, text_form(item.text)) for item in chosen_items
        }
        places = {(d.namespace, d.key or d.text) for d in chosen} | _places(chosen_items)
        if len(forms) > 1 and len(places) > 1:
            msg = f"{which!r} fits {len(forms)} memories; give more of the id"
            raise InvalidInputError(msg, code=ErrorCode.RECEIPT_NOT_FOUND)
        if chosen or chosen_items:
            return chosen, chosen_items
    if any(entry.candidate_id == which for entry in extracted) or was_forgotten(db, which):
        return [], []
    msg = (
        f"no receipt has the id {which!r}, and no memory has this key; `memguard list` and "
        "`memguard receipts list` show all"
    )
    raise InvalidInputError(msg, code=ErrorCode.RECEIPT_NOT_FOUND)


def _places(items: Iterable[ItemText]) -> set[NamespacedKey]:
    return {item.location for item in items}


def _closure(
    decisions: Sequence[_Decision],
    ids: set[str],
    forms: set[tuple[Namespace, str]],
    locations: set[NamespacedKey | None],
) -> list[_Decision]:
    """The chosen decisions, and all others on the same texts: repeats, generations, scrubbed."""
    locations.discard(None)
    taken: dict[str, _Decision] = {}
    size = -1
    while len(taken) > size:
        size = len(taken)
        scrubbed = {decision.scrubbed for decision in taken.values() if decision.is_scrub}
        for decision in decisions:
            if decision.id in taken:
                continue
            if (
                decision.id in ids
                or decision.form in forms
                or decision.location in locations
                or (decision.is_scrub and decision.scrubbed in scrubbed)
            ):
                taken[decision.id] = decision
                forms.add(decision.form)
                if decision.location is not None:
                    locations.add(decision.location)
    return list(taken.values())


# -- what belongs to them ---------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _Extracted:
    extraction: int
    candidate_id: str
    namespace: Namespace
    text: str


def _extracted(db: sqlite3.Connection) -> list[_Extracted]:
    rows = db.execute("SELECT extraction, candidate_id, body FROM extracted")
    entries: list[_Extracted] = []
    for extraction, candidate_id, body in rows:
        candidate = json.loads(body)
        entries.append(
            _Extracted(
                extraction=extraction,
                candidate_id=candidate_id,
                namespace=tuple(candidate.get("namespace") or ()),
                text=candidate["text"],
            )
        )
    return entries


def _extracted_ids(selection: ForgetSelection, extracted: Iterable[_Extracted]) -> set[str]:
    """The candidates that were extracted and never judged."""
    return {entry.candidate_id for entry in extracted if entry.candidate_id == selection.memory}


def _extractions(
    db: sqlite3.Connection, selection: ForgetSelection, targets: _Targets
) -> tuple[int, ...]:
    """The cached extractions of the memories, and whole ones: their turns have digests of text."""
    needle = text_form(selection.contains)
    forms = {decision.form for decision in targets.decisions}
    chosen: set[int] = set()
    for entry in _extracted(db):
        is_covered = selection.covers(entry.namespace)
        if (
            entry.candidate_id in targets.candidate_ids
            or (entry.namespace, text_form(entry.text)) in forms
            or (selection.everything and is_covered)
            or (needle and is_covered and needle in text_form(entry.text))
        ):
            chosen.add(entry.extraction)
            targets.candidate_ids.add(entry.candidate_id)
            targets.texts.add(entry.text)
    if selection.everything:
        # The key of a conversation begins with its namespace.
        beginning = "/".join((*selection.namespace, ""))
        rows = db.execute(
            "SELECT seq FROM extractions WHERE substr(conversation_key, 1, ?) = ?",
            (len(beginning), beginning),
        )
        chosen |= {row[0] for row in rows}
    return tuple(sorted(chosen))


def _count_held(db: sqlite3.Connection, ids: Iterable[str]) -> int:
    rows = db.execute(
        """SELECT count(*) FROM (SELECT receipt_id FROM events WHERE kind = 'held'
        AND receipt_id IN (SELECT value FROM json_each(?)) EXCEPT SELECT receipt_id FROM events
        WHERE kind IN ('release_intended', 'released', 'discarded'))""",
        (to_json(sorted(ids)),),
    )
    return int(rows.fetchone()[0])


def _events(db: sqlite3.Connection, ids: Iterable[str], places: Iterable[str]) -> tuple[int, ...]:
    """The events of the receipts, and those of other decisions that changed the memories."""
    rows = db.execute(
        "SELECT seq FROM events WHERE kind <> 'forgotten' "
        "AND receipt_id IN (SELECT value FROM json_each(?)) "
        "UNION SELECT seq FROM events WHERE kind = 'marking' "
        "AND candidate_id IN (SELECT value FROM json_each(?))",
        (to_json(sorted(ids)), to_json(sorted(places))),
    )
    return tuple(row[0] for row in rows)


def _reads(
    db: sqlite3.Connection, selection: ForgetSelection, targets: _Targets, quotes: Quotes
) -> dict[int, str]:
    """The reads that recalled one of the memories, or repeat its text in one of its namespaces."""
    reads = dict(
        db.execute(
            """SELECT DISTINCT read_receipts.seq, read_receipts.id FROM read_memories
            JOIN read_receipts ON read_receipts.id = read_memories.read_id
            WHERE candidate_id IN (SELECT value FROM json_each(?))""",
            (to_json(sorted(targets.candidate_ids)),),
        ).fetchall()
    )
    namespaces = targets.namespaces
    if selection.namespace and not selection.memory:
        namespaces.add(selection.namespace)
    rows = db.execute(
        """SELECT read_receipts.seq, read_receipts.id, body, json_group_array(namespace)
        FROM read_receipts JOIN read_places ON read_places.read_id = read_receipts.id
        GROUP BY read_receipts.seq"""
    )
    without_words = quotes.without(quotes.words)
    for seq, read_id, body, places in rows:
        if seq in reads:
            continue
        read_namespaces = [tuple(json.loads(place)) for place in json.loads(places)]
        is_covered = any(map(selection.covers, read_namespaces))
        # A read of a shorter namespace looks into those below it.
        may_repeat = any(
            _is_below(name, target) or _is_below(target, name)
            for name in read_namespaces
            for target in namespaces
        )
        if (selection.everything and is_covered) or (
            may_repeat and any(repeats(t, without_words) for t in strings_of(json.loads(body)))
        ):
            reads[seq] = read_id
    return reads


def _decompositions(
    db: sqlite3.Connection, candidate_ids: Iterable[str], quotes: Quotes
) -> tuple[int, ...]:
    """The cached units of the memories; an entry without an owner is recognised by its words."""
    owners = set(candidate_ids)
    chosen: list[int] = []
    for seq, candidate_id, body in db.execute("SELECT seq, candidate_id, body FROM decompositions"):
        if candidate_id in owners or (
            not candidate_id and any(repeats(text, quotes) for text in strings_of(json.loads(body)))
        ):
            chosen.append(seq)
    return tuple(chosen)


def _is_below(namespace: Namespace, beginning: Namespace) -> bool:
    return namespace[: len(beginning)] == beginning


def strings_of(part: Any) -> Iterator[str]:
    """All strings in a JSON document, names of fields excepted."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, list):
        for entry in cast("list[Any]", part):
            yield from strings_of(entry)
    elif isinstance(part, Mapping):
        for entry in cast("Mapping[str, Any]", part).values():
            yield from strings_of(entry)


def _cited_turns(db: sqlite3.Connection, decisions: Iterable[_Decision]) -> set[str]:
    """The source turns of the decisions, as their own receipts have them."""
    turns: set[str] = set()
    seqs = to_json([decision.seq for decision in decisions])
    rows = db.execute(
        "SELECT body FROM receipts WHERE seq IN (SELECT value FROM json_each(?))", (seqs,)
    )
    for (body,) in rows:
        document = json.loads(body)
        cited = set(document["candidate"].get("turn_ids") or ())
        for report in document.get("reports") or ():
            turns |= {
                turn["content"] for turn in report.get("context") or () if turn.get("id") in cited
            }
    return turns


def _beginning(which: str) -> tuple[str, tuple[str, ...]]:
    """The condition of receipts by the beginning of an id, in SQL, and the values of its slots."""
    end = which + "\U0010ffff"
    columns = ("id", "candidate_id", "record_key")
    condition = " OR ".join(f"({name} >= ? AND {name} < ?)" for name in columns)
    return condition, (which, end) * len(columns)
