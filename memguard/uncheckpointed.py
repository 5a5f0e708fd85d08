"""Graphs whose steps are not stored in the threads of a host.

A host's checkpointer stores every step of a graph that runs inside the host, with its state. The
state of a read contains every recalled memory, including the withheld ones. In a checkpoint they
would outlive a request to forget them. A read never interrupts, so there is nothing to resume.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph

from memguard import compat
from memguard.typed import ResultT, TypedGraph

Graph = CompiledStateGraph[Any, Any, Any, Any]


class UncheckpointedGraph(TypedGraph[ResultT]):
    """A graph whose steps are not stored by the checkpointer of a host.

    Outside a host it is like any other graph: it uses the checkpointer that it was compiled with
    or that LangGraph Studio passes.
    """

    def stream(  # pyright: ignore[reportIncompatibleMethodOverride] - takes what the base takes
        self,
        input: Any,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[Any]:
        """As in any graph; `invoke` is built on it."""
        return super().stream(input, _without_host(config), **kwargs)

    def astream(  # pyright: ignore[reportIncompatibleMethodOverride] - takes what the base takes
        self,
        input: Any,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """As in any graph; `ainvoke` is built on it."""
        return super().astream(input, _without_host(config), **kwargs)


def uncheckpointed(graph: Graph) -> UncheckpointedGraph[Any]:
    """The same graph, with steps that the checkpointer of a host does not store.

    Args:
        graph: A graph that memguard built; none of its nodes may interrupt.
    """
    return cast("UncheckpointedGraph[Any]", compat.recast_graph(graph, UncheckpointedGraph))


async def run_uncheckpointed(graph: Graph, values: dict[str, Any]) -> dict[str, Any]:
    """Run a user's graph inside a node of memguard, without checkpoints.

    Args:
        graph: The graph; none of its nodes may interrupt.
        values: Its input.
    """
    # Not recast: a user's graph may be of a subclass, whose methods would be lost.
    return await graph.ainvoke(values, {"configurable": compat.UNCHECKPOINTED})


def _without_host(config: RunnableConfig | None) -> RunnableConfig | None:
    """The config without the host's checkpointer, where a host runs this graph as a task."""
    configurable = (config or {}).get("configurable") or {}
    # A call inside a node may pass a config of its own; the task is then known from the context.
    ambient = compat.surrounding_config().get("configurable") or {}
    if not (compat.is_task(configurable) or compat.is_task(ambient)):
        return config
    return {**(config or {}), "configurable": {**configurable, **compat.UNCHECKPOINTED}}
