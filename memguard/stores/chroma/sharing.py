"""Who shares what: one connection per place, one engine per collection, closed by the last."""

import threading

from memguard.stores.chroma.connection import Connection, connect
from memguard.stores.chroma.engine import Engine
from memguard.stores.chroma.places import Place


class _Held:
    """An open place and its users."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.engines: dict[str, Engine] = {}
        self.users = 0


_lock = threading.Lock()
_held: dict[Place, _Held] = {}


def acquire(place: Place, *, collection: str, budget: int) -> Engine:
    """The engine of a place's collection, opened if nobody in this process has it open.

    Raises:
        StoreConfigurationError: If the place cannot be used.
        StoreError: If it cannot be reached.
    """
    # Here and not at construction: resolving a path asks the disk, which must not block a loop.
    place = place.resolved()
    with _lock:
        held = _held.get(place)
        if held is None:
            held = _Held(connect(place))
        try:
            engine = held.engines.get(collection)
            if engine is None:
                engine = Engine(held.connection, name=collection, budget=budget)
                held.engines[collection] = engine
        except BaseException:
            if held.users == 0:
                held.connection.close()
            raise
        _held[place] = held
        held.users += 1
        return engine


def release(engine: Engine) -> None:
    """Leave the place of an engine; the last one closes it."""
    place = engine.connection.place
    with _lock:
        held = _held[place]
        held.users -= 1
        if held.users == 0:
            del _held[place]
            for each in held.engines.values():
                each.close()
            held.connection.close()
