"""The loopback model of `memguard.testing` answers the prompts of both directions."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from memguard import create_read_guard, create_write_guard, resolve_model
from memguard.journal.journal import Journal
from memguard.testing import LoopbackModelServer
from memguard.testing.embeddings import HashEmbeddings
from memguard.testing.memory_model import memory_answer


@pytest.mark.parametrize("admission", ["ps", "fc"])
def test_it_writes_and_reads(admission: Any) -> None:
    store = InMemoryStore(index={"dims": 64, "embed": HashEmbeddings(dims=64)})
    with LoopbackModelServer(memory_answer) as server, Journal.memory() as journal:
        model = resolve_model("openai:m", base_url=server.url, api_key="k")
        settings: Any = {"store": store, "namespace": ("memories",), "receipts": journal}
        talk = [("user", "I moved to Porto in May. My sister plays the cello.")]
        writes = create_write_guard(model, **settings).invoke({"messages": talk})["writes"]
        assert writes.counts["stored"] == 2
        guard = create_read_guard(model, admission=admission, **settings)
        read = guard.invoke({"query": "A walk through Porto?"})["read"]
    assert read.flags == ()
    assert ["Porto" in verdict.unit.text for verdict in read.admitted] == [True]
    assert ["cello" in verdict.unit.text for verdict in read.withheld] == [True]
