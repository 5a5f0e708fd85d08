"""A graph as boxes and lines with places: the second half of a layered drawing. Pure.

What is nested is laid out first, by itself, and is one box for what surrounds it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from langchain_core.runnables.graph import Graph

from memguard.drawing.layers import Edge, order_rows, rows_of, split_cycles, via_of

GAP_X, GAP_Y = 28.0, 40.0
PADDING, TITLE = 18.0, 24.0
_BOX_HEIGHT, _LEAST_WIDTH, _CHARACTER, _BESIDE = 34.0, 74.0, 7.6, 30.0
_BEND = 14.0
_BULGE = 34.0
_OUTER = ""
_TERMINALS = {"__start__": "start", "__end__": "end"}

Point = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Box:
    """A node, or the frame of a nested graph."""

    name: str
    x: float
    y: float
    width: float
    height: float
    kind: str
    """`node`, `terminal` or `frame`."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """An edge, from the end of one box to the beginning of another."""

    points: tuple[Point, ...]
    dashed: bool
    """Whether it is one of several ways."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """All of a drawing, in points, from the upper left corner."""

    width: float
    height: float
    frames: tuple[Box, ...]
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


@dataclass
class _Nest:
    """One graph in the making: what lies in it, and how large it came out."""

    children: list[str]
    edges: list[Edge] = field(default_factory=list[Edge])
    width: float = 0.0
    height: float = 0.0
    places: dict[str, Point] = field(default_factory=dict[str, Point])
    bends: dict[Edge, tuple[str, ...]] = field(default_factory=dict[Edge, tuple[str, ...]])
    back: set[Edge] = field(default_factory=set[Edge])


def make_picture(graph: Graph) -> Picture:
    """Lay a graph out; nested graphs are what `get_graph(xray=True)` shows of them."""
    nests = _nests_of(graph)
    sizes: dict[str, Point] = {name: _size_of(name) for name in graph.nodes}
    for name in sorted(nests, key=lambda each: -each.count(":") if each else 1):
        _arrange(nests[name], sizes, inner=name != _OUTER)
        sizes[name] = (nests[name].width, nests[name].height)
    corners: dict[str, Point] = {}
    _place(_OUTER, (PADDING, PADDING), nests, corners)
    outer = nests[_OUTER]
    conditional = {(edge.source, edge.target): edge.conditional for edge in graph.edges}
    lines = tuple(
        Line(points=_route(edge, nests, corners, sizes), dashed=dashed)
        for edge, dashed in conditional.items()
    )
    right = max((x for line in lines for x, _ in line.points), default=0.0)
    return Picture(
        width=max(outer.width + 2 * PADDING, right + PADDING),
        height=outer.height + 2 * PADDING,
        frames=tuple(
            _box(name, corners, sizes, kind="frame") for name in sorted(nests) if name != _OUTER
        ),
        boxes=tuple(
            _box(name, corners, sizes, kind="terminal" if _short(name) in _TERMINALS else "node")
            for name in graph.nodes
        ),
        lines=lines,
    )


def title_of(name: str) -> str:
    """What a person reads in a box."""
    short = _short(name)
    return _TERMINALS.get(short, short.replace("_", " "))


def _short(name: str) -> str:
    return name.rsplit(":", maxsplit=1)[-1]


def _parent(name: str) -> str:
    return name.rpartition(":")[0]


def _nests_of(graph: Graph) -> dict[str, _Nest]:
    nests: dict[str, _Nest] = {_OUTER: _Nest(children=[])}

    def nest(name: str) -> _Nest:
        if name not in nests:
            nests[name] = _Nest(children=[])
            nest(_parent(name)).children.append(name)
        return nests[name]

    for name in graph.nodes:
        nest(_parent(name)).children.append(name)
    for edge in graph.edges:
        where, source, target = _lift(edge.source, edge.target)
        if source != target and (source, target) not in nests[where].edges:
            nests[where].edges.append((source, target))
    return nests


def _lift(source: str, target: str) -> tuple[str, str, str]:
    """The innermost graph that holds both ends, and which of its children they are or lie in."""
    ones, others = source.split(":"), target.split(":")
    depth = 0
    while depth < min(len(ones), len(others)) - 1 and ones[depth] == others[depth]:
        depth += 1
    return ":".join(ones[:depth]), ":".join(ones[: depth + 1]), ":".join(others[: depth + 1])


def _size_of(name: str) -> Point:
    return max(_LEAST_WIDTH, len(title_of(name)) * _CHARACTER + _BESIDE), _BOX_HEIGHT


def _arrange(nest: _Nest, sizes: dict[str, Point], *, inner: bool) -> None:
    forward, nest.back = split_cycles(nest.children, nest.edges)
    rows = rows_of(nest.children, forward)
    steps: list[Edge] = []
    for edge in sorted(forward, key=nest.edges.index):
        nest.bends[edge] = via_of(edge, rows)
        path = (edge[0], *nest.bends[edge], edge[1])
        rows |= {bend: rows[edge[0]] + n for n, bend in enumerate(nest.bends[edge], start=1)}
        steps += list(pairwise(path))
    for bends in nest.bends.values():
        sizes |= dict.fromkeys(bends, (_BEND, 0.0))
    ordered = order_rows(rows, steps)
    widths = [sum(sizes[each][0] for each in row) + GAP_X * (len(row) - 1) for row in ordered]
    widest = max(widths, default=0.0)
    top = PADDING + TITLE if inner else 0.0
    side = PADDING if inner else 0.0
    for row, width in zip(ordered, widths, strict=True):
        height = max(sizes[each][1] for each in row)
        x = side + (widest - width) / 2
        for each in row:
            if sizes[each][1] == 0.0:  # a bend runs straight past what is in its row
                sizes[each] = (_BEND, height)
            nest.places[each] = (x, top + (height - sizes[each][1]) / 2)
            x += sizes[each][0] + GAP_X
        top += height + GAP_Y
    nest.width = widest + 2 * side + (_BULGE if nest.back else 0.0)
    nest.height = top - GAP_Y + side


def _place(name: str, corner: Point, nests: Mapping[str, _Nest], corners: dict[str, Point]) -> None:
    """From places within a nested graph to places on the page."""
    corners[name] = corner
    for child, (x, y) in nests[name].places.items():
        corners[child] = (corner[0] + x, corner[1] + y)
        if child in nests:
            _place(child, corners[child], nests, corners)


def _route(
    edge: Edge,
    nests: Mapping[str, _Nest],
    corners: Mapping[str, Point],
    sizes: Mapping[str, Point],
) -> tuple[Point, ...]:
    where, source, target = _lift(*edge)
    if (source, target) in nests[where].back:
        return _route_back(edge, corners, sizes, right=max(_right(s, corners, sizes) for s in edge))
    bends = nests[where].bends.get((source, target), ())
    first, last = edge
    return (
        (_centre(first, corners, sizes), corners[first][1] + sizes[first][1]),
        *(point for bend in bends for point in _past(bend, corners, sizes)),
        (_centre(last, corners, sizes), corners[last][1]),
    )


def _route_back(
    edge: Edge, corners: Mapping[str, Point], sizes: Mapping[str, Point], *, right: float
) -> tuple[Point, ...]:
    """Around the right side, from the middle of one box to the middle of the other."""
    (start, end) = (
        (_right(each, corners, sizes), corners[each][1] + sizes[each][1] / 2) for each in edge
    )
    out = right + _BULGE
    return start, (out, start[1]), (out, end[1]), end


def _past(
    bend: str, corners: Mapping[str, Point], sizes: Mapping[str, Point]
) -> tuple[Point, Point]:
    x, top = _centre(bend, corners, sizes), corners[bend][1]
    return (x, top), (x, top + sizes[bend][1])


def _centre(name: str, corners: Mapping[str, Point], sizes: Mapping[str, Point]) -> float:
    return corners[name][0] + sizes[name][0] / 2


def _right(name: str, corners: Mapping[str, Point], sizes: Mapping[str, Point]) -> float:
    return corners[name][0] + sizes[name][0]


def _box(name: str, corners: Mapping[str, Point], sizes: Mapping[str, Point], *, kind: str) -> Box:
    (x, y), (width, height) = corners[name], sizes[name]
    return Box(name=name, x=x, y=y, width=width, height=height, kind=kind)


def names_of(boxes: Sequence[Box]) -> tuple[str, ...]:
    """What a reader finds in the picture, for its description."""
    return tuple(title_of(box.name) for box in boxes)
