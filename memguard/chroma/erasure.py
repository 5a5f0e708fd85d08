"""Removes what Chroma keeps of rows that were deleted.

After a deletion, Chroma has the text and the vector in several places: its queue of writes, which
it empties when it saves an index; the index, which only marks a row as deleted; free pages of its
database, and the free part of pages that are in use; and the unused part of an index, which Chroma
writes with whatever was in that memory before. `Engine.delete_rows` overwrites the vectors.
`save_indexes` makes Chroma save every index and empty its queue, by calls that any client can make.
The rest needs the files.
"""

import secrets
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

from memguard import compat
from memguard.chroma.engine import Engine
from memguard.chroma.settings import Local, Memory
from memguard.errors import ErrorCode, StoreError

_BUSY_SECONDS = 60.0
_SETTLE_SECONDS = 0.5


def erase_files(engine: Engine, *, data_path: Path | None) -> tuple[str, ...]:
    """Remove what Chroma's files have of deleted rows, after `save_indexes`.

    Interrupting it loses nothing, and calling it again completes it. Not within `in_use`, because
    it closes the client of a local store.

    Args:
        engine: The engine of the store.
        data_path: The data folder of a Chroma server on this machine, if there is one.

    Returns:
        What remains to be done, in one line each; empty if nothing does.

    Raises:
        StoreError: If Chroma or the rewriting of its database failed; call again.
    """
    location = engine.connection.location
    if isinstance(location, Memory):
        return ()
    try:
        if isinstance(location, Local):
            empties_queue = engine.connection.work_offline(_vacuum)
        elif data_path is not None:
            empties_queue = _vacuum(data_path, settle_seconds=_SETTLE_SECONDS)
        else:
            return (_on_the_server("DIR"),)
    except (sqlite3.Error, OSError) as error:
        msg = (
            f"the database of Chroma ({location}) could not be rewritten: {error!r}. The items are "
            "deleted, but their bytes are still in the file; close other programs, and try again"
        )
        raise StoreError(msg, code=ErrorCode.STORE_FAILED) from error
    if not empties_queue:
        path = location.path if isinstance(location, Local) else data_path
        return (_on_the_server(str(path)),)
    return ()


_vacuum = partial(compat.vacuum_chroma, seconds=_BUSY_SECONDS)


def save_indexes(engine: Engine) -> None:
    """Make Chroma save the index of every collection, and empty its queue of writes."""
    collections = [collection for _, collection in engine.collections.shards()]
    catalogue = engine.collections.catalogue
    for collection in (*collections, *([catalogue] if catalogue is not None else ())):
        # Updates of rows that do not exist: they count as writes and change nothing.
        count = compat.sync_threshold_of_collection(collection)
        ids = [f"saved-{secrets.token_hex(8)}" for _ in range(count)]
        for batch in engine.connection.batches(ids):
            metadatas: list[Any] = [{"saved": True}] * len(batch)
            engine.connection.call(collection.update, ids=batch, metadatas=metadatas)


def _on_the_server(path: str) -> str:
    return (
        "the bytes of deleted rows stay in free pages of Chroma's database until this command has "
        f"run on the machine of the server: chroma vacuum --path {path} --force"
    )
