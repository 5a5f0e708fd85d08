"""The graphs that can be drawn, by name, with a model that is never asked."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langgraph.graph.state import CompiledStateGraph

from memguard.errors import ErrorCode, InvalidInputError
from memguard.guard.agent import create_memory_agent
from memguard.guard.read import create_read_guard
from memguard.guard.write import create_write_guard
from memguard.methods.conmem import create_conmem_graph
from memguard.methods.consistency_gate import create_consistency_gate_graph
from memguard.methods.factor_compiled import create_factor_compiled_graph
from memguard.methods.permission_semantic import create_permission_semantic_graph
from memguard.methods.writer import create_writer_graph

AnyGraph = CompiledStateGraph[Any, Any, Any, Any]


class _NoModel(BaseChatModel):
    """Drawn with, never asked."""

    @property
    def _llm_type(self) -> str:
        return "none"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        del messages, args, kwargs
        msg = "this graph was opened to be drawn"
        raise NotImplementedError(msg)


def _with_model(make: Callable[..., AnyGraph], **settings: Any) -> Callable[[], AnyGraph]:
    return lambda: make(_NoModel(), **settings)


GRAPHS: MappingProxyType[str, Callable[[], AnyGraph]] = MappingProxyType(
    {
        "conmem": _with_model(create_conmem_graph),
        "consistency_gate": _with_model(create_consistency_gate_graph),
        "factor_compiled": _with_model(create_factor_compiled_graph),
        "memory_agent": _with_model(create_memory_agent),
        "permission_semantic": _with_model(create_permission_semantic_graph),
        "read_guard": _with_model(create_read_guard),
        "write_guard": _with_model(create_write_guard),
        "write_guard-review": _with_model(create_write_guard, review="interrupt"),
        "writer": _with_model(create_writer_graph),
    }
)
"""How each graph is opened."""


def open_graph(name: str) -> AnyGraph:
    """The graph of a name.

    Raises:
        InvalidInputError: If there is none; the message lists all.
    """
    try:
        make = GRAPHS[name]
    except KeyError:
        msg = f"there is no graph {name!r}: use one of {', '.join(GRAPHS)}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID) from None
    return make()
