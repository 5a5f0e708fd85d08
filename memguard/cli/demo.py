"""`memguard demo`: the main job on a small conversation of our own, in a store of its own."""

from pathlib import Path
from typing import Annotated

import typer

from memguard.cli.options import BaseUrlOption, EmbedOption, JsonOption, ModelOption


def demo(
    file: Annotated[
        Path | None, typer.Option("--file", help="A conversation of your own.", dir_okay=False)
    ] = None,
    store: Annotated[
        str | None, typer.Option("--store", help="Where to store; a new folder if left out.")
    ] = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    embed: EmbedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the main job: read a conversation, store what it supports, say why.

    Needs a model: any OpenAI-compatible endpoint will do.
    """
    import tempfile

    from memguard.cli.write import write

    if model is None:
        _ask_for_model()
    folder = store or tempfile.mkdtemp(prefix="memguard-demo-")
    write(
        file or demo_conversation(),
        store=folder,
        model=model,
        base_url=base_url,
        embed=embed,
        user="demo",
        as_json=as_json,
    )


def demo_conversation() -> Path:
    """The conversation that ships with memguard."""
    return Path(__file__).with_name("demo.json")


def _ask_for_model() -> None:
    from memguard.errors import ErrorCode, ModelConfigurationError

    msg = (
        "the demo needs a language model, and none is set. With a key: `export "
        "OPENAI_API_KEY=...; make demo MODEL=openai:gpt-5-mini`. With a local server (Ollama, "
        "vLLM, llama.cpp): `make demo MODEL=openai:NAME BASE_URL=http://localhost:11434/v1`"
    )
    raise ModelConfigurationError(msg, code=ErrorCode.MODEL_MISSING)
