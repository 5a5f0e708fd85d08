"""`ChromaStore` and its parts; Chroma itself is imported when a store is opened."""

from memguard.chroma.settings import StoreOptions
from memguard.chroma.store import ChromaStore

__all__ = ["ChromaStore", "StoreOptions"]
