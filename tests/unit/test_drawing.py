"""Pictures of every graph: nothing overlaps, every edge is drawn, no network, no model."""

import io
import itertools
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables.graph import Edge, Graph, Node
from PIL import Image

from memguard import drawing
from memguard.drawing import title_of, to_dot
from memguard.errors import ConfigurationError, InvalidInputError

GOLDEN = Path(__file__).parents[1] / "golden" / "graphs"
NAMES = sorted(drawing.GRAPHS)
# Other pictures of the pages, such as the life of a memory, are no graphs.
PICTURES = [
    path
    for path in sorted((Path(__file__).parents[2] / "docs" / "pictures").glob("*.svg"))
    if path.stem in NAMES
]
SVG = "{http://www.w3.org/2000/svg}"
PRESETS = [
    ("conmem", "paper"),
    ("consistency_gate", "fast"),
    ("consistency_gate", "paper"),
    ("factor_compiled", "paper"),
    ("memory_agent", "paper"),
    ("permission_semantic", "paper"),
    ("read_guard", "paper"),
    ("write_guard", "adaptive"),
    ("write_guard", "paper"),
    ("writer", "paper"),
]

Box = tuple[float, float, float, float]
"""Left, bottom, right and top, in points."""


@pytest.fixture(scope="module")
def graphs() -> dict[str, Any]:
    return {name: drawing.open_graph(name) for name in NAMES}


def shown(graph: Any) -> Graph:
    return graph.get_graph(xray=True)


def boxes_of(graph: Graph) -> tuple[dict[str, Box], dict[str, Box], Box]:
    """Nodes, frames and page as Graphviz places them."""
    layout = json.loads(drawing._layout(to_dot(graph), format="json"))
    nodes: dict[str, Box] = {}
    frames: dict[str, Box] = {}
    for item in layout["objects"]:
        if item["name"].startswith("cluster "):
            left, bottom, right, top = map(float, item["bb"].split(","))
            frames[item["name"].removeprefix("cluster ")] = (left, bottom, right, top)
        elif "pos" in item:
            x, y = map(float, item["pos"].split(","))
            width, height = float(item["width"]) * 36, float(item["height"]) * 36
            nodes[item["name"]] = (x - width, y - height, x + width, y + height)
    left, bottom, right, top = map(float, layout["bb"].split(","))
    return nodes, frames, (left, bottom, right, top)


def overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def inside(inner: Box, outer: Box) -> bool:
    slack = 0.1  # Graphviz rounds sizes to hundredths of a point
    return (
        outer[0] - slack <= inner[0]
        and outer[1] - slack <= inner[1]
        and inner[2] <= outer[2] + slack
        and inner[3] <= outer[3] + slack
    )


def titles_in(svg: str, kind: str) -> set[str]:
    """The Graphviz titles of all nodes, edges or clusters of an SVG."""
    groups = ET.fromstring(svg).iter(f"{SVG}g")
    return {group.findtext(f"{SVG}title") or "" for group in groups if group.get("class") == kind}


@pytest.mark.parametrize("name", NAMES)
def test_every_graph_has_a_golden_mermaid(name: str, graphs: dict[str, Any]) -> None:
    golden = GOLDEN / f"{name}.mmd"
    assert golden.read_text(encoding="utf-8") == drawing.to_mermaid(graphs[name])


@pytest.mark.parametrize("name", NAMES)
def test_boxes_do_not_overlap_and_lie_in_their_frames(name: str, graphs: dict[str, Any]) -> None:
    nodes, frames, page = boxes_of(shown(graphs[name]))
    for (one, box), (other, second) in itertools.combinations(nodes.items(), 2):
        assert not overlap(box, second), (one, other)
    for node, box in {**nodes, **frames}.items():
        parent = (
            node.removeprefix("title ") if node.startswith("title ") else node.rpartition(":")[0]
        )
        if parent:
            assert inside(box, frames[parent]), node
        assert inside(box, page), node
    for node, box in nodes.items():
        for frame, outline in frames.items():
            if not f"{node.removeprefix('title ')}:".startswith(f"{frame}:"):
                assert not overlap(box, outline), (node, frame)


@pytest.mark.parametrize("name", NAMES)
def test_every_node_and_edge_is_drawn(name: str, graphs: dict[str, Any]) -> None:
    graph, svg = shown(graphs[name]), drawing.to_svg(graphs[name])
    nodes = {title for title in titles_in(svg, "node") if not title.startswith("title ")}
    assert nodes == set(graph.nodes)
    edges = {(edge.source, edge.target) for edge in graph.edges}
    assert {tuple(title.split("->")) for title in titles_in(svg, "edge")} == edges


@pytest.mark.parametrize("name", NAMES)
def test_svg_is_well_formed_says_all_and_loads_nothing(name: str, graphs: dict[str, Any]) -> None:
    text = drawing.to_svg(graphs[name])
    graph = shown(graphs[name])
    words = {item.text for item in ET.fromstring(text).iter(f"{SVG}text")}
    assert {title_of(node) for node in graph.nodes} - {""} <= words
    nested = {node.rpartition(":")[0] for node in graph.nodes if ":" in node}
    assert {title_of(parent) for parent in nested} <= words
    assert not re.search(r"(href|src)=|@import|<script|<!DOCTYPE", text)
    page = drawing.to_page(graphs[name])
    assert text in page
    assert not re.search(r"(href|src)=|@import|<script", page)


@pytest.mark.parametrize("name", NAMES)
def test_png_is_an_image_with_something_on_it(name: str, graphs: dict[str, Any]) -> None:
    image = Image.open(io.BytesIO(drawing.to_png(graphs[name])))
    *_, page = boxes_of(shown(graphs[name]))
    assert image.size[0] >= page[2] * drawing.PNG_DPI / 72
    assert image.size[1] >= page[3] * drawing.PNG_DPI / 72
    assert len(image.convert("L").getcolors(256) or []) > 8


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_the_pictures_of_the_pages_are_those_of_today(path: Path, graphs: dict[str, Any]) -> None:
    """After an intended change: `memguard graph NAME --svg docs/pictures/NAME.svg`.

    Places depend on the fonts of a machine, so nodes, frames, edges and words are compared.
    """
    stored, drawn = path.read_text(encoding="utf-8"), drawing.to_svg(graphs[path.stem])
    for kind in ("node", "edge", "cluster"):
        assert titles_in(stored, kind) == titles_in(drawn, kind)
    assert re.findall(r"<text[^>]*>([^<]*)", stored) == re.findall(r"<text[^>]*>([^<]*)", drawn)


def test_conmem_has_the_shape_of_the_paper() -> None:
    paper = shown(drawing.open_graph("conmem", presets=["paper"]))
    edges = {(edge.source, edge.target) for edge in paper.edges}
    inner = "run_probe:{}".format
    for arm, judge in itertools.product(("control", "treatment"), ("judge", "auditor")):
        assert (inner(arm), inner(judge)) in edges
    assert (inner("__end__"), "cmte") in edges
    assert ("cmte", "decide") in edges
    speculation = {("generate_probes", inner("__start__")), ("cmte", "repair_probes")}
    assert not edges & speculation
    both = shown(drawing.open_graph("conmem"))
    assert {(edge.source, edge.target) for edge in both.edges} - edges == speculation


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_a_preset_can_be_drawn(name: str, preset: str) -> None:
    assert drawing.to_mermaid(drawing.open_graph(name, presets=[preset]))


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match="write_guard"):
        drawing.open_graph("everything")
    with pytest.raises(InvalidInputError, match=r"adaptive.*fast.*paper.*recommended"):
        drawing.open_graph("consistency_gate", presets=["best"])
    with pytest.raises(InvalidInputError, match="no gate named 'best'"):
        drawing.open_graph("write_guard", gates=["best"])
    with pytest.raises(InvalidInputError, match="conmem has no gates"):
        drawing.open_graph("conmem", gates=["consistency"])
    with pytest.raises(InvalidInputError, match="has no preset 'best'"):
        drawing.open_graph("writer", presets=["best"])


def test_any_name_is_quoted_and_an_edge_shows_its_label() -> None:
    nodes = {name: Node(id=name, name=name, data=None, metadata=None) for name in ('a"b', "c -> d")}
    edge = Edge(source='a"b', target="c -> d", data="next_gate", conditional=True)
    dot = to_dot(Graph(nodes=nodes, edges=[edge]))
    svg = drawing._layout(dot, format="svg").decode()
    assert titles_in(svg, "node") == set(nodes)
    assert "next gate" in svg
    assert "stroke-dasharray" in svg


def test_without_graphviz_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pygraphviz", None)
    with pytest.raises(ConfigurationError, match=r"langgraph-memguard\[draw\]"):
        drawing.to_svg(drawing.open_graph("writer"))
    assert "graph TD" in drawing.to_mermaid(drawing.open_graph("writer"))
