"""The receipt log: every decision, whole, in the order it was taken.

Each method that waits has a twin for event loops, with an `a` before its name; both run the same
function in the journal's thread.
"""

import functools
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime

from memguard.schema.receipt import Receipt, WriteOutcome
from memguard.stores import receipt_rows
from memguard.stores.events import JournalEvent, State, events_after, events_of, state_of
from memguard.stores.forgetting import Forgotten, forget
from memguard.stores.journal import Journal
from memguard.stores.receipt_rows import ReceiptFilter, ReceiptPage

_ALL = ReceiptFilter()
_ACTOR = "memguard"
_REPLAY_BATCH = 500


class ReceiptLog:
    """The append-only log of decisions."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def append(self, receipt: Receipt, *, actor: str = _ACTOR) -> Receipt:
        """Log a decision; what it admits is then an intent, which `commit` or `recover` fulfils.

        Returns:
            The receipt in the log: an earlier one when the candidate was judged already under the
            same policy.

        Raises:
            ReceiptError: If the id is that of another decision.
        """
        return self._journal.write(
            functools.partial(_append, receipt=receipt, actor=actor, at=self._journal.now())
        )

    async def aappend(self, receipt: Receipt, *, actor: str = _ACTOR) -> Receipt:
        """See `append`."""
        return await self._journal.awrite(
            functools.partial(_append, receipt=receipt, actor=actor, at=self._journal.now())
        )

    def get(self, receipt_id: str) -> Receipt:
        """The receipt with this id, or the only one whose id begins so.

        Raises:
            InvalidInputError: If there is none, or more than one.
        """
        return self._journal.read(functools.partial(receipt_rows.get, receipt_id=receipt_id))

    async def aget(self, receipt_id: str) -> Receipt:
        """See `get`."""
        return await self._journal.aread(functools.partial(receipt_rows.get, receipt_id=receipt_id))

    def find(self, candidate_id: str, *, policy_digest: str) -> Receipt | None:
        """The decision on a candidate under a policy, if it was taken already."""
        return self.find_all([candidate_id], policy_digest=policy_digest).get(candidate_id)

    async def afind(self, candidate_id: str, *, policy_digest: str) -> Receipt | None:
        """See `find`."""
        receipts = await self.afind_all([candidate_id], policy_digest=policy_digest)
        return receipts.get(candidate_id)

    def find_all(self, candidate_ids: Sequence[str], *, policy_digest: str) -> dict[str, Receipt]:
        """The decisions on these candidates under a policy, by candidate id."""
        return self._journal.read(
            lambda db: receipt_rows.find_all(db, candidate_ids, policy_digest=policy_digest)
        )

    async def afind_all(
        self, candidate_ids: Sequence[str], *, policy_digest: str
    ) -> dict[str, Receipt]:
        """See `find_all`."""
        return await self._journal.aread(
            lambda db: receipt_rows.find_all(db, candidate_ids, policy_digest=policy_digest)
        )

    def list(
        self, which: ReceiptFilter = _ALL, *, limit: int = 50, before: int | None = None
    ) -> ReceiptPage:
        """Receipts, newest first.

        Args:
            which: What they have in common.
            limit: The most to return.
            before: Where the last page ended.
        """
        return self._journal.read(
            lambda db: receipt_rows.page(db, which, limit=limit, before=before)
        )

    async def alist(
        self, which: ReceiptFilter = _ALL, *, limit: int = 50, before: int | None = None
    ) -> ReceiptPage:
        """See `list`."""
        return await self._journal.aread(
            lambda db: receipt_rows.page(db, which, limit=limit, before=before)
        )

    def count(self, which: ReceiptFilter = _ALL) -> dict[WriteOutcome, int]:
        """How many receipts there are of each outcome."""
        return self._journal.read(functools.partial(receipt_rows.count, which=which))

    async def acount(self, which: ReceiptFilter = _ALL) -> dict[WriteOutcome, int]:
        """See `count`."""
        return await self._journal.aread(functools.partial(receipt_rows.count, which=which))

    def state(self, receipt_id: str) -> State | None:
        """Where a decision stands; `None` when the log does not know it."""
        return self._journal.read(functools.partial(state_of, receipt_id=receipt_id))

    async def astate(self, receipt_id: str) -> State | None:
        """See `state`."""
        return await self._journal.aread(functools.partial(state_of, receipt_id=receipt_id))

    def history(self, receipt_id: str) -> tuple[JournalEvent, ...]:
        """All that happened to a decision, in order."""
        return self._journal.read(functools.partial(events_of, receipt_id=receipt_id))

    async def ahistory(self, receipt_id: str) -> tuple[JournalEvent, ...]:
        """See `history`."""
        return await self._journal.aread(functools.partial(events_of, receipt_id=receipt_id))

    def replay(self) -> Iterator[JournalEvent]:
        """Every event of the log in order; `live_states` of them is the state of the log."""
        after = 0
        while batch := self._journal.read(
            functools.partial(events_after, seq=after, limit=_REPLAY_BATCH)
        ):
            yield from batch
            after = batch[-1].seq

    async def areplay(self) -> AsyncIterator[JournalEvent]:
        """See `replay`."""
        after = 0
        while batch := await self._journal.aread(
            functools.partial(events_after, seq=after, limit=_REPLAY_BATCH)
        ):
            for event in batch:
                yield event
            after = batch[-1].seq

    def forget(self, which: str, *, actor: str, reason: str) -> Forgotten:
        """Erase a candidate's text from the log; what stays says that, by whom and why.

        The memory store is not touched (`forget_memory` does both), nor are receipts of other
        candidates that were drawn from the same turns.

        Args:
            which: A candidate id, or the id of a receipt, or the beginning of one.
            actor: Who wants it.
            reason: Why; kept, so do not repeat the text.

        Raises:
            InvalidInputError: If the log knows nothing of that id.
        """
        done = self._journal.write(
            functools.partial(
                forget, which=which, actor=actor, reason=reason, at=self._journal.now()
            )
        )
        self._journal.read(_shrink)
        return done

    async def aforget(self, which: str, *, actor: str, reason: str) -> Forgotten:
        """See `forget`."""
        done = await self._journal.awrite(
            functools.partial(
                forget, which=which, actor=actor, reason=reason, at=self._journal.now()
            )
        )
        await self._journal.aread(_shrink)
        return done


def _append(db: sqlite3.Connection, *, receipt: Receipt, actor: str, at: datetime) -> Receipt:
    return receipt_rows.record_decisions(db, [receipt], actor=actor, at=at)[0]


def _shrink(db: sqlite3.Connection) -> None:
    """Empty the write-ahead log, where the erased text would stay until it is overwritten."""
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
