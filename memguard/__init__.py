"""memguard: memory middleware for LangGraph agents that checks before it stores.

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from memguard.agent import create_memory_agent
    from memguard.checkpoints import checkpoint_types
    from memguard.conversations import load_conversation, read_conversation
    from memguard.errors import ConfigurationError, ErrorCode, GuardError, MemguardError
    from memguard.llm.models import resolve_model
    from memguard.memories.memories import Memories
    from memguard.memories.tools import create_memory_tools
    from memguard.methods.conmem.config import ConMem
    from memguard.methods.conmem.graph import create_conmem_graph
    from memguard.methods.consistency_gate import create_consistency_gate_graph
    from memguard.methods.consistency_gate.config import ConsistencyGate
    from memguard.methods.factor_compiled import create_factor_compiled_graph
    from memguard.methods.permission_semantic import create_permission_semantic_graph
    from memguard.methods.reconcile import create_reconcile_graph
    from memguard.methods.reconcile.config import Reconcile
    from memguard.methods.writer import create_writer_graph
    from memguard.methods.writer.config import Writer
    from memguard.middleware import MemguardMiddleware
    from memguard.read.graph import create_read_guard
    from memguard.schema.decision import AdmissionDecision, Inconclusive
    from memguard.schema.memory import CandidateMemory, Conversation, MemoryRecord, Turn
    from memguard.schema.read import (
        FactorCompiled,
        PermissionSemantic,
        ReadReport,
        Recall,
    )
    from memguard.schema.receipt import Budget, Receipt, Usage
    from memguard.schema.relevance_gate import RelevanceGate
    from memguard.store_guard.store import guard_store, use_source
    from memguard.write.graph import create_write_guard
    from memguard.write.report import WriteReport

__all__ = [
    "AdmissionDecision",
    "Budget",
    "CandidateMemory",
    "ConMem",
    "ConfigurationError",
    "ConsistencyGate",
    "Conversation",
    "ErrorCode",
    "FactorCompiled",
    "GuardError",
    "Inconclusive",
    "MemguardError",
    "MemguardMiddleware",
    "Memories",
    "MemoryRecord",
    "PermissionSemantic",
    "ReadReport",
    "Recall",
    "Receipt",
    "Reconcile",
    "RelevanceGate",
    "Turn",
    "Usage",
    "WriteReport",
    "Writer",
    "checkpoint_types",
    "create_conmem_graph",
    "create_consistency_gate_graph",
    "create_factor_compiled_graph",
    "create_memory_agent",
    "create_memory_tools",
    "create_permission_semantic_graph",
    "create_read_guard",
    "create_reconcile_graph",
    "create_write_guard",
    "create_writer_graph",
    "guard_store",
    "load_conversation",
    "read_conversation",
    "resolve_model",
    "use_source",
]

# By module, in the order of the imports above.
_NAMES = {
    "agent": ("create_memory_agent",),
    "checkpoints": ("checkpoint_types",),
    "conversations": ("load_conversation", "read_conversation"),
    "errors": ("ConfigurationError", "ErrorCode", "GuardError", "MemguardError"),
    "llm.models": ("resolve_model",),
    "memories.memories": ("Memories",),
    "memories.tools": ("create_memory_tools",),
    "methods.conmem.config": ("ConMem",),
    "methods.conmem.graph": ("create_conmem_graph",),
    "methods.consistency_gate": ("create_consistency_gate_graph",),
    "methods.consistency_gate.config": ("ConsistencyGate",),
    "methods.factor_compiled": ("create_factor_compiled_graph",),
    "methods.permission_semantic": ("create_permission_semantic_graph",),
    "methods.reconcile": ("create_reconcile_graph",),
    "methods.reconcile.config": ("Reconcile",),
    "methods.writer": ("create_writer_graph",),
    "methods.writer.config": ("Writer",),
    "middleware": ("MemguardMiddleware",),
    "read.graph": ("create_read_guard",),
    "schema.decision": ("AdmissionDecision", "Inconclusive"),
    "schema.memory": ("CandidateMemory", "Conversation", "MemoryRecord", "Turn"),
    "schema.read": (
        "FactorCompiled",
        "PermissionSemantic",
        "ReadReport",
        "Recall",
    ),
    "schema.receipt": ("Budget", "Receipt", "Usage"),
    "schema.relevance_gate": ("RelevanceGate",),
    "store_guard.store": ("guard_store", "use_source"),
    "write.graph": ("create_write_guard",),
    "write.report": ("WriteReport",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
"""The module of each public name, below `memguard`."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        # Reading the metadata takes longer than the rest of the import, and few ask for it.
        return import_module(f"{__name__}.version").read_version()
    if name not in _MODULES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
