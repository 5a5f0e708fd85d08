"""`memguard graph NAME`: a picture of a graph, made here."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def graph(
    name: Annotated[
        str | None, typer.Argument(help="Which graph; all names are listed when left out.")
    ] = None,
    svg: Annotated[Path | None, typer.Option("--svg", help="File for an SVG.")] = None,
    png: Annotated[Path | None, typer.Option("--png", help="File for a PNG; needs Pillow.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="File for a page.")] = None,
    mermaid: Annotated[Path | None, typer.Option("--mermaid", help="File for Mermaid.")] = None,
) -> None:
    """Draw a graph, with all that is nested in it; without a file, print it as Mermaid."""
    from memguard import drawing

    if name is None:
        sys.stdout.write("\n".join(drawing.GRAPHS) + "\n")
        return
    opened = drawing.open_graph(name)
    if svg is not None:
        _write(svg, drawing.to_svg(opened))
    if png is not None:
        _write(png, drawing.to_png(opened))
    if html is not None:
        _write(html, drawing.to_page(opened))
    if mermaid is not None:
        _write(mermaid, drawing.to_mermaid(opened))
    if not any((svg, png, html, mermaid)):
        sys.stdout.write(drawing.to_mermaid(opened))


def _write(path: Path, picture: str | bytes) -> None:
    from memguard.errors import ErrorCode, InvalidInputError

    try:
        path.write_bytes(picture if isinstance(picture, bytes) else picture.encode())
    except OSError as error:
        msg = f"cannot write {str(path)!r}: {error.strerror}; name a file in a folder that there is"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID) from error
    sys.stderr.write(f"wrote {path}\n")
