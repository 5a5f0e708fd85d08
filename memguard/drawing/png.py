"""A picture as PNG, drawn by Pillow with the font that it carries."""

import io
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from langgraph.graph.state import CompiledStateGraph

from memguard.drawing import look
from memguard.drawing.picture import Box, Line, Picture, Point, make_picture, title_of
from memguard.errors import ConfigurationError, ErrorCode

SCALE = 2
"""Pixels to a point: sharp on a dense screen."""


def to_png(graph: CompiledStateGraph[Any, Any, Any, Any]) -> bytes:
    """The graph with all that is nested in it, as a PNG image.

    Raises:
        ConfigurationError: If Pillow is not installed.
    """
    return draw_png(make_picture(graph.get_graph(xray=True)))


def draw_png(picture: Picture) -> bytes:
    """Draw a picture.

    Raises:
        ConfigurationError: If Pillow is not installed.
    """
    try:
        from PIL import Image, ImageDraw  # noqa: PLC0415 - an extra
    except ImportError as error:
        msg = "a PNG needs Pillow: pip install 'langgraph-memguard[draw]', or write an SVG"
        raise ConfigurationError(msg, code=ErrorCode.DRAW_EXTRA) from error
    size = (round(picture.width * SCALE), round(picture.height * SCALE))
    image = Image.new("RGB", size, look.PAPER)
    pen = ImageDraw.Draw(image)
    for frame in picture.frames:
        _rectangle(pen, frame, fill=look.frame_fill(frame.name), edge=look.FRAME_EDGE)
        _text(pen, (frame.x + 12, frame.y + 14), frame, size=look.TITLE_SIZE, fill=look.LINE)
    for line in picture.lines:
        _line(pen, line)
    for box in picture.boxes:
        ends = box.kind == "terminal"
        fill, edge = (look.TERMINAL, look.TERMINAL_EDGE) if ends else (look.NODE, look.NODE_EDGE)
        _rectangle(pen, box, fill=fill, edge=edge, radius=box.height / 2 if ends else look.RADIUS)
        middle = (box.x + box.width / 2, box.y + box.height / 2)
        ink = look.PAPER if ends else look.INK
        _text(pen, middle, box, size=look.FONT_SIZE, fill=ink, anchor="mm")
    out = io.BytesIO()
    image.save(out, format="PNG", optimize=True)
    return out.getvalue()


def _rectangle(pen: Any, box: Box, *, fill: str, edge: str, radius: float = look.RADIUS) -> None:
    corners = (box.x, box.y, box.x + box.width, box.y + box.height)
    pen.rounded_rectangle(
        [each * SCALE for each in corners],
        radius=radius * SCALE,
        fill=fill,
        outline=edge,
        width=SCALE,
    )


def _text(pen: Any, at: Point, box: Box, *, size: float, fill: str, anchor: str = "lm") -> None:
    from PIL import ImageFont  # noqa: PLC0415 - an extra

    font = ImageFont.load_default(size=size * SCALE)
    pen.text(
        (at[0] * SCALE, at[1] * SCALE), title_of(box.name), font=font, fill=fill, anchor=anchor
    )


def _line(pen: Any, line: Line) -> None:
    for start, end in _strokes(line):
        points = [start[0] * SCALE, start[1] * SCALE, end[0] * SCALE, end[1] * SCALE]
        pen.line(points, fill=look.LINE, width=SCALE + 1)
    (x, y), (before_x, before_y) = line.points[-1], line.points[-2]
    angle = math.atan2(y - before_y, x - before_x)
    sides = [angle + 2.7, angle - 2.7]  # radians off the line's own direction
    corners = [(x + look.ARROW * math.cos(a), y + look.ARROW * math.sin(a)) for a in sides]
    tip = [(at_x * SCALE, at_y * SCALE) for at_x, at_y in ((x, y), *corners)]
    pen.polygon(tip, fill=look.LINE)


def _strokes(line: Line) -> Iterator[tuple[Point, Point]]:
    """The pieces of a line that are drawn: all of it, or its dashes."""
    for (x, y), (to_x, to_y) in pairwise(line.points):
        length = math.hypot(to_x - x, to_y - y)
        if not line.dashed or not length:
            yield (x, y), (to_x, to_y)
            continue
        at = 0.0
        while at < length:
            end = min(at + look.DASH[0], length)
            yield (
                (x + (to_x - x) * at / length, y + (to_y - y) * at / length),
                (x + (to_x - x) * end / length, y + (to_y - y) * end / length),
            )
            at = end + look.DASH[1]
