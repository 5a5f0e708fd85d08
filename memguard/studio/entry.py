"""From a form to the graph that a LangGraph server runs."""

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Mapping
from functools import lru_cache
from typing import Any, Protocol, cast

from langgraph.graph.state import CompiledStateGraph
from langgraph_sdk.runtime import ServerRuntime

from memguard.errors import ErrorCode, InvalidInputError

AnyGraph = CompiledStateGraph[Any, Any, Any, Any]
_KEPT = 32
"""Graphs kept, one for each filled-in form; the server asks for one at every request."""


class Form(Protocol):
    """A frozen dataclass of settings that can be made into a graph."""

    def open(self) -> AnyGraph:
        """The graph."""
        ...


def in_studio(default: Form) -> Callable[[ServerRuntime[Any]], Coroutine[Any, Any, AnyGraph]]:
    """An entry for `langgraph.json`: the graph of whatever the form holds.

    The graph carries neither store nor checkpointer: the server brings its own.

    Args:
        default: The form as it is when nothing is filled in.
    """
    kind = type(default)

    @lru_cache(maxsize=_KEPT)
    def opened(form: Form) -> AnyGraph:
        return form.open().copy({"context_schema": kind})

    async def graph(runtime: ServerRuntime[Any]) -> AnyGraph:
        running = runtime.execution_runtime
        form = fill(default, None if running is None else running.context)
        # In a thread: setting a model up imports its SDK and reads certificates.
        return await asyncio.to_thread(opened, form)

    return graph


def fill(default: Form, given: object) -> Form:
    """The form with what was filled in.

    Raises:
        InvalidInputError: If a field is none of the form's.
    """
    if given is None or isinstance(given, type(default)):
        return default if given is None else given
    known = {field.name for field in dataclasses.fields(cast("Any", default))}
    fields = cast("Mapping[str, Any]", given)
    unknown = sorted(set(fields) - known)
    if unknown:
        msg = f"the context has no {unknown[0]!r}: use {', '.join(sorted(known))}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    filled = {name: value for name, value in fields.items() if value is not None}
    form: Form = dataclasses.replace(cast("Any", default), **filled)
    return form
