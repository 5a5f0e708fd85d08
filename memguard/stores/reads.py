"""The log of reads: every read, whole, in the order of time.

Each method that waits has a twin for event loops, with an `a` before its name; both run the same
function in the journal's thread.
"""

import functools

from memguard.schema.ledger import ReadReport
from memguard.stores import read_rows
from memguard.stores.journal import Journal
from memguard.stores.read_rows import ReadFilter, ReadPage

_ALL = ReadFilter()


class ReadLog:
    """The append-only log of reads, in the journal beside the decisions on writing.

    A read holds the texts that it recalled. Forgetting one of them erases the read as well; its id
    stays, with when, by whom and why.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def append(self, report: ReadReport) -> ReadReport:
        """Log a read; when this returns it is on disk.

        Raises:
            ReceiptError: If the log failed, or the id is that of another read.
        """
        self._journal.write(functools.partial(read_rows.add, report=report))
        return report

    async def aappend(self, report: ReadReport) -> ReadReport:
        """See `append`."""
        await self._journal.awrite(functools.partial(read_rows.add, report=report))
        return report

    def get(self, read_id: str) -> ReadReport:
        """The read with this id, or the only one whose id begins so.

        Raises:
            InvalidInputError: If there is none, or more than one.
        """
        return self._journal.read(functools.partial(read_rows.get, read_id=read_id))

    async def aget(self, read_id: str) -> ReadReport:
        """See `get`."""
        return await self._journal.aread(functools.partial(read_rows.get, read_id=read_id))

    def list(
        self, which: ReadFilter = _ALL, *, limit: int = 50, before: int | None = None
    ) -> ReadPage:
        """Reads, newest first.

        Args:
            which: What they have in common.
            limit: The most to return.
            before: Where the last page ended.
        """
        return self._journal.read(lambda db: read_rows.page(db, which, limit=limit, before=before))

    async def alist(
        self, which: ReadFilter = _ALL, *, limit: int = 50, before: int | None = None
    ) -> ReadPage:
        """See `list`."""
        return await self._journal.aread(
            lambda db: read_rows.page(db, which, limit=limit, before=before)
        )

    def count(self, which: ReadFilter = _ALL) -> int:
        """How many reads there are."""
        return self._journal.read(functools.partial(read_rows.count, which=which))

    async def acount(self, which: ReadFilter = _ALL) -> int:
        """See `count`."""
        return await self._journal.aread(functools.partial(read_rows.count, which=which))

    def matching(self, read_id: str) -> tuple[str, ...]:
        """The ids of reads that this one names or begins."""
        return self._journal.read(functools.partial(read_rows.matching, read_id=read_id))
