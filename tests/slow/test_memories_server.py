"""A person's hand on memories that are on a real Chroma server, and back in a folder."""

from pathlib import Path

import pytest

from memguard import Memories
from memguard.stores import ChromaStore
from memguard.testing import HashEmbeddings
from tests.chroma_server import ChromaServer
from tests.unit.memories.conftest import ANA, BOB, texts

pytestmark = pytest.mark.slow

PORTO = "I live in Porto."
LISBON = "I live in Lisbon."


def test_memories_move_between_a_server_and_a_folder(tmp_path: Path) -> None:
    log = tmp_path / "log.sqlite3"
    embed = HashEmbeddings(dims=32)
    with (
        ChromaServer(tmp_path / "server") as server,
        ChromaStore.server(server.host, server.port, embed=embed) as store,
        Memories(store, namespace=ANA, receipts=log) as memories,
        Memories(store, namespace=BOB, receipts=log) as bob,
    ):
        bob.add(PORTO)
        added = memories.add(PORTO, actor="ana")
        edited = memories.edit(added.record_key, LISBON, actor="ana", reason="moved")
        assert [entry.text for entry in memories.history(edited.record_key)] == [PORTO, LISBON]
        memories.undo(memories.delete(edited.record_key).id)
        assert texts(memories) == [LISBON]
        memories.export(tmp_path / "ana.jsonl")
        with (
            ChromaStore.local(tmp_path / "folder", embed=embed) as local,
            Memories(local, namespace=ANA) as copy,
        ):
            done = copy.import_(tmp_path / "ana.jsonl")
            assert (done.memories, done.skipped) == (2, ())
            assert texts(copy, include_superseded=True) == texts(memories, include_superseded=True)
            copy.undo(copy.undo(edited.id).id)
            assert texts(copy) == [LISBON]
            copy.forget_user()
            assert texts(copy, include_superseded=True) == []
        memories.forget_user(actor="ana")
        assert texts(memories, include_superseded=True) == []
        assert texts(bob) == [PORTO]
