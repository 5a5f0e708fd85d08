"""The product: guarded ways into durable memory, and from it into a prompt."""

from memguard.guard.read import create_read_guard
from memguard.guard.write import create_write_guard

__all__ = ["create_read_guard", "create_write_guard"]
