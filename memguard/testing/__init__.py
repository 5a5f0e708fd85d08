"""Test doubles for your own tests: a scripted chat model, a loopback server, conformance suites."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memguard.testing.conmem import ConMemScript
    from memguard.testing.embeddings import HashEmbeddings
    from memguard.testing.faults import Fault, FaultInjector, FaultName
    from memguard.testing.replies import ServerReply
    from memguard.testing.scripted import ScriptedChatModel, UnexpectedModelCallError
    from memguard.testing.server import LoopbackModelServer

_MODULES = {
    "ConMemScript": "memguard.testing.conmem",
    "Fault": "memguard.testing.faults",
    "FaultInjector": "memguard.testing.faults",
    "FaultName": "memguard.testing.faults",
    "HashEmbeddings": "memguard.testing.embeddings",
    "LoopbackModelServer": "memguard.testing.server",
    "ScriptedChatModel": "memguard.testing.scripted",
    "ServerReply": "memguard.testing.replies",
    "UnexpectedModelCallError": "memguard.testing.scripted",
}

__all__ = [
    "ConMemScript",
    "Fault",
    "FaultInjector",
    "FaultName",
    "HashEmbeddings",
    "LoopbackModelServer",
    "ScriptedChatModel",
    "ServerReply",
    "UnexpectedModelCallError",
]


def __getattr__(name: str) -> Any:
    """Import on first use, because a test rarely needs more than one of them."""
    if name not in _MODULES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(_MODULES[name]), name)
