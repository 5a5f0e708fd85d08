"""`ChromaStore` and its parts; Chroma itself is imported when a store is opened."""

from memguard.stores.chroma.settings import StoreOptions
from memguard.stores.chroma.store import ChromaStore

__all__ = ["ChromaStore", "StoreOptions"]
