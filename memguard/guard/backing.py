"""What a guard writes to: a store, its journal, and the commits between them."""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakKeyDictionary

from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore

from memguard.errors import ConfigurationError, ErrorCode
from memguard.guard.committer import Committer
from memguard.journal.caches import ExtractionLog
from memguard.journal.commit import recover
from memguard.journal.journal import Journal
from memguard.journal.receipts import ReceiptLog

IN_MEMORY_NOTE = (
    "receipts and quarantine are kept in memory and end with the process: pass `receipts=PATH`"
)


@dataclass
class Backing:
    """A store and its journal. Opens nothing before its first use."""

    store: BaseStore
    journal: Journal
    recovered: bool = False
    receipts: ReceiptLog = field(init=False)
    extractions: ExtractionLog = field(init=False)
    committer: Committer = field(init=False)

    def __post_init__(self) -> None:
        """Create the views of the journal."""
        self.receipts = ReceiptLog(self.journal)
        self.extractions = ExtractionLog(self.journal)
        self.committer = Committer(self.journal, self.store)

    async def recover_once(self) -> tuple[str, ...]:
        """Before the first write, finish what an earlier process started; return problems."""
        if self.recovered:
            return ()
        done = await recover(self.journal, self.store)
        self.recovered = not done.problems
        return done.problems


class Backings:
    """Finds the backing of the run in progress, and creates each one once."""

    def __init__(self, store: BaseStore | None, receipts: Journal | str | Path | None) -> None:
        self._store = store
        self._receipts = receipts
        self._lock = threading.Lock()
        self._backings: WeakKeyDictionary[BaseStore, Backing] = WeakKeyDictionary()

    def current(self) -> Backing:
        """The backing of the guard's own store, or else of the store of the host graph.

        Raises:
            ConfigurationError: If there is no store.
        """
        store = self._store if self._store is not None else get_runtime().store
        if store is None:
            msg = (
                "memguard has no store: pass `store=`, for example "
                "`ChromaStore.local('memory')`, or give one to the graph or agent around it"
            )
            raise ConfigurationError(msg, code=ErrorCode.STORE_MISSING)
        # Inside a guarded store: what this guard commits has been judged.
        store = getattr(store, "unguarded", store)
        with self._lock:
            backing = self._backings.get(store)
            if backing is None:
                backing = Backing(store=store, journal=self._journal_of(store))
                self._backings[store] = backing
            return backing

    def _journal_of(self, store: BaseStore) -> Journal:
        if isinstance(self._receipts, Journal):
            return self._receipts
        path = self._receipts or getattr(store, "journal_path", None)
        return Journal.memory() if path is None else Journal.open(path)
