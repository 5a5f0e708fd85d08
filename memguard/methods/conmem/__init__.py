"""ConMem: what does a memory do to later answers?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memguard.methods.conmem.graph import build_conmem_graph, create_conmem_graph
    from memguard.methods.conmem.models import (
        JUDGE_STAGES,
        StageModels,
        prompt_names,
        resolve_stage_models,
    )

_MODULES = {
    "JUDGE_STAGES": "models",
    "StageModels": "models",
    "build_conmem_graph": "graph",
    "create_conmem_graph": "graph",
    "prompt_names": "models",
    "resolve_stage_models": "models",
}

__all__ = [
    "JUDGE_STAGES",
    "StageModels",
    "build_conmem_graph",
    "create_conmem_graph",
    "prompt_names",
    "resolve_stage_models",
]


def __getattr__(name: str) -> Any:
    """Import on first use: settings and rules are read without loading LangGraph."""
    if name not in _MODULES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
