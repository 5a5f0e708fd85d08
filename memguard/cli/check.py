"""`memguard check TEXT --source ...`: one candidate against one source, nothing stored."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memguard.cli.options import BaseUrlOption, JsonOption, ModelOption

if TYPE_CHECKING:
    from memguard.guard.gates import GateGraph
    from memguard.schema.memory import Conversation

Method = Literal["consistency", "conmem"]


def check(
    text: Annotated[str, typer.Argument(help="The memory to check.")],
    source: Annotated[
        str, typer.Option("--source", help="A file with the conversation, or its text.")
    ],
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    method: Annotated[
        Method, typer.Option("--method", help="Is it supported, or what does it do to answers?")
    ] = "consistency",
    preset: Annotated[
        str | None, typer.Option("--preset", help="Named setting; see `memguard presets`.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether a memory would be stored, and why. Stores nothing."""
    from memguard.cli.opening import pick_model

    judge = pick_model(model, base_url=base_url)
    given = {"candidate": text, "context": _source(source)}
    if method == "conmem":
        result = _run_case(_conmem(judge, preset=preset), given, quiet=as_json)
    else:
        result = _consistency(judge, preset=preset).invoke(given)
    receipt = result["receipt"]
    if as_json:
        from memguard.cli.output import print_json

        print_json(receipt.model_dump(mode="json"))
        return
    from memguard.cli.show import print_receipt

    print_receipt(receipt, committed=False)


def _consistency(judge: Any, *, preset: str | None) -> "GateGraph":
    from memguard.cli.opening import gate_preset
    from memguard.methods.consistency_gate import create_consistency_gate_graph

    return create_consistency_gate_graph(judge, spec=gate_preset(preset or "recommended"))


def _conmem(judge: Any, *, preset: str | None) -> "GateGraph":
    from memguard.errors import ErrorCode, InvalidInputError
    from memguard.methods.conmem import create_conmem_graph
    from memguard.methods.conmem.config import CONMEM_PRESETS

    name = preset or "default"
    if name not in CONMEM_PRESETS:
        msg = f"there is no preset {name!r}: use one of {sorted(CONMEM_PRESETS)}"
        raise InvalidInputError(msg, code=ErrorCode.SPEC_INVALID)
    return create_conmem_graph(judge, spec=CONMEM_PRESETS[name])


def _run_case(graph: "GateGraph", given: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    from memguard.cli.progress import CaseProgress

    result: dict[str, Any] = {}
    stream: Any = graph.stream(given, stream_mode=["custom", "values"], subgraphs=True)
    with CaseProgress(quiet=quiet) as progress:
        for namespace, mode, data in stream:
            if mode == "custom":
                progress.note(data)
            elif not namespace:
                result = data
    return result


def _source(source: str) -> "Conversation":
    from memguard.cli.opening import named_file
    from memguard.conversations import load_conversation, read_conversation
    from memguard.schema.memory import Conversation

    file = named_file(source)
    if file is None:
        return read_conversation(source)
    parts = load_conversation(file)
    return Conversation(turns=tuple(t for part in parts for t in part.turns), id=parts[0].id)
