"""Create the graph that a LangGraph server runs from a form."""

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Mapping
from functools import lru_cache
from typing import Any, Protocol, cast

from langgraph.graph.state import CompiledStateGraph
from langgraph_sdk.runtime import ServerRuntime

from memguard.errors import ErrorCode, InvalidInputError

AnyGraph = CompiledStateGraph[Any, Any, Any, Any]
_MAX_GRAPHS = 32
"""Cached graphs, one for each distinct form; the server asks for one at every request."""


class Form(Protocol):
    """A frozen dataclass of settings that creates a graph."""

    def open(self) -> AnyGraph:
        """The graph."""
        ...


def in_studio(default: Form) -> Callable[[ServerRuntime[Any]], Coroutine[Any, Any, AnyGraph]]:
    """Create an entry for `langgraph.json`: the graph that the form describes.

    The graph has neither store nor checkpointer: the server brings its own.

    Args:
        default: The form before anything is filled in.
    """
    kind = type(default)

    @lru_cache(maxsize=_MAX_GRAPHS)
    def opened(form: Form) -> AnyGraph:
        return form.open().copy({"context_schema": kind})

    async def graph(runtime: ServerRuntime[Any]) -> AnyGraph:
        running = runtime.execution_runtime
        form = fill(default, None if running is None else running.context)
        # In a thread, not in the server's event loop: creating a model's client imports its SDK and
        # reads certificates.
        return await asyncio.to_thread(opened, form)

    return graph


def fill(default: Form, context: object) -> Form:
    """The form with the values of a run's context; `None` leaves a default.

    Raises:
        InvalidInputError: If the form has no such field.
    """
    if context is None or isinstance(context, type(default)):
        return default if context is None else context
    names = {field.name for field in dataclasses.fields(cast("Any", default))}
    fields = cast("Mapping[str, Any]", context)
    unknown = sorted(set(fields) - names)
    if unknown:
        msg = f"the context has no {unknown[0]!r}: use {', '.join(sorted(names))}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    filled = {name: value for name, value in fields.items() if value is not None}
    form: Form = dataclasses.replace(cast("Any", default), **filled)
    return form
