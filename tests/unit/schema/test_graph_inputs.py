"""An input that cannot be read is memguard's own error, in every graph."""

from typing import Any

import pytest
from pydantic import ValidationError

from memguard import (
    create_conmem_graph,
    create_consistency_gate_graph,
    create_permission_semantic_graph,
    create_read_guard,
    create_write_guard,
    create_writer_graph,
)
from memguard.errors import ErrorCode, InvalidInputError
from memguard.testing import ScriptedChatModel

ANA = {"user_id": "ana"}
INPUTS: list[tuple[Any, dict[str, Any]]] = [
    (create_write_guard, {"conversation": 42}),
    (create_writer_graph, {"conversation": 42}),
    (create_consistency_gate_graph, {"candidate": "She rows.", "context": 42}),
    (create_conmem_graph, {"candidate": "She rows.", "context": 42}),
    (create_permission_semantic_graph, {"query": "?", "dialogue": 42}),
    (create_read_guard, {"query": "?", "dialogue": 42}),
]


@pytest.mark.parametrize(
    ("create", "fields"), INPUTS, ids=lambda value: getattr(value, "__name__", "")
)
async def test_the_error_has_its_class_and_code(create: Any, fields: dict[str, Any]) -> None:
    graph = create(ScriptedChatModel())
    with pytest.raises(InvalidInputError, match="cannot be read from a int") as refused:
        await graph.ainvoke(fields, context=ANA)
    assert refused.value.code == ErrorCode.INPUT_INVALID


async def test_other_mistakes_are_told_by_pydantic() -> None:
    graph = create_permission_semantic_graph(ScriptedChatModel())
    with pytest.raises(ValidationError, match="memories"):
        await graph.ainvoke({"query": "?", "memories": 42})
