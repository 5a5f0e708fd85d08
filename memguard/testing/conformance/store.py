"""The suite for a LangGraph store."""

from memguard.testing.conformance.batches import BatchTests
from memguard.testing.conformance.items import ItemTests
from memguard.testing.conformance.searches import SearchTests
from memguard.testing.conformance.spaces import NamespaceTests


class StoreConformance(ItemTests, SearchTests, NamespaceTests, BatchTests):
    """All tests of a store; a subclass provides the fixture `store`.

    The fixture returns an empty store with an index on the field `text`, created with
    `HashEmbeddings(dims=32)`.
    """
