"""A process that writes corrections to a Chroma server, for `test_two_guards`."""

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from memguard import Conversation, Turn, create_write_guard
from memguard.stores import ChromaStore
from memguard.testing import HashEmbeddings

NAMESPACE = ("memories", "ana")
CITIES = {
    "Left": ("Lisbon", "Rome", "Madrid"),
    "Right": ("Paris", "Vienna", "London"),
}
START = datetime(2026, 1, 1, tzinfo=UTC)


def open_store(port: int) -> Any:
    """The store of both processes."""
    return ChromaStore.server("127.0.0.1", port, embed=HashEmbeddings())


async def write(port: int, journal: str, *, name: str) -> None:
    """Say in each round that one has moved to another town."""
    async with open_store(port) as store:
        guard = create_write_guard("local", store=store, namespace=NAMESPACE, receipts=journal)
        for number, city in enumerate(CITIES[name]):
            turn = Turn(
                id=f"{number}",
                role="user",
                content=f"I live in {city}.",
                at=START + timedelta(days=2 * number + (name == "Left")),
            )
            talk = Conversation(id=f"{name} {number}", turns=(turn,))
            writes = (await guard.ainvoke({"conversation": talk}))["writes"]
            sys.stdout.write(f"{writes.receipts[0].outcome}\n")


if __name__ == "__main__":
    _, port_of_server, path, name_of_writer = sys.argv
    asyncio.run(write(int(port_of_server), path, name=name_of_writer))
