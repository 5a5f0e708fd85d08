"""memguard: memory middleware for LangGraph agents that checks before it stores.

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memguard.conversations import load_conversation, read_conversation
    from memguard.errors import ConfigurationError, ErrorCode, GuardError, MemguardError
    from memguard.guard import create_write_guard
    from memguard.llm.models import resolve_model
    from memguard.methods.consistency_gate import create_consistency_gate_graph
    from memguard.methods.writer import create_writer_graph
    from memguard.schema.config import ConsistencyGate, Writer
    from memguard.schema.decision import AdmissionDecision
    from memguard.schema.memory import CandidateMemory, Conversation, MemoryRecord, Turn
    from memguard.schema.receipt import Receipt
    from memguard.schema.usage import Budget, Usage
    from memguard.schema.verdict import Inconclusive
    from memguard.schema.write import WriteReport

__all__ = [
    "AdmissionDecision",
    "Budget",
    "CandidateMemory",
    "ConfigurationError",
    "ConsistencyGate",
    "Conversation",
    "ErrorCode",
    "GuardError",
    "Inconclusive",
    "MemguardError",
    "MemoryRecord",
    "Receipt",
    "Turn",
    "Usage",
    "WriteReport",
    "Writer",
    "create_consistency_gate_graph",
    "create_write_guard",
    "create_writer_graph",
    "load_conversation",
    "read_conversation",
    "resolve_model",
]

_HOME = {
    "AdmissionDecision": "schema.decision",
    "Budget": "schema.usage",
    "CandidateMemory": "schema.memory",
    "ConfigurationError": "errors",
    "ConsistencyGate": "schema.config",
    "Conversation": "schema.memory",
    "ErrorCode": "errors",
    "GuardError": "errors",
    "Inconclusive": "schema.verdict",
    "MemguardError": "errors",
    "MemoryRecord": "schema.memory",
    "Receipt": "schema.receipt",
    "Turn": "schema.memory",
    "Usage": "schema.usage",
    "WriteReport": "schema.write",
    "Writer": "schema.config",
    "create_consistency_gate_graph": "methods.consistency_gate",
    "create_write_guard": "guard",
    "create_writer_graph": "methods.writer",
    "load_conversation": "conversations",
    "read_conversation": "conversations",
    "resolve_model": "llm.models",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
