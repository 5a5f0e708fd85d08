"""Repairs a store whose collections were deleted or replaced by another program.

The rows are the source: the catalogue is brought in line with them, and what is in memory of them
is dropped. Deleted items are not in Chroma any more; `memguard doctor --repair` restores those that
the receipts contain.
"""

import logging
from collections.abc import Iterable

from memguard.chroma.engine import Engine
from memguard.chroma.values import EXPIRES, NEVER, namespace_of
from memguard.schema.base import Namespace

logger = logging.getLogger(__name__)

_PAGE = 2_000


def reopen(engine: Engine) -> None:
    """Open the collections that exist now; called after one of them was missing.

    Raises:
        StoreError: If Chroma fails; the next operation tries again.
        StoreConfigurationError: If a collection that has rows is not memguard's.
    """
    with engine.every_lock():
        shards = engine.collections.reopen()
        # Another thread may have met the same fault and opened them already.
        if not shards:
            return
        engine.blocks.clear()
        engine.large.clear()
        engine.catalogue.load()
        line = _relist(engine, shards)
    logger.warning("collections were deleted or created anew by another program; %s", line)


def renew(engine: Engine) -> None:
    """Open a local Chroma again after it failed, for example because the disk was full.

    Raises:
        StoreConfigurationError: If it cannot be opened; the next operation tries again.
    """
    connection = engine.connection
    if not connection.is_doubtful and engine.generation == connection.generation:
        return
    with engine.every_lock():
        connection.renew()
        # The collections of the old client are closed; those of the new one have the same ids.
        engine.collections.reopen()
        engine.generation = connection.generation


def mend_catalogue(engine: Engine) -> None:
    """Create the catalogue of a store that has shards and no catalogue.

    Shards of earlier versions do not have the settings of their store. Their catalogue is created
    by the next write, with the settings of the writer.
    """
    if engine.collections.stamp is None and engine.collections.has_shards:
        reopen(engine)


def relist(engine: Engine) -> str:
    """List exactly the namespaces that have rows; returns one line that says what was done."""
    with engine.every_lock():
        return _relist(engine, engine.collections.indexes)


def _relist(engine: Engine, shards: Iterable[int]) -> str:
    chosen = set(shards)
    listed = {
        namespace
        for namespace in engine.catalogue.under(())
        if engine.collections.shard_of(namespace) in chosen
    }
    present: dict[Namespace, bool] = {}
    for shard, collection in engine.collections.shards():
        if shard not in chosen:
            continue
        for page in engine.connection.pages(
            collection, where=None, include=["metadatas"], size=_PAGE
        ):
            for row in page["metadatas"] or []:
                namespace = namespace_of(row)
                expires = float(row[EXPIRES]) < NEVER
                present[namespace] = present.get(namespace, False) or expires
    missing = {name: expires for name, expires in present.items() if name not in listed}
    engine.catalogue.add(missing)
    engine.catalogue.remove(listed - set(present))
    return (
        f"the list of namespaces was repaired: {len(missing)} added, "
        f"{len(listed - set(present))} without items removed"
    )
