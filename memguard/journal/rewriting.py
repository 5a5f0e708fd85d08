"""Finds the documents of the log that quote a memory, and gives them without the quotes.

A document may quote a memory for three reasons: it names its key, it came from the same
conversation, or it is of the same namespace. In the last case, only the whole text counts.
"""

import json
import re
import sqlite3
from collections.abc import Collection, Mapping
from typing import Any, Literal

from memguard.journal.erasure import Quotes, erase_quotes, words_of
from memguard.journal.events import to_json
from memguard.journal.marks import location_id, state_digest
from memguard.schema.base import Namespace
from memguard.schema.relations import RecordChange

DocumentTable = Literal["receipts", "events"]
"""The tables whose documents may be rewritten."""

# Keys of memguard's own records, and ids of candidates and receipts.
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{24,32}")


def find_rewrites(
    db: sqlite3.Connection,
    quotes: Quotes,
    *,
    erased: Collection[str],
    namespaces: Collection[Namespace],
    conversations: Collection[str],
    originals: Collection[str],
) -> dict[tuple[DocumentTable, int], str]:
    """The documents of other decisions that quote a memory, as they are to be.

    Args:
        db: The log.
        quotes: What is to be erased.
        erased: The receipts that are erased as a whole.
        namespaces: The namespaces of the memories.
        conversations: The conversations that they came from.
        originals: The texts as they were written.
    """
    unusual = [name for name in quotes.ids if not _ID.fullmatch(name)]
    rewrites: dict[tuple[DocumentTable, int], str] = {}
    related: dict[str, Quotes] = {}
    rows = db.execute("SELECT seq, id, namespace, body FROM receipts ORDER BY seq")
    for seq, receipt_id, namespace, body in rows:
        if receipt_id in erased:
            continue
        names_it = not quotes.ids.isdisjoint(_ID.findall(body)) or any(
            to_json(name)[1:-1] in body for name in unusual
        )
        document: Any = None
        if not names_it and conversations:
            document = json.loads(body)
            names_it = document["candidate"].get("conversation_id") in conversations
        if names_it or tuple(json.loads(namespace)) in namespaces:
            document = document or json.loads(body)
            # Single words only where something else connects the two.
            own_words = words_of(document["candidate"]["text"]) if names_it else quotes.words
            related[receipt_id] = quotes.without(own_words)
            changed = erase_quotes(
                document, related[receipt_id], originals=originals, mark_quotes=quotes
            )
            if changed is not document:
                rewrites["receipts", seq] = document_text(changed)
    rewrites |= _event_rewrites(db, related, quotes, originals)
    return rewrites


def _event_rewrites(
    db: sqlite3.Connection,
    related: Mapping[str, Quotes],
    quotes: Quotes,
    originals: Collection[str],
) -> dict[tuple[DocumentTable, int], str]:
    """The documents of the events of some receipts, as they are to be."""
    rewrites: dict[tuple[DocumentTable, int], str] = {}
    digests: dict[tuple[str, str], dict[str, str]] = {}
    marks: list[tuple[int, str, str, Any]] = []
    rows = db.execute(
        "SELECT seq, receipt_id, kind, candidate_id, body FROM events "
        "WHERE body <> '{}' AND kind <> 'forgotten' "
        "AND receipt_id IN (SELECT value FROM json_each(?))",
        (to_json(list(related)),),
    )
    for seq, receipt_id, kind, place, body in rows:
        document = json.loads(body)
        if kind == "marking":
            if place not in quotes.ids:
                marks.append((seq, receipt_id, place, document))
            continue
        changed = erase_quotes(
            document, related[receipt_id], originals=originals, mark_quotes=quotes
        )
        if changed is not document:
            rewrites["events", seq] = document_text(changed)
            for entry in changed.get("changes") or ():
                change = RecordChange.model_validate(entry)
                digests[receipt_id, location_id(change.namespace, change.key)] = {
                    "before": state_digest(change.before),
                    "after": state_digest(change.after),
                }
    # A mark has digests of the states, which have to fit the changes.
    for seq, receipt_id, place, document in marks:
        states = digests.get((receipt_id, place), document)
        if states != document:
            rewrites["events", seq] = document_text(states)
    return rewrites


def document_text(document: Any) -> str:
    """A document as the log has it."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        # An unpaired surrogate of a caller's value, which SQLite can only store escaped.
        return to_json(document)
    return text
