"""The product: a guarded write path from conversation to durable memory."""

from memguard.guard.write import create_write_guard

__all__ = ["create_write_guard"]
