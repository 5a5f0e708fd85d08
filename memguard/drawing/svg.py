"""A picture as SVG: text stays text, and nothing is loaded from anywhere."""

from html import escape
from typing import Any

from langgraph.graph.state import CompiledStateGraph

from memguard.drawing import look
from memguard.drawing.picture import Box, Line, Picture, make_picture, names_of, title_of

_TIP = (
    '<defs><marker id="tip" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
    f'<path d="M0,0 L9,4 L0,8 z" fill="{look.LINE}"/></marker></defs>'
)


def to_svg(graph: CompiledStateGraph[Any, Any, Any, Any]) -> str:
    """The graph with all that is nested in it, as an SVG document."""
    return draw_svg(make_picture(graph.get_graph(xray=True)), title=graph.get_name())


def draw_svg(picture: Picture, *, title: str) -> str:
    """Draw a picture.

    Args:
        picture: What is drawn.
        title: What a screen reader says first.
    """
    width, height = round(picture.width), round(picture.height)
    said = ", ".join(names_of(picture.boxes))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="system-ui, sans-serif">'
    )
    parts = [
        head,
        f"<title>{escape(title)}</title>",
        f"<desc>A flow chart of {escape(said)}.</desc>",
        _TIP,
        f'<rect width="100%" height="100%" fill="{look.PAPER}"/>',
        *(_frame(frame) for frame in picture.frames),
        *(_line(line) for line in picture.lines),
        *(_box(box) for box in picture.boxes),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _frame(box: Box) -> str:
    return (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="{look.RADIUS:.0f}" fill="{look.frame_fill(box.name)}" stroke="{look.FRAME_EDGE}" '
        f'stroke-dasharray="2 3"/>'
        f'<text x="{box.x + 12:.1f}" y="{box.y + 19:.1f}" font-size="{look.TITLE_SIZE:.0f}" '
        f'fill="{look.LINE}">{escape(title_of(box.name))}</text>'
    )


def _box(box: Box) -> str:
    ends = box.kind == "terminal"
    fill, edge = (look.TERMINAL, look.TERMINAL_EDGE) if ends else (look.NODE, look.NODE_EDGE)
    radius = box.height / 2 if ends else look.RADIUS
    return (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="{radius:.0f}" fill="{fill}" stroke="{edge}"/>'
        f'<text x="{box.x + box.width / 2:.1f}" y="{box.y + box.height / 2 + 4.5:.1f}" '
        f'font-size="{look.FONT_SIZE:.0f}" text-anchor="middle" '
        f'fill="{look.PAPER if ends else look.INK}">{escape(title_of(box.name))}</text>'
    )


def _line(line: Line) -> str:
    path = " L".join(f"{x:.1f},{y:.1f}" for x, y in line.points)
    dash = f' stroke-dasharray="{look.DASH[0]:.0f} {look.DASH[1]:.0f}"' if line.dashed else ""
    return (
        f'<path d="M{path}" fill="none" stroke="{look.LINE}" stroke-width="1.3" '
        f'stroke-linejoin="round"{dash} marker-end="url(#tip)"/>'
    )
