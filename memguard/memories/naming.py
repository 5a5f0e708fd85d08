"""Names that a person passes: of a namespace, of a decision to undo, of a memory to forget."""

import re
import sqlite3

from langgraph.store.base import BaseStore

from memguard.errors import ErrorCode, InvalidInputError
from memguard.journal.journal import Journal
from memguard.journal.marks import marks_of
from memguard.journal.receipts import RECEIPTS
from memguard.memories import lookup
from memguard.namespaces import encode_label
from memguard.schema.base import Namespace, clean_text, is_blank

_PLACEHOLDER = re.compile(r"\{[A-Za-z_]\w*\}")


def labels_of(namespace: Namespace, *, store: BaseStore) -> Namespace:
    """The labels of a namespace as the store has them.

    Raises:
        InvalidInputError: If it is no tuple of labels, or a label is blank or a placeholder.
    """
    labels = tuple(namespace)
    if isinstance(namespace, str) or not labels or any(is_blank(label) for label in labels):
        msg = f"the namespace {namespace!r} is no tuple of labels: pass ('memories', 'ana')"
        raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
    for label in labels:
        # As in the guards: such a label cannot be encoded, and others are taken as they are.
        if any("\ud800" <= letter <= "\udfff" for letter in label):
            msg = f"the label {label!r} has half a character: pass valid Unicode"
            raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
        # A guard would fill it in from its run; here it would be an empty namespace of that name.
        if _PLACEHOLDER.fullmatch(label):
            msg = f"the namespace {labels!r} has the placeholder {label!r}: pass the user's own id"
            raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
    if getattr(store, "accepts_any_label", False):
        return labels
    return tuple(encode_label(label) for label in labels)


async def receipt_to_undo(
    which: str, *, journal: Journal, store: BaseStore, namespace: Namespace
) -> str:
    """The receipt with this id, or that of the last change of the memory with this id.

    Raises:
        InvalidInputError: If the namespace has none, or several.
    """
    name = clean_text(which).strip()
    receipts = await journal.aread(_receipts_beginning, name, namespace)
    items = await lookup.all_items(store, namespace)
    keys = [item.key for item in items if name and item.key.startswith(name)]
    if len(receipts) + len(keys) != 1:
        problem = "fits several ids" if receipts or keys else "is the id of nothing"
        msg = (
            f"{name!r} {problem} in {' / '.join(namespace)}: pass the id of a receipt or of a "
            "memory, with more characters if need be"
        )
        raise InvalidInputError(msg, code=ErrorCode.RECEIPT_NOT_FOUND)
    if receipts:
        return receipts[0]
    marks = await journal.aread(marks_of, namespace, keys[0])
    if marks:
        return marks[-1].receipt_id
    entry = next(lookup.entry_of(item) for item in items if item.key == keys[0])
    if not entry.is_guarded:
        msg = f"another program stored the memory {entry.id!r}, and nobody has changed it since"
        raise InvalidInputError(msg, code=ErrorCode.RECEIPT_NOT_FOUND)
    return entry.receipt_id


async def memory_to_forget(
    memory_id: str, *, journal: Journal, store: BaseStore, namespace: Namespace
) -> str:
    """The key of a memory, or the receipt of a candidate that never became one.

    Raises:
        InvalidInputError: If the namespace has none, or several.
    """
    try:
        item = await lookup.find_item(store, namespace, memory_id)
    except InvalidInputError:
        receipts = await journal.aread(
            _receipts_beginning, clean_text(memory_id).strip(), namespace
        )
        if len(receipts) != 1:
            raise
        return receipts[0]
    return item.key


def _receipts_beginning(
    db: sqlite3.Connection, prefix: str, namespace: Namespace
) -> tuple[str, ...]:
    """The ids of receipts of exactly this namespace that are this one or begin with it."""
    ids = RECEIPTS.matching(db, prefix) if prefix else ()
    return tuple(name for name in ids if RECEIPTS.get(db, name).namespace == namespace)
