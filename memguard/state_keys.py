"""Names: of settings, specs and nodes, and the state keys of a host graph.

`rename_keys` runs a guard in a host that names its state keys differently.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, create_model

from memguard.errors import ConfigurationError, ErrorCode, InvalidInputError
from memguard.portal import dual
from memguard.uncheckpointed import Graph

S = TypeVar("S")

_FORBIDDEN_IN_NODE = str.maketrans({":": "_", "|": "_"})
"""LangGraph separates the levels of a checkpoint namespace by these two characters."""


def spec_named(name: str, specs: Mapping[str, S], *, kind: str) -> S:
    """The default spec with a short name.

    Raises:
        ConfigurationError: If there is none.
    """
    if name in specs:
        return specs[name]
    msg = f"there is no {kind} named {name!r}: use one of {sorted(specs)}, or pass a spec"
    raise ConfigurationError(msg, code=ErrorCode.SPEC_INVALID)


def node_name(graph_name: str, *, reserved: Collection[str], suffix: str) -> str:
    """The name of a graph as the name of its node, changed where LangGraph would refuse it.

    Args:
        graph_name: The graph's name, which a user may have chosen.
        reserved: Names of other nodes and of state keys.
        suffix: What is appended to a reserved name.
    """
    name = graph_name.translate(_FORBIDDEN_IN_NODE) or suffix
    return f"{name}_{suffix}" if name in reserved else name


def check_names(mapping: Mapping[str, object], *, allowed: Sequence[str], what: str) -> None:
    """Refuse a name that would have no effect.

    Raises:
        ConfigurationError: If a name is not one of `allowed`.
    """
    unknown = sorted(set(mapping) - set(allowed))
    if unknown:
        msg = f"`{what}` names {unknown[0]!r}, which nothing uses: use {', '.join(allowed)}"
        raise ConfigurationError(msg, code=ErrorCode.SPEC_INVALID)


def rename_keys(
    graph: Graph, *, keys: Mapping[str, str], takes: type[BaseModel], gives: type[BaseModel]
) -> Graph:
    """The same graph under the state keys of a host.

    Only `messages` and the keys in `keys` are read from the host's state. A key of the host that
    happens to be called `candidates` is therefore not read as an input of the graph.

    Args:
        graph: The graph to run.
        keys: The host's key for each of the graph's, for example `{"messages": "chat"}`.
        takes: The graph's input.
        gives: The graph's output.

    Raises:
        ConfigurationError: If `keys` has a name that the graph does not have. A run raises
            `InvalidInputError` if the host's state has no value under any key that is read.
    """
    check_names(keys, allowed=(*takes.model_fields, *gives.model_fields), what="keys")
    read = {
        name: keys.get(name, name)
        for name in takes.model_fields
        if name in keys or name == "messages"
    }
    written = {name: keys.get(name, name) for name in gives.model_fields}
    host_in = _renamed("HostInput", takes, read)
    host_out = _renamed("HostOutput", gives, written)
    # A host may read and write one key, such as `messages`; by inheritance it is one field.
    host_state = _renamed("HostState", takes, read, base=_renamed("HostAll", gives, written))
    builder = StateGraph(host_state, input_schema=host_in, output_schema=host_out)
    node = partial(_run, graph=graph, read=read, written=written)
    builder.add_node(graph.get_name(), dual(node, name=graph.get_name(), asks=[graph]))
    builder.add_edge(START, graph.get_name())
    builder.add_edge(graph.get_name(), END)
    return cast("Graph", builder.compile(name=graph.get_name()))


async def _run(
    state: Any, *, graph: Graph, read: Mapping[str, str], written: Mapping[str, str]
) -> dict[str, Any]:
    values = {name: getattr(state, host) for name, host in read.items()}
    if all(value is None for value in values.values()):
        # Without the error a run would store and recall nothing, and nobody would notice.
        msg = (
            f"the state has nothing under {sorted(read.values())}, which {graph.get_name()!r} "
            "reads according to `keys`: name the key of your state that contains the conversation"
        )
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    # A value of `None` is left out: passed on, it would replace a default of the graph.
    result = await graph.ainvoke(
        {name: value for name, value in values.items() if value is not None}
    )
    return {host: result[name] for name, host in written.items()}


def _renamed(
    name: str,
    model: type[BaseModel],
    names: Mapping[str, str],
    *,
    base: type[BaseModel] = BaseModel,
) -> type[BaseModel]:
    """A model with some of the fields of another, under other names, none of them required."""
    fields: dict[str, Any] = dict.fromkeys(names.values(), (Any, None))
    descriptions = {host: model.model_fields[name].description for name, host in names.items()}
    doc = "; ".join(f"{host}: {text}" for host, text in descriptions.items() if text)
    return create_model(name, __base__=base, __doc__=doc or name, **fields)
