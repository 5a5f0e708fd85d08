"""Graphs that leave nothing of their steps in the threads of a host.

A host's checkpointer stores every step of a graph within it, and with the steps their state. For a
read that is every recalled memory, the withheld ones included: they would live on in threads after
they are forgotten. A read never interrupts and is over in one go, so there is nothing to resume.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.constants import CONF, CONFIG_KEY_CHECKPOINTER
from langgraph.graph.state import CompiledStateGraph

Graph = CompiledStateGraph[Any, Any, Any, Any]

_TASK_ID = "__pregel_task_id"
"""In the config of whatever a graph runs as one of its tasks. The key is LangGraph's own, and so is
the one below; `test_uncheckpointed.py` fails if LangGraph renames either."""

# Compiling with `checkpointer=False` would say the same in public words. In LangGraph 1.2 it fails
# in a host that runs with `durability="sync"`, and the graphs within it are checkpointed all the
# same. It also hides the graph from `get_subgraphs`, and so from drawings and streams.
_NO_CHECKPOINTER = {CONFIG_KEY_CHECKPOINTER: None, "__pregel_durability": "async"}

UNCHECKPOINTED: RunnableConfig = {CONF: _NO_CHECKPOINTER}
"""The config with which a graph, and the graphs within it, run without a checkpointer."""


class UncheckpointedGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A graph whose steps no host's checkpointer stores.

    On its own it is like any other graph: it uses a checkpointer that it is given itself, for
    example by LangGraph Studio.
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


def uncheckpointed(graph: Graph) -> UncheckpointedGraph:
    """The same graph, whose steps no host's checkpointer stores.

    Args:
        graph: A graph that memguard built; none of its nodes may interrupt.
    """
    # Copied field by field: `compile` offers no way to choose the class of its result.
    copy = UncheckpointedGraph.__new__(UncheckpointedGraph)
    vars(copy).update(vars(graph))
    return copy


async def run_uncheckpointed(graph: Graph, values: dict[str, Any]) -> dict[str, Any]:
    """Run a user's own graph inside a node of ours, without checkpoints.

    memguard's graphs do this by themselves. A user's graph may be of a subclass with methods of
    its own, which a copy would lose, so it is run with a config in place of being copied.

    Args:
        graph: The graph; none of its nodes may interrupt.
        values: Its input.
    """
    return await graph.ainvoke(values, UNCHECKPOINTED)


def _without_host(config: RunnableConfig | None) -> RunnableConfig | None:
    """The config without the host's checkpointer, where a host runs this graph as a task."""
    explicit = (config or {}).get(CONF) or {}
    ambient = (var_child_runnable_config.get() or {}).get(CONF) or {}
    if _TASK_ID not in explicit and _TASK_ID not in ambient:
        return config
    return {**(config or {}), CONF: {**explicit, **_NO_CHECKPOINTER}}
