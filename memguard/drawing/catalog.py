"""The graphs that can be drawn, by name, with a model that is never called."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langgraph.graph.state import CompiledStateGraph

from memguard.errors import ErrorCode, InvalidInputError
from memguard.guard.agent import create_memory_agent
from memguard.guard.presets import choose_admission, choose_gates, split_presets
from memguard.guard.read import create_read_guard
from memguard.guard.write import create_write_guard
from memguard.methods.conmem import create_conmem_graph
from memguard.methods.consistency_gate import create_consistency_gate_graph
from memguard.methods.factor_compiled import create_factor_compiled_graph
from memguard.methods.permission_semantic import create_permission_semantic_graph
from memguard.methods.writer import create_writer_graph

AnyGraph = CompiledStateGraph[Any, Any, Any, Any]

_DEFAULT_GATES = ("consistency",)
_HAVE_GATES = frozenset({"memory_agent", "write_guard", "write_guard-review"})


# A chat model of any kind would do; this one cannot call anything by mistake.
class _NoModel(BaseChatModel):
    """Stands in for a model in a graph that is drawn and never run."""

    @property
    def _llm_type(self) -> str:
        return "none"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        del messages, args, kwargs
        msg = "this graph was created to be drawn"
        raise NotImplementedError(msg)


def _gate_method(create: Callable[..., AnyGraph], name: str) -> "Create":
    def build(*, gates: Sequence[str], presets: Sequence[str]) -> AnyGraph:
        del gates
        (spec,) = choose_gates([name], presets=presets)
        return create(_NoModel(), spec=spec)

    return build


def _admission_method(create: Callable[..., AnyGraph], name: str) -> "Create":
    def build(*, gates: Sequence[str], presets: Sequence[str]) -> AnyGraph:
        del gates
        return create(_NoModel(), spec=choose_admission(name, presets=presets))

    return build


def _writer(*, gates: Sequence[str], presets: Sequence[str]) -> AnyGraph:
    del gates
    if presets:
        msg = f"the writer has no preset {presets[0]!r}: leave it out"
        raise InvalidInputError(msg, code=ErrorCode.SPEC_INVALID)
    return create_writer_graph(_NoModel())


def _write_guard(**settings: Any) -> "Create":
    def build(*, gates: Sequence[str], presets: Sequence[str]) -> AnyGraph:
        specs = choose_gates(gates or _DEFAULT_GATES, presets=presets)
        return create_write_guard(_NoModel(), gates=specs, **settings)

    return build


def _read_guard(*, gates: Sequence[str], presets: Sequence[str]) -> AnyGraph:
    del gates
    return create_read_guard(_NoModel(), admission=choose_admission("ps", presets=presets))


def _memory_agent(*, gates: Sequence[str], presets: Sequence[str]) -> AnyGraph:
    # Without a choice, the agent creates its guards itself: this is what a user gets.
    if not gates and not presets:
        return create_memory_agent(_NoModel())
    names = gates or _DEFAULT_GATES
    for_gates, for_admission = split_presets(presets, gates=names, admission="ps")
    return create_memory_agent(
        _NoModel(),
        read=create_read_guard(_NoModel(), admission=choose_admission("ps", presets=for_admission)),
        write=create_write_guard(_NoModel(), gates=choose_gates(names, presets=for_gates)),
    )


Create = Callable[..., AnyGraph]
"""Creates a graph from names of gates and presets."""

GRAPHS: Mapping[str, Create] = MappingProxyType(
    {
        "conmem": _gate_method(create_conmem_graph, "conmem"),
        "consistency_gate": _gate_method(create_consistency_gate_graph, "consistency"),
        "factor_compiled": _admission_method(create_factor_compiled_graph, "fc"),
        "memory_agent": _memory_agent,
        "permission_semantic": _admission_method(create_permission_semantic_graph, "ps"),
        "read_guard": _read_guard,
        "write_guard": _write_guard(),
        "write_guard-review": _write_guard(review="interrupt"),
        "writer": _writer,
    }
)
"""How each graph is created."""


def open_graph(name: str, *, gates: Sequence[str] = (), presets: Sequence[str] = ()) -> AnyGraph:
    """Create the graph of a name.

    Args:
        name: A key of `GRAPHS`.
        gates: Short names of the gates of a host, in order; `consistency` if empty. A method alone
            has none.
        presets: Names of presets, for the methods that have them.

    Raises:
        InvalidInputError: If there is no such graph, gate or preset; the message lists all.
    """
    create = GRAPHS.get(name)
    if create is None:
        msg = f"there is no graph {name!r}: use one of {', '.join(GRAPHS)}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    if gates and name not in _HAVE_GATES:
        msg = f"{name} has no gates: leave out {', '.join(map(repr, gates))}"
        raise InvalidInputError(msg, code=ErrorCode.SPEC_INVALID)
    return create(gates=gates, presets=presets)
