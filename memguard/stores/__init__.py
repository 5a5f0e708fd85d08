"""Where memories live, and the log beside them; every name is loaded on first use."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memguard.chroma.store import ChromaStore
    from memguard.stores.audit import Audit
    from memguard.stores.commit import recover
    from memguard.stores.journal import Journal
    from memguard.stores.quarantine import Quarantine
    from memguard.stores.receipt_rows import ReceiptFilter
    from memguard.stores.receipts import ReceiptLog
    from memguard.stores.removal import delete_memory, forget_memory

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
_HOMES = {
    "Audit": "memguard.stores.audit",
    "ChromaStore": "memguard.chroma.store",
    "Journal": "memguard.stores.journal",
    "Quarantine": "memguard.stores.quarantine",
    "ReceiptFilter": "memguard.stores.receipt_rows",
    "ReceiptLog": "memguard.stores.receipts",
    "delete_memory": "memguard.stores.removal",
    "forget_memory": "memguard.stores.removal",
    "recover": "memguard.stores.commit",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
