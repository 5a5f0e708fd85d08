"""The types that a checkpointer finds in the threads of hosts with guards."""

import typing
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from memguard.methods.adjudication.state import ReadState
from memguard.methods.conmem.state import ConMemState
from memguard.methods.consistency_gate.state import SupportState
from memguard.methods.writer.state import WriterPassState, WriterState
from memguard.read.graph import ReadGuardState
from memguard.write.gates import GatesState
from memguard.write.state import CandidateState, PassState, WriteState

_STATES: tuple[type[BaseModel], ...] = (
    ConMemState,
    CandidateState,
    GatesState,
    PassState,
    ReadGuardState,
    ReadState,
    SupportState,
    WriteState,
    WriterPassState,
    WriterState,
)


def checkpoint_types() -> list[tuple[str, str]]:
    """Module and name of every memguard type that a checkpoint may hold.

    LangGraph logs a warning for types that are not registered, and refuses them under
    `LANGGRAPH_STRICT_MSGPACK`; memguard's graphs still read what was refused. To register them:

    ```python
    serde = JsonPlusSerializer(allowed_msgpack_modules=checkpoint_types())
    saver = InMemorySaver(serde=serde)
    ```
    """
    types: set[type[BaseModel]] = set()
    for state in _STATES:
        _collect(state, types)
    return sorted((model.__module__, model.__name__) for model in types)


def _collect(model: type[BaseModel], types: set[type[BaseModel]]) -> None:
    """Add a model, and all models that its fields name."""
    if model in types:
        return
    types.add(model)
    # States nest: a type that only a field of a field names is in the checkpoint as well.
    for field in model.model_fields.values():
        for inner in _models_in(field.annotation):
            _collect(inner, types)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a type names, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from _models_in(inner)
