"""Pictures of every graph: nothing overlaps, every edge is drawn, no network, no model."""

import io
import itertools
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables.graph import Graph
from PIL import Image

from memguard import drawing
from memguard.drawing.layers import order_rows, rows_of, split_cycles
from memguard.drawing.picture import Box, make_picture, title_of
from memguard.errors import InvalidInputError

GOLDEN = Path(__file__).parents[2] / "golden" / "graphs"
PICTURES = sorted((Path(__file__).parents[3] / "docs" / "pictures").glob("*.svg"))
NAMES = sorted(drawing.GRAPHS)


@pytest.fixture(scope="module")
def graphs() -> dict[str, Any]:
    return {name: drawing.open_graph(name) for name in NAMES}


def shown(graph: Any) -> Graph:
    return graph.get_graph(xray=True)


def overlap(one: Box, other: Box) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


def inside(inner: Box, outer: Box) -> bool:
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.x + inner.width <= outer.x + outer.width
        and inner.y + inner.height <= outer.y + outer.height
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_graph_has_a_golden_mermaid(name: str, graphs: dict[str, Any]) -> None:
    golden = GOLDEN / f"{name}.mmd"
    assert golden.read_text(encoding="utf-8") == drawing.to_mermaid(graphs[name])


@pytest.mark.parametrize("name", NAMES)
def test_boxes_do_not_overlap_and_lie_in_their_frames(name: str, graphs: dict[str, Any]) -> None:
    picture = make_picture(shown(graphs[name]))
    for one, other in itertools.combinations(picture.boxes, 2):
        assert not overlap(one, other), (one.name, other.name)
    frames = {frame.name: frame for frame in picture.frames}
    for box in (*picture.boxes, *picture.frames):
        parent = box.name.rpartition(":")[0]
        if parent:
            assert inside(box, frames[parent]), box.name
        for frame in picture.frames:
            if not f"{box.name}:".startswith(f"{frame.name}:") and box not in picture.frames:
                assert not overlap(box, frame), (box.name, frame.name)
        assert box.x >= 0
        assert box.x + box.width <= picture.width
        assert box.y + box.height <= picture.height
    for line in picture.lines:
        assert all(0 <= x <= picture.width and 0 <= y <= picture.height for x, y in line.points)


@pytest.mark.parametrize("name", NAMES)
def test_every_node_and_edge_is_drawn(name: str, graphs: dict[str, Any]) -> None:
    graph = shown(graphs[name])
    picture = make_picture(graph)
    assert {box.name for box in picture.boxes} == set(graph.nodes)
    assert len(picture.lines) == len({(edge.source, edge.target) for edge in graph.edges})
    boxes = {box.name: box for box in picture.boxes}
    starts = {(boxes[e.source].x + boxes[e.source].width / 2) for e in graph.edges}
    assert {line.points[0][0] for line in picture.lines} & starts


@pytest.mark.parametrize("name", NAMES)
def test_svg_is_well_formed_says_all_and_loads_nothing(name: str, graphs: dict[str, Any]) -> None:
    text = drawing.to_svg(graphs[name])
    root = ET.fromstring(text)
    said = {each.text for each in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {title_of(node) for node in shown(graphs[name]).nodes} <= said
    assert not re.search(r"(href|src)=|@import|<script", text)
    page = drawing.to_page(graphs[name])
    assert text in page
    assert not re.search(r"(href|src)=|@import|<script", page)


@pytest.mark.parametrize("name", NAMES)
def test_png_is_an_image_with_something_on_it(name: str, graphs: dict[str, Any]) -> None:
    picture = make_picture(shown(graphs[name]))
    image = Image.open(io.BytesIO(drawing.to_png(graphs[name])))
    assert image.size == (round(picture.width * 2), round(picture.height * 2))
    assert len(image.convert("L").getcolors(256) or []) > 8


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_the_pictures_of_the_pages_are_those_of_today(path: Path, graphs: dict[str, Any]) -> None:
    """After a change that is meant: `memguard graph NAME --svg docs/pictures/NAME.svg`."""
    assert path.read_text(encoding="utf-8") == drawing.to_svg(graphs[path.stem])


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match="write_guard"):
        drawing.open_graph("everything")


def test_a_graph_that_goes_back() -> None:
    forward, back = split_cycles("abc", [("a", "b"), ("b", "c"), ("c", "a"), ("b", "b")])
    assert back == {("c", "a"), ("b", "b")}
    assert rows_of("abc", forward) == {"a": 0, "b": 1, "c": 2}


def test_rows_are_ordered_with_few_crossings() -> None:
    rows = {"a": 0, "b": 0, "x": 1, "y": 1}
    assert order_rows(rows, [("a", "y"), ("b", "x")]) == [["a", "b"], ["y", "x"]]
