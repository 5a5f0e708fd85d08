"""Graphs that leave nothing of their steps in the threads of a host.

A host's checkpointer keeps every step of a graph within it, and what the steps hold. For a read
that is every memory that was recalled, the withheld ones too: they would live on in threads after
they are forgotten. A read asks nobody and is over in one go, so that there is nothing to resume.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph

from memguard import compat

UNSAVED: RunnableConfig = {"configurable": compat.UNCHECKPOINTED}
"""The config with which a graph, and those within it, are run without a checkpointer."""


class UnsavedGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A graph of which a host's checkpointer keeps no step.

    By itself it is like any other: a checkpointer of its own, as LangGraph Studio gives it, serves.
    """

    def stream(  # pyright: ignore[reportIncompatibleMethodOverride] - the same, whatever the rest
        self,
        input: Any,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[Any]:
        """As of any graph; `invoke` is made of it."""
        return super().stream(input, _within(config), **kwargs)

    def astream(  # pyright: ignore[reportIncompatibleMethodOverride] - the same, whatever the rest
        self,
        input: Any,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """As of any graph; `ainvoke` is made of it."""
        return super().astream(input, _within(config), **kwargs)


def unsaved(graph: CompiledStateGraph[Any, Any, Any, Any]) -> UnsavedGraph:
    """The same graph, kept by no host's checkpointer.

    Args:
        graph: The graph; none of its nodes may interrupt.
    """
    return compat.recast_graph(graph, UnsavedGraph)


def _within(config: RunnableConfig | None) -> RunnableConfig | None:
    """The config without the checkpointer of the graph that runs this one, where one does."""
    configurable = (config or {}).get("configurable") or {}
    surrounding = compat.surrounding_config().get("configurable") or {}
    if not compat.is_task(configurable) and not compat.is_task(surrounding):
        return config
    return {**(config or {}), "configurable": {**configurable, **compat.UNCHECKPOINTED}}
