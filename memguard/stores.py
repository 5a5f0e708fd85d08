"""Public names of the store and the journal, each imported at its first use."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memguard.chroma.store import ChromaStore
    from memguard.journal.audit import Audit
    from memguard.journal.forgetting import forget_memory
    from memguard.journal.journal import Journal
    from memguard.journal.quarantine import Quarantine
    from memguard.journal.receipts import ReceiptFilter, ReceiptLog
    from memguard.journal.recovery import recover
    from memguard.journal.removal import delete_memory

__all__ = [
    "Audit",
    "ChromaStore",
    "Journal",
    "Quarantine",
    "ReceiptFilter",
    "ReceiptLog",
    "delete_memory",
    "forget_memory",
    "recover",
]

# LangGraph and LangChain cost a second to import; `import memguard.stores` does not.
_MODULES = {
    "Audit": "memguard.journal.audit",
    "ChromaStore": "memguard.chroma.store",
    "Journal": "memguard.journal.journal",
    "Quarantine": "memguard.journal.quarantine",
    "ReceiptFilter": "memguard.journal.receipts",
    "ReceiptLog": "memguard.journal.receipts",
    "delete_memory": "memguard.journal.removal",
    "forget_memory": "memguard.journal.forgetting",
    "recover": "memguard.journal.recovery",
}


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
