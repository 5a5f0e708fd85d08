"""The types that a checkpointer finds in threads with guards in them."""

import typing
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from memguard.guard.pipeline import GatesState
from memguard.guard.read_state import ReadGuardState
from memguard.guard.state import CandidateState, PassState, WriteState
from memguard.methods.conmem.state import ConMemState
from memguard.methods.consistency_gate.state import SupportState
from memguard.methods.factor_compiled.state import FactorState
from memguard.methods.permission_semantic.state import PermissionState
from memguard.methods.writer.state import WriterPassState, WriterState

_STATES: tuple[type[BaseModel], ...] = (
    ConMemState,
    FactorState,
    CandidateState,
    GatesState,
    PassState,
    PermissionState,
    ReadGuardState,
    SupportState,
    WriteState,
    WriterPassState,
    WriterState,
)


def checkpoint_types() -> list[tuple[str, str]]:
    """Module and name of every memguard type that a checkpoint may hold.

    LangGraph logs types that it was not told of, and refuses them under
    `LANGGRAPH_STRICT_MSGPACK`; memguard's graphs read what was refused all the same. Tell it:

    ```python
    serde = JsonPlusSerializer(allowed_msgpack_modules=checkpoint_types())
    saver = InMemorySaver(serde=serde)
    ```
    """
    found: set[type[BaseModel]] = set()
    for state in _STATES:
        _collect(state, found)
    return sorted((model.__module__, model.__name__) for model in found)


def _collect(model: type[BaseModel], found: set[type[BaseModel]]) -> None:
    """Add a model, and all that its fields name."""
    if model in found:
        return
    found.add(model)
    for field in model.model_fields.values():
        for inner in _models_in(field.annotation):
            _collect(inner, found)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a type names, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from _models_in(inner)
