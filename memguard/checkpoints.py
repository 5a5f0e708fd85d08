"""The types that the checkpoints of a host with guards may contain."""

import typing
from typing import Any

from pydantic import BaseModel

from memguard.methods.adjudication.state import ReadState
from memguard.methods.conmem.state import ConMemState
from memguard.methods.consistency_gate.judges import SupportState
from memguard.methods.writer.readers import WriterPassState, WriterState
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
    """Module and name of every memguard type that a checkpoint may contain.

    LangGraph logs a warning for types that are not registered, and refuses them under
    `LANGGRAPH_STRICT_MSGPACK`; memguard's graphs can read such checkpoints nevertheless. To
    register the types:

    ```python
    serde = JsonPlusSerializer(allowed_msgpack_modules=checkpoint_types())
    saver = InMemorySaver(serde=serde)
    ```
    """
    models: set[type[BaseModel]] = set()
    for state in _STATES:
        _collect(state, models)
    return sorted((model.__module__, model.__name__) for model in models)


def _collect(annotation: Any, models: set[type[BaseModel]]) -> None:
    """Add the models in an annotation, and those in the annotations of their fields."""
    for inner in typing.get_args(annotation):
        _collect(inner, models)
    # A model may refer to itself, hence the last condition.
    if (
        isinstance(annotation, type)
        and issubclass(annotation, BaseModel)
        and annotation not in models
    ):
        models.add(annotation)
        # States nest, and a checkpoint contains the models of every level.
        for field in annotation.model_fields.values():
            _collect(field.annotation, models)
