"""`memguard check TEXT --source ...`: one candidate against one source, nothing stored."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memguard.cli.options import BaseUrlOption, JsonOption, ModelOption, PresetOption

if TYPE_CHECKING:
    from memguard.schema.memory import Conversation


def check(
    text: Annotated[str, typer.Argument(help="The memory to check.")],
    source: Annotated[
        str, typer.Option("--source", help="A file with the conversation, or its text.")
    ],
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    preset: PresetOption = "recommended",
    as_json: JsonOption = False,
) -> None:
    """Say whether a source supports a memory, and why. Stores nothing."""
    from memguard.cli.opening import gate_preset, pick_model
    from memguard.methods.consistency_gate import create_consistency_gate_graph

    graph = create_consistency_gate_graph(
        pick_model(model, base_url=base_url), spec=gate_preset(preset)
    )
    result: dict[str, Any] = graph.invoke({"candidate": text, "context": _source(source)})
    receipt = result["receipt"]
    if as_json:
        from memguard.cli.output import print_json

        print_json(receipt.model_dump(mode="json"))
        return
    from memguard.cli.show import print_receipt

    print_receipt(receipt, committed=False)


def _source(source: str) -> "Conversation":
    from memguard.conversations import load_conversation, read_conversation
    from memguard.schema.memory import Conversation

    try:
        is_file = Path(source).is_file()
    except (OSError, ValueError):
        is_file = False  # too long or too odd for a file name: it is the text itself
    if not is_file:
        return read_conversation(source)
    parts = load_conversation(source)
    return Conversation(turns=tuple(t for part in parts for t in part.turns), id=parts[0].id)
