"""The suite for a LangGraph store."""

from memguard.testing.conformance.batches import BatchTests
from memguard.testing.conformance.items import ItemTests
from memguard.testing.conformance.searches import SearchTests
from memguard.testing.conformance.spaces import NamespaceTests


class StoreConformance(ItemTests, SearchTests, NamespaceTests, BatchTests):
    """Everything a store must do; provide the fixture `store`.

    The store is empty, and indexed on the field `text` with `HashEmbeddings(dims=32)`.
    """
