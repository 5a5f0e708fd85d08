"""The log of reads: the complete report of every read, in chronological order.

Every method has an async twin with the prefix `a`; both run the same function in the journal's
thread.
"""

import sqlite3
from dataclasses import dataclass
from typing import ClassVar

from memguard.journal.events import RowFilter, Rows, to_json, utc_text
from memguard.journal.journal import Journal
from memguard.redaction import redact
from memguard.schema.read import ReadReport

READS = Rows(
    table="read_receipts",
    model=ReadReport,
    noun="read",
    erasure="erased at {at} by {actor}, together with a memory that it had recalled",
)
"""The rows of the log of reads."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadFilter(RowFilter):
    """Conditions that reads must meet; a condition that is left out matches all."""

    # A read may have several namespaces, so they have a table of their own.
    in_namespace: ClassVar[str] = (
        "id IN (SELECT read_id FROM read_places WHERE namespace = ? "
        "OR (namespace > ? AND namespace < ?))"
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadPage:
    """Reads, newest first."""

    reads: tuple[ReadReport, ...]
    """The receipts."""
    before: int | None
    """The value of `before` for the next page; `None` on the last page."""


_ALL = ReadFilter()


class ReadLog:
    """The append-only log of reads, in the same file as the decisions on writes.

    A read contains the texts that it recalled. Forgetting one of them erases the read as well; its
    id stays, with the time, the actor and the reason.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def append(self, report: ReadReport) -> ReadReport:
        """Log a read; it is on disk when this returns.

        Raises:
            ReceiptError: If the log failed, or another read has this id.
        """
        return self._journal.write(_append, report)

    async def aappend(self, report: ReadReport) -> ReadReport:
        """See `append`."""
        return await self._journal.awrite(_append, report)

    def get(self, read_id: str) -> ReadReport:
        """The read with this id, or the only one whose id begins with it.

        Raises:
            InvalidInputError: If no read matches, or more than one.
        """
        return self._journal.read(READS.get, read_id)

    async def aget(self, read_id: str) -> ReadReport:
        """See `get`."""
        return await self._journal.aread(READS.get, read_id)

    def list(
        self, which: ReadFilter = _ALL, *, limit: int = 50, before: int | None = None
    ) -> ReadPage:
        """At most `limit` reads, newest first; `before` is that of the previous page."""
        return self._journal.read(_page, which, limit=limit, before=before)

    async def alist(
        self, which: ReadFilter = _ALL, *, limit: int = 50, before: int | None = None
    ) -> ReadPage:
        """See `list`."""
        return await self._journal.aread(_page, which, limit=limit, before=before)

    def count(self, which: ReadFilter = _ALL) -> int:
        """The number of reads."""
        return self._journal.read(_count, which)

    async def acount(self, which: ReadFilter = _ALL) -> int:
        """See `count`."""
        return await self._journal.aread(_count, which)

    def matching(self, read_id: str) -> tuple[str, ...]:
        """This id if a read has it, else up to six ids of reads that begin with it."""
        return self._journal.read(READS.matching, read_id)


def _without_secrets(report: ReadReport) -> ReadReport:
    """The report without secrets that the request contains; memories never contain any."""
    turns = [turn.model_copy(update={"content": redact(turn.content)}) for turn in report.dialogue]
    evidence = [entry.model_copy(update={"text": redact(entry.text)}) for entry in report.evidence]
    changes = {"query": redact(report.query), "dialogue": tuple(turns), "evidence": tuple(evidence)}
    return report.model_copy(update=changes)


def _append(db: sqlite3.Connection, report: ReadReport) -> ReadReport:
    report = _without_secrets(report)
    body = report.model_dump_json(exclude_computed_fields=True)
    if READS.logged(db, report.id, body) is not None:
        return report
    db.execute(
        "INSERT INTO read_receipts (id, at, run_id, body) VALUES (?, ?, ?, ?)",
        (report.id, utc_text(report.at), report.run_id, body),
    )
    db.executemany(
        "INSERT INTO read_places (read_id, namespace) VALUES (?, ?)",
        [(report.id, to_json(namespace)) for namespace in dict.fromkeys(report.namespaces)],
    )
    provenances = (memory.provenance for memory in report.memories)
    candidates = dict.fromkeys(entry.candidate_id for entry in provenances if entry is not None)
    # Forgetting a candidate finds the reads that recalled it in this table.
    db.executemany(
        "INSERT INTO read_memories (read_id, candidate_id) VALUES (?, ?)",
        [(report.id, candidate_id) for candidate_id in candidates],
    )
    return report


def _page(
    db: sqlite3.Connection, criteria: ReadFilter, *, limit: int, before: int | None
) -> ReadPage:
    reads, following = READS.page(db, *criteria.where(), limit=limit, before=before)
    return ReadPage(reads=reads, before=following)


def _count(db: sqlite3.Connection, criteria: ReadFilter) -> int:
    condition, values = criteria.where()
    statement = f"SELECT count(*) FROM read_receipts WHERE {condition}"  # noqa: S608 - constants
    return int(db.execute(statement, values).fetchone()[0])
