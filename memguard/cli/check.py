"""`memguard check TEXT --source ...`: one candidate against one source, nothing stored."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memguard.cli.opening import named_file, pick_model
from memguard.cli.options import BaseUrlOption, JsonOption, ModelOption, PresetOption
from memguard.cli.output import print_json
from memguard.cli.show import print_receipt

if TYPE_CHECKING:
    from pathlib import Path

    from memguard.schema.memory import Conversation
    from memguard.write.gates import GateGraph

Method = Literal["consistency", "conmem"]

_TEXT_ENDINGS = (".txt", ".md")
"""Files that are one text, as if the user had said it."""


def check(
    text: Annotated[str, typer.Argument(help="The memory to check.")],
    source: Annotated[
        str,
        typer.Option(
            "--source", help="A file with the conversation, a text file (.txt, .md), or the text."
        ),
    ],
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    method: Annotated[
        Method,
        typer.Option(
            "--method", help="consistency: is it supported? conmem: does it improve answers?"
        ),
    ] = "consistency",
    preset: PresetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether a memory would be stored, and why. Stores nothing."""
    graph = _open(method, pick_model(model, base_url=base_url), presets=preset or [])
    candidate = {"candidate": text, "context": _source(source)}
    result = _run_case(graph, candidate, quiet=as_json or method != "conmem")
    receipt = result["receipt"]
    if as_json:
        print_json(receipt)
    else:
        print_receipt(receipt, committed=False)


def _open(method: Method, model: Any, *, presets: list[str]) -> "GateGraph":
    from memguard.methods.conmem.config import ConMem
    from memguard.methods.conmem.graph import create_conmem_graph
    from memguard.methods.consistency_gate import create_consistency_gate_graph
    from memguard.presets import choose_gates

    (spec,) = choose_gates([method], presets=presets)
    if isinstance(spec, ConMem):
        return create_conmem_graph(model, spec=spec)
    return create_consistency_gate_graph(model, spec=spec)


def _run_case(graph: "GateGraph", candidate: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    from memguard.cli.progress import CaseProgress

    result: dict[str, Any] = {}
    stream: Any = graph.stream(candidate, stream_mode=["custom", "values"], subgraphs=True)
    # The nodes of a trial are in a nested graph: its events are progress too, but its values are
    # not the result.
    with CaseProgress(quiet=quiet) as progress:
        for namespace, mode, data in stream:
            if mode == "custom":
                progress.note(data)
            elif not namespace:
                result = data
    return result


def _read_text(file: "Path") -> str:
    from memguard.errors import ErrorCode, InvalidInputError

    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"cannot read the text file {str(file)!r}: {error}; pass a UTF-8 file"
        raise InvalidInputError(msg, code=ErrorCode.FILE_UNREADABLE) from error


def _source(source: str) -> "Conversation":
    from memguard.conversations import load_conversation, read_conversation
    from memguard.schema.memory import Conversation

    file = named_file(source)
    if file is None:
        return read_conversation(source)
    if file.suffix.lower() in _TEXT_ENDINGS:
        return read_conversation(_read_text(file))
    # A LoCoMo file has one conversation for each session; a memory may rest on any of them.
    parts = load_conversation(file)
    return Conversation(turns=tuple(t for part in parts for t in part.turns), id=parts[0].id)
