"""`Memories`: what a person may see and change of what is remembered about them.

Nothing is overwritten: an edit stores another text and marks the first, a deletion marks, and each
change has a receipt that `undo` takes back. Only forgetting erases.
"""

from datetime import datetime
from pathlib import Path
from typing import Self

from langgraph.store.base import BaseStore

from memguard.errors import ErrorCode, InvalidInputError, StoreError
from memguard.journal.commit import Backing, commit
from memguard.journal.forgetting import forget
from memguard.journal.journal import Journal
from memguard.journal.lineage import LineageEntry, lineage
from memguard.journal.undo import undo
from memguard.memories import changes, lookup
from memguard.memories.exports import ExportTarget, export_memories
from memguard.memories.imports import OnImportConflict, import_memories
from memguard.memories.naming import labels_of, memory_to_forget, receipt_to_undo
from memguard.memories.values import (
    ExportReport,
    ImportReport,
    MemoryDetail,
    MemoryEntry,
    MemoryPage,
)
from memguard.portal import run_sync
from memguard.schema.base import Namespace, clean_text
from memguard.schema.forgetting import ForgetReport, ForgetSelection
from memguard.schema.receipt import Receipt, ReceiptFactory

_MAX_LIMIT = 10_000
"""The longest page; more would have to be read into memory at once."""

USER = "user"
"""The actor of a change where the caller names none."""


class Memories:
    """The memories of one namespace, for the person they are about.

    ```python
    with Memories(store, namespace=("memories", "ana")) as memories:
        receipt = memories.add("I am allergic to peanuts.", actor="ana")
        memories.undo(receipt.id, actor="ana")
    ```

    Every method has an async twin with the prefix `a`. A memory is named by its id or a unique
    beginning of it; the same holds for receipts. Texts that a person writes are stored as they are,
    without a judge. Every change has a receipt, which the method returns.

    Leaving the object's `with` block, or `close`, closes a journal that it opened, and never the
    store.
    """

    def __init__(
        self,
        store: BaseStore,
        *,
        namespace: Namespace,
        receipts: Journal | str | Path | None = None,
    ) -> None:
        """Take a store; nothing is read before the first call.

        Args:
            store: Any LangGraph store; of a guarded store, the store behind the guard.
            namespace: The labels of exactly one namespace, without placeholders.
            receipts: The journal of the store, or its file; next to a local `ChromaStore` by
                default, else in memory.

        Raises:
            InvalidInputError: If a label is blank or a placeholder.
        """
        # The store itself, as guards have it: a person's own words need no guard.
        self._store: BaseStore = getattr(store, "unguarded", store)
        self._namespace = labels_of(namespace, store=self._store)
        self._receipts = receipts
        self._open: Backing | None = None
        self._factory = ReceiptFactory()

    @classmethod
    def resolved(cls, store: BaseStore, *, namespace: Namespace, receipts: Journal) -> Self:
        """The memories of a namespace that `resolve_namespace` returned: its labels are escaped."""
        memories = cls(store, namespace=("memories",), receipts=receipts)
        memories._namespace = namespace
        return memories

    @property
    def namespace(self) -> Namespace:
        """The namespace, with labels as the store has them."""
        return self._namespace

    @property
    def journal(self) -> Journal:
        """The journal, which is opened at its first use."""
        return self._backing.journal

    @property
    def _backing(self) -> Backing:
        if self._open is None:
            self._open = Backing(store=self._store, journal=self._journal())
        return self._open

    def _journal(self) -> Journal:
        if isinstance(self._receipts, Journal):
            return self._receipts
        path = self._receipts or getattr(self._store, "journal_path", None)
        return Journal.memory() if path is None else Journal.open(path)

    def close(self) -> None:
        """Close the journal if this object opened it; a later call opens it again."""
        backing, self._open = self._open, None
        if backing is not None and backing.journal is not self._receipts:
            backing.journal.close()

    async def aclose(self) -> None:
        """See `close`."""
        backing, self._open = self._open, None
        if backing is not None and backing.journal is not self._receipts:
            await backing.journal.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    # -- looking ------------------------------------------------------------------------------

    async def alist(
        self,
        *,
        limit: int = 50,
        include_superseded: bool = False,
        contains: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: str | None = None,
    ) -> MemoryPage:
        """See `list`."""
        _check_limit(limit)
        entries = map(lookup.entry_of, await lookup.all_items(self._store, self._namespace))
        return lookup.page_of(
            entries,
            limit=limit,
            include_superseded=include_superseded,
            contains=contains,
            since=since,
            until=until,
            before=before,
        )

    def list(
        self,
        *,
        limit: int = 50,
        include_superseded: bool = False,
        contains: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: str | None = None,
    ) -> MemoryPage:
        """A page of memories, newest first by when they were said, else stored.

        Args:
            limit: Most memories on the page.
            include_superseded: Whether to list those that are no longer current: superseded,
                edited, deleted and undone ones.
            contains: Only memories with this text; case and look-alike letters do not matter.
            since: Only memories of this time or later; a naive time is UTC.
            until: Only memories before this time.
            before: The `before` of the previous page.

        Raises:
            InvalidInputError: If `limit` or `before` cannot be used.
            StoreError: If the store failed.
        """
        return run_sync(
            self.alist(
                limit=limit,
                include_superseded=include_superseded,
                contains=contains,
                since=since,
                until=until,
                before=before,
            )
        )

    async def asearch(
        self, query: str, *, limit: int = 10, include_superseded: bool = False
    ) -> tuple[MemoryEntry, ...]:
        """See `search`."""
        _check_limit(limit)
        return await lookup.nearest(
            self._store,
            self._namespace,
            query=clean_text(query),
            limit=limit,
            with_ended=include_superseded,
        )

    def search(
        self, query: str, *, limit: int = 10, include_superseded: bool = False
    ) -> tuple[MemoryEntry, ...]:
        """The memories nearest to a query, the nearest first; no gate decides about them.

        Args:
            query: The text to search by.
            limit: Most memories.
            include_superseded: Whether to search those that are no longer current as well.

        Raises:
            InvalidInputError: If `limit` cannot be used.
            StoreError: If the store failed.
        """
        return run_sync(self.asearch(query, limit=limit, include_superseded=include_superseded))

    async def ashow(self, memory_id: str) -> MemoryDetail:
        """See `show`."""
        item = await lookup.find_item(self._store, self._namespace, memory_id)
        items = await lookup.all_items(self._store, self._namespace)
        entries = list(map(lookup.entry_of, items))
        current = {entry.id for entry in entries if entry.is_current}
        entry = lookup.with_open_conflicts(lookup.entry_of(item), current=current)
        receipt: Receipt | None = None
        if entry.receipt_id:
            try:
                receipt = await self._backing.receipts.aget(entry.receipt_id)
            except InvalidInputError:
                receipt = None  # forgotten, or in another journal than this one
        return MemoryDetail(
            memory=entry,
            receipt=receipt,
            source=() if receipt is None else lookup.source_turns(receipt),
            details=lookup.details_of(entries, entry.id),
        )

    def show(self, memory_id: str) -> MemoryDetail:
        """Everything about one memory: its state, the receipt that stored it, its source turns.

        Raises:
            InvalidInputError: If no memory has this id, or several begin with it.
        """
        return run_sync(self.ashow(memory_id))

    async def ahistory(self, memory_id: str) -> tuple[LineageEntry, ...]:
        """See `history`."""
        item = await lookup.find_item(self._store, self._namespace, memory_id)
        return await lineage(self.journal, self._store, self._namespace, item.key)

    def history(self, memory_id: str) -> tuple[LineageEntry, ...]:
        """The chain of corrections that a memory belongs to, oldest first, with the receipts.

        Raises:
            InvalidInputError: If no memory has this id, or several begin with it.
        """
        return run_sync(self.ahistory(memory_id))

    # -- changing -----------------------------------------------------------------------------

    async def aadd(
        self, text: str, *, actor: str = USER, said_at: datetime | None = None
    ) -> Receipt:
        """See `add`."""
        text, actor = clean_text(text), clean_text(actor)
        changes.check_text(text)
        await self._recover()
        now = self.journal.now()
        key, item = await lookup.find_text(self._store, self._namespace, text)
        if item is not None:
            receipt = changes.confirm_receipt(
                text, item=item, actor=actor, said_at=said_at or now, receipts=self._factory
            )
        else:
            receipt = changes.add_receipt(
                text,
                namespace=self._namespace,
                key=key,
                actor=actor,
                said_at=said_at or now,
                receipts=self._factory,
            )
        return await self._commit(receipt, actor=actor)

    def add(self, text: str, *, actor: str = USER, said_at: datetime | None = None) -> Receipt:
        """Store a text of a person, without a judge.

        A text that is stored already is confirmed rather than stored twice; the receipt's outcome
        is then `duplicate`.

        Args:
            text: The memory, one fact.
            actor: Who adds it, for the log.
            said_at: When it was said; now by default. Relative dates in the text refer to it.

        Raises:
            InvalidInputError: If the text is blank, too long, a secret, or an instruction to the
                assistant. Nothing is stored, and the text is in no log.
            StoreError: If the store failed; the next change completes the write.
        """
        return run_sync(self.aadd(text, actor=actor, said_at=said_at))

    async def aedit(
        self, memory_id: str, text: str, *, actor: str = USER, reason: str = ""
    ) -> Receipt:
        """See `edit`."""
        text, actor, reason = clean_text(text), clean_text(actor), clean_text(reason)
        changes.check_text(text)
        await self._recover()
        old = await lookup.find_item(self._store, self._namespace, memory_id)
        changes.check_edit(text, old=old)
        key, existing = await lookup.find_text(self._store, self._namespace, text)
        receipt = changes.edit_receipt(
            text,
            old=old,
            key=key,
            existing=existing,
            actor=actor,
            reason=reason,
            at=self.journal.now(),
            receipts=self._factory,
        )
        return await self._commit(receipt, actor=actor)

    def edit(self, memory_id: str, text: str, *, actor: str = USER, reason: str = "") -> Receipt:
        """Put a text of a person in the place of a memory, which stays in the history.

        The new text is stored and the old one marked as edited in one commit.

        Args:
            memory_id: The memory; it must be current.
            text: The new text, one fact.
            actor: Who edits, for the log.
            reason: Why, for the history.

        Raises:
            InvalidInputError: If there is no such memory, it is not current, or the text is the
                same, blank, too long, a secret, or an instruction to the assistant.
            RecordChangedError: If somebody else changed the memory in the meantime.
            StoreError: If the store failed; the next change completes the edit.
        """
        return run_sync(self.aedit(memory_id, text, actor=actor, reason=reason))

    async def adelete(self, memory_id: str, *, actor: str = USER, reason: str = "") -> Receipt:
        """See `delete`."""
        actor, reason = clean_text(actor), clean_text(reason)
        await self._recover()
        item = await lookup.find_item(self._store, self._namespace, memory_id)
        changes.check_current(item, verb="deleted")
        receipt = changes.delete_receipt(item, actor=actor, reason=reason, receipts=self._factory)
        return await self._commit(receipt, actor=actor)

    def delete(self, memory_id: str, *, actor: str = USER, reason: str = "") -> Receipt:
        """Take a memory out of use: no recall finds it any more.

        The text stays in the store and on the receipt, so that `undo` can bring it back. To erase
        it, use `forget`.

        Args:
            memory_id: The memory; it must be current.
            actor: Who deletes, for the log.
            reason: Why, for the history.

        Raises:
            InvalidInputError: If there is no such memory, or it is not current.
            RecordChangedError: If somebody else changed the memory in the meantime.
            StoreError: If the store failed; the next change completes the deletion.
        """
        return run_sync(self.adelete(memory_id, actor=actor, reason=reason))

    async def aundo(self, which: str, *, actor: str = USER, reason: str = "") -> Receipt:
        """See `undo`."""
        actor, reason = clean_text(actor), clean_text(reason)
        await self._recover()
        receipt_id = await receipt_to_undo(
            which, journal=self.journal, store=self._store, namespace=self._namespace
        )
        return await undo(self.journal, self._store, receipt_id, actor=actor, reason=reason)

    def undo(self, which: str, *, actor: str = USER, reason: str = "") -> Receipt:
        """Take back a decision: what it stored is no longer current, what it replaced is again.

        An undo has a receipt, too, and can be undone.

        Args:
            which: A receipt; or a memory, of which the last change is taken back.
            actor: Who takes it back, for the log.
            reason: Why, for the history.

        Raises:
            InvalidInputError: If there is no such receipt or memory in the namespace, or nothing
                to take back.
            RecordChangedError: If a later change builds on it; undo that one first.
            StoreError: If the store failed; the next change completes the undo.
        """
        return run_sync(self.aundo(which, actor=actor, reason=reason))

    # -- erasing ------------------------------------------------------------------------------

    async def aforget(
        self,
        memory_id: str | None = None,
        *,
        contains: str | None = None,
        actor: str = USER,
        reason: str = "",
        preview: bool = False,
    ) -> ForgetReport:
        """See `forget`."""
        if (memory_id is None) == (contains is None):
            msg = "`forget` takes exactly one of a memory and `contains`"
            raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
        if memory_id is not None:
            memory_id = await memory_to_forget(
                memory_id, journal=self.journal, store=self._store, namespace=self._namespace
            )
        selection = ForgetSelection(
            namespace=self._namespace,
            # Other users' namespaces may be below this one.
            exact=True,
            memory=memory_id or "",
            contains=clean_text(contains or ""),
        )
        return await self._forget(selection, actor=actor, reason=reason, preview=preview)

    def forget(
        self,
        memory_id: str | None = None,
        *,
        contains: str | None = None,
        actor: str = USER,
        reason: str = "",
        preview: bool = False,
    ) -> ForgetReport:
        """Erase memories for good: records, receipts' texts, reads, quarantine and caches.

        Args:
            memory_id: One memory, or the receipt of a candidate in quarantine.
            contains: All memories with this text instead.
            actor: Who erases, for the log.
            reason: Why; it stays in the log, so do not repeat the text.
            preview: Only report what would be erased.

        Raises:
            InvalidInputError: If not exactly one of `memory_id` and `contains` is passed, or there
                is no such memory.
            StoreError: If the store failed; forget again.
        """
        return run_sync(
            self.aforget(memory_id, contains=contains, actor=actor, reason=reason, preview=preview)
        )

    async def aforget_user(
        self, *, actor: str = USER, reason: str = "", preview: bool = False
    ) -> ForgetReport:
        """See `forget_user`."""
        selection = ForgetSelection(namespace=self._namespace, exact=True, everything=True)
        return await self._forget(selection, actor=actor, reason=reason, preview=preview)

    def forget_user(
        self, *, actor: str = USER, reason: str = "", preview: bool = False
    ) -> ForgetReport:
        """Erase everything of this namespace for good; see `forget`."""
        return run_sync(self.aforget_user(actor=actor, reason=reason, preview=preview))

    # -- files --------------------------------------------------------------------------------

    async def aexport(self, target: ExportTarget) -> ExportReport:
        """See `export`."""
        return await export_memories(
            target, store=self._store, journal=self.journal, namespace=self._namespace
        )

    def export(self, target: ExportTarget) -> ExportReport:
        """Write everything of this namespace as JSON lines, for `import_` or for reading.

        One line has one memory with its origin and state, or one receipt with its events. Memories
        that are no longer current are included. Receipts that quote a secret in quarantine are not.

        Args:
            target: A path, which is replaced and readable by its owner only, or an open text file.

        Raises:
            InvalidInputError: If the file cannot be written.
            StoreError: If the store failed.
        """
        return run_sync(self.aexport(target))

    async def aimport(
        self, source: str | Path, *, actor: str = USER, on_conflict: OnImportConflict = "raise"
    ) -> ImportReport:
        """See `import_`."""
        await self._recover()
        return await import_memories(
            source,
            store=self._store,
            journal=self.journal,
            namespace=self._namespace,
            actor=clean_text(actor),
            on_conflict=on_conflict,
        )

    def import_(
        self, source: str | Path, *, actor: str = USER, on_conflict: OnImportConflict = "raise"
    ) -> ImportReport:
        """Restore an export of the same namespace, into an empty store or another one.

        Memories keep their ids, origin and state, receipts their ids and events. The file is
        checked as a whole before anything is written. Importing it again changes nothing.

        Args:
            source: The file.
            actor: Who imports, for the log.
            on_conflict: What to do where another memory or receipt has the same id: `raise` before
                anything is written, or `skip` it and leave what is there.

        Raises:
            InvalidInputError: If the file cannot be read, a line is wrong, it is of another
                namespace, or something else is there under an id.
            StoreError: If the store failed; import again.
        """
        return run_sync(self.aimport(source, actor=actor, on_conflict=on_conflict))

    # -- inside -------------------------------------------------------------------------------

    async def _recover(self) -> None:
        # An interrupted change comes first, or the next one would build on half of it.
        await self._backing.recover_once()

    async def _commit(self, receipt: Receipt, *, actor: str) -> Receipt:
        try:
            result = await commit(self.journal, self._store, [receipt], actor=actor)
        except StoreError:
            self._backing.committer.left_pending = True
            raise
        return result.receipts[0]

    async def _forget(
        self, selection: ForgetSelection, *, actor: str, reason: str, preview: bool
    ) -> ForgetReport:
        return await forget(
            self.journal,
            self._store,
            selection=selection,
            actor=clean_text(actor),
            reason=clean_text(reason),
            preview=preview,
        )


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= _MAX_LIMIT:
        msg = f"`limit` is {limit!r}: pass a number from 1 to {_MAX_LIMIT}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
