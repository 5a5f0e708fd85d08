"""Compiled graphs whose results have a type, so that a type checker knows the keys.

LangGraph types the result of `invoke` as `dict[str, Any] | Any`, which lets every mistake pass.
"""

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from langgraph.graph.state import CompiledStateGraph

from memguard import compat

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

ResultT = TypeVar("ResultT")


class TypedGraph(CompiledStateGraph[Any, Any, Any, Any], Generic[ResultT]):
    """A compiled graph; `ResultT` is the typed dictionary that a run returns."""

    # Only what a type checker reads: at run time the methods are LangGraph's. Options such as
    # `stream_mode` and `version` change what `invoke` returns, hence the second form.
    if TYPE_CHECKING:

        @overload
        def invoke(
            self, input: Any, config: RunnableConfig | None = None, *, context: Any = None
        ) -> ResultT: ...
        @overload
        def invoke(
            self, input: Any, config: RunnableConfig | None = None, **options: Any
        ) -> Any: ...
        def invoke(self, *args: Any, **options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            """Run the graph; see LangGraph."""

        @overload
        async def ainvoke(
            self, input: Any, config: RunnableConfig | None = None, *, context: Any = None
        ) -> ResultT: ...
        @overload
        async def ainvoke(
            self, input: Any, config: RunnableConfig | None = None, **options: Any
        ) -> Any: ...
        async def ainvoke(self, *args: Any, **options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            """Run the graph; see LangGraph."""


def typed(graph: CompiledStateGraph[Any, Any, Any, Any]) -> TypedGraph[Any]:
    """The same graph as one whose result has the type that the caller declares."""
    return cast("TypedGraph[Any]", compat.recast_graph(graph, TypedGraph))
