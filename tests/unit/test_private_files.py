"""Other users of the machine cannot read what memguard stores."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memguard import create_write_guard
from memguard.private_files import create_file, create_folder, make_private, readable_by_others
from memguard.stores import ChromaStore
from memguard.testing import ScriptedChatModel
from memguard.testing.embeddings import HashEmbeddings

pytestmark = pytest.mark.skipif(os.name == "nt", reason="other rules, which the mode does not show")


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    before = os.umask(0o000)
    yield
    os.umask(before)


@pytest.mark.parametrize("exists", [False, True])
def test_store_and_receipts(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "memory"
    if exists:
        folder.mkdir(mode=0o755)
    with ChromaStore.local(folder, embed=HashEmbeddings()) as store:
        guard = create_write_guard(
            ScriptedChatModel(), store=store, namespace=("memories", "ana"), gates=[]
        )
        guard.invoke({"messages": [("user", "x")], "candidates": ["Ana rows."]})
        # Before it is closed: the receipts have a write-ahead log then.
        assert set(readable_by_others(folder)) == ({folder} if exists else set())
    names = {path.name for path in folder.iterdir()}
    assert {"chroma.sqlite3", "memguard.sqlite3", "memguard.lock"} <= names


def test_what_exists_keeps_its_mode_until_it_is_asked_for(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o770)
    (shared / "file").touch(mode=0o664)
    assert create_folder(shared) is False
    create_file(shared / "file")
    assert set(readable_by_others(shared)) == {shared, shared / "file"}
    assert make_private(readable_by_others(shared)) == 2
    assert list(readable_by_others(shared)) == []
    assert create_folder(shared / "a" / "b") is True
