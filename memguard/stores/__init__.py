"""Where memories live; every name is loaded on first use."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memguard.stores.chroma.store import ChromaStore

__all__ = ["ChromaStore"]

# LangGraph and LangChain cost a second to import; `import memguard.stores` does not.
_HOMES = {
    "ChromaStore": "memguard.stores.chroma.store",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
