"""`memguard graph NAME`: a picture of a graph, drawn on this machine."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from memguard.cli.options import GateOption, PresetOption
from memguard.errors import ErrorCode, InvalidInputError


def graph(
    name: Annotated[
        str | None, typer.Argument(help="Name of the graph; without it, all names are listed.")
    ] = None,
    svg: Annotated[Path | None, typer.Option("--svg", help="Write an SVG to this file.")] = None,
    png: Annotated[Path | None, typer.Option("--png", help="Write a PNG to this file.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page to this file.")] = None,
    mermaid: Annotated[
        Path | None, typer.Option("--mermaid", help="Write Mermaid to this file.")
    ] = None,
    gate: GateOption = None,
    preset: PresetOption = None,
) -> None:
    """Draw a graph with all nested graphs; without a file, print it as Mermaid.

    SVG, PNG and pages need the extra `draw`.
    """
    from memguard import drawing

    if name is None:
        sys.stdout.write("\n".join(drawing.GRAPHS) + "\n")
        return
    drawn = drawing.open_graph(name, gates=gate or (), presets=preset or ())
    pictures = (
        (svg, drawing.to_svg),
        (png, drawing.to_png),
        (html, drawing.to_page),
        (mermaid, drawing.to_mermaid),
    )
    for path, draw in pictures:
        if path is not None:
            _write(path, draw(drawn))
    if not any((svg, png, html, mermaid)):
        sys.stdout.write(drawing.to_mermaid(drawn))


def _write(path: Path, picture: str | bytes) -> None:
    try:
        path.write_bytes(picture if isinstance(picture, bytes) else picture.encode())
    except OSError as error:
        msg = f"cannot write {str(path)!r}: {error.strerror}; name a file in a folder that exists"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID) from error
    # On standard error, so that standard output is empty or a picture.
    sys.stderr.write(f"wrote {path}\n")
