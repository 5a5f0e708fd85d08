"""The log of reads: every read, whole, in the order of time.

Every method has an async twin with the prefix `a`; both run the same function in the journal's
thread.
"""

import functools
import sqlite3
from dataclasses import dataclass
from datetime import datetime

from memguard.journal.events import to_json
from memguard.journal.journal import Journal
from memguard.journal.rows import Rows, namespace_bounds, time_conditions, utc_text
from memguard.schema.base import Namespace
from memguard.schema.ledger import ReadReport

READS = Rows(
    table="read_receipts",
    model=ReadReport,
    noun="read",
    erasure="erased at {at} by {actor}, together with a memory that it had recalled",
)
"""The rows of the log of reads."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadFilter:
    """Which reads; everything left out matches all."""

    namespace: Namespace = ()
    """The beginning of a namespace that was read."""
    run_id: str | None = None
    """The run they belong to."""
    since: datetime | None = None
    """The earliest time, itself included."""
    until: datetime | None = None
    """The latest time, itself left out."""

    def where(self) -> tuple[str, tuple[str, ...]]:
        """The condition in SQL, and the values that stand in it."""
        parts: list[str] = ["1"]
        values: list[str] = []
        if self.run_id is not None:
            parts.append("run_id = ?")
            values.append(self.run_id)
        for condition, at in time_conditions(self.since, self.until):
            parts.append(condition)
            values.append(at)
        if self.namespace:
            parts.append(
                "id IN (SELECT read_id FROM read_places WHERE namespace = ? "
                "OR (namespace > ? AND namespace < ?))"
            )
            values.extend(namespace_bounds(self.namespace))
        return " AND ".join(parts), tuple(values)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadPage:
    """Reads, newest first."""

    reads: tuple[ReadReport, ...]
    """The receipts."""
    before: int | None
    """Give this to `list` for the next page; `None` on the last page."""


def add(db: sqlite3.Connection, report: ReadReport) -> None:
    """Log a read; the same one again changes nothing.

    Raises:
        ReceiptError: If the id is that of another read.
    """
    body = report.model_dump_json()
    if READS.logged(db, report.id, body) is not None:
        return
    db.execute(
        "INSERT INTO read_receipts (id, at, run_id, body) VALUES (?, ?, ?, ?)",
        (report.id, utc_text(report.at), report.run_id, body),
    )
    db.executemany(
        "INSERT INTO read_places (read_id, namespace) VALUES (?, ?)",
        [(report.id, to_json(namespace)) for namespace in dict.fromkeys(report.namespaces)],
    )
    # What a later forgetting finds this receipt by.
    db.executemany(
        "INSERT INTO read_memories (read_id, candidate_id) VALUES (?, ?)",
        [(report.id, candidate_id) for candidate_id in _candidates(report)],
    )


def page(db: sqlite3.Connection, which: ReadFilter, *, limit: int, before: int | None) -> ReadPage:
    """Reads, newest first."""
    condition, values = which.where()
    reads, following = READS.page(db, condition, values, limit=limit, before=before)
    return ReadPage(reads=reads, before=following)


def count(db: sqlite3.Connection, which: ReadFilter) -> int:
    """How many reads there are."""
    condition, values = which.where()
    statement = f"SELECT count(*) FROM read_receipts WHERE {condition}"  # noqa: S608 - constants
    return int(db.execute(statement, values).fetchone()[0])


def _candidates(report: ReadReport) -> list[str]:
    provenances = (memory.provenance for memory in report.memories)
    return list(
        dict.fromkeys(
            provenance.candidate_id for provenance in provenances if provenance is not None
        )
    )


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
        self._journal.write(functools.partial(add, report=report))
        return report

    async def aappend(self, report: ReadReport) -> ReadReport:
        """See `append`."""
        await self._journal.awrite(functools.partial(add, report=report))
        return report

    def get(self, read_id: str) -> ReadReport:
        """The read with this id, or the only one whose id begins so.

        Raises:
            InvalidInputError: If there is none, or more than one.
        """
        return self._journal.read(lambda db: READS.get(db, read_id))

    async def aget(self, read_id: str) -> ReadReport:
        """See `get`."""
        return await self._journal.aread(lambda db: READS.get(db, read_id))

    def list(
        self, which: ReadFilter = _ALL, *, limit: int = 50, before: int | None = None
    ) -> ReadPage:
        """Reads, newest first.

        Args:
            which: What they have in common.
            limit: The most to return.
            before: Where the last page ended.
        """
        return self._journal.read(lambda db: page(db, which, limit=limit, before=before))

    async def alist(
        self, which: ReadFilter = _ALL, *, limit: int = 50, before: int | None = None
    ) -> ReadPage:
        """See `list`."""
        return await self._journal.aread(lambda db: page(db, which, limit=limit, before=before))

    def count(self, which: ReadFilter = _ALL) -> int:
        """How many reads there are."""
        return self._journal.read(functools.partial(count, which=which))

    async def acount(self, which: ReadFilter = _ALL) -> int:
        """See `count`."""
        return await self._journal.aread(functools.partial(count, which=which))

    def matching(self, read_id: str) -> tuple[str, ...]:
        """The ids of reads that this one names or begins."""
        return self._journal.read(lambda db: READS.matching(db, read_id))
