"""Pictures of the graphs: Mermaid, SVG, PNG and a page.

`open_graph` creates a graph by its name, with a model that is never called. LangGraph's drawing
knows Mermaid only; for the other formats, `to_dot` describes the graph in Graphviz's language.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from types import MappingProxyType
from typing import Any, cast

from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.runnables.graph import Edge
from langchain_core.runnables.graph import Graph as Drawing

from memguard.agent import create_memory_agent
from memguard.errors import ConfigurationError, ErrorCode, InvalidInputError
from memguard.methods.conmem.graph import create_conmem_graph
from memguard.methods.consistency_gate import create_consistency_gate_graph
from memguard.methods.factor_compiled import create_factor_compiled_graph
from memguard.methods.permission_semantic import create_permission_semantic_graph
from memguard.methods.reconcile import create_reconcile_graph
from memguard.methods.writer import create_writer_graph
from memguard.presets import (
    choose_admission,
    choose_gates,
    choose_reconcile,
    choose_writer,
    split_presets,
)
from memguard.read.graph import create_read_guard
from memguard.schema.read import FactorCompiled, PermissionSemantic
from memguard.uncheckpointed import Graph
from memguard.write.graph import create_write_guard

_DEFAULT_GATES = ("consistency",)
_HAVE_GATES = frozenset({"memory_agent", "write_guard", "write_guard-review"})


Create = Callable[[Sequence[str], Sequence[str]], Graph]
"""Creates a graph from names of gates and of presets; a method alone ignores the gates."""


def _model() -> BaseChatModel:
    # Any chat model would do: the graph is drawn and never run.
    return FakeListChatModel(responses=[])


def _gate(name: str, presets: Sequence[str]) -> Any:
    (spec,) = choose_gates([name], presets=presets)
    return spec


def _writer(_: Sequence[str], presets: Sequence[str]) -> Graph:
    return create_writer_graph(_model(), spec=choose_writer(presets))


def _read_guard(_: Sequence[str], presets: Sequence[str]) -> Graph:
    return create_read_guard(_model(), admission=choose_admission("ps", presets=presets))


def _write_guard(gates: Sequence[str], presets: Sequence[str], **settings: Any) -> Graph:
    specs = choose_gates(gates or _DEFAULT_GATES, presets=presets)
    return create_write_guard(_model(), gates=specs, **settings)


def _memory_agent(gates: Sequence[str], presets: Sequence[str]) -> Graph:
    # Without a choice the agent creates its guards itself, so the drawing has a user's defaults.
    if not gates and not presets:
        return create_memory_agent(_model())
    gates = gates or _DEFAULT_GATES
    for_gates, for_admission = split_presets(presets, gates=gates, admission="ps")
    read, write = _read_guard((), for_admission), _write_guard(gates, for_gates)
    return create_memory_agent(_model(), read=read, write=write)


GRAPHS: Mapping[str, Create] = MappingProxyType(
    {
        "conmem": lambda _, presets: create_conmem_graph(_model(), spec=_gate("conmem", presets)),
        "consistency_gate": lambda _, presets: create_consistency_gate_graph(
            _model(), spec=_gate("consistency", presets)
        ),
        "factor_compiled": lambda _, presets: create_factor_compiled_graph(
            _model(), spec=cast("FactorCompiled", choose_admission("fc", presets=presets))
        ),
        "memory_agent": _memory_agent,
        "permission_semantic": lambda _, presets: create_permission_semantic_graph(
            _model(), spec=cast("PermissionSemantic", choose_admission("ps", presets=presets))
        ),
        "read_guard": _read_guard,
        "reconcile": lambda _, presets: create_reconcile_graph(
            _model(), spec=choose_reconcile(presets)
        ),
        "write_guard": _write_guard,
        "write_guard-review": partial(_write_guard, review="interrupt"),
        "writer": _writer,
    }
)
"""How each graph is created."""


def open_graph(name: str, *, gates: Sequence[str] = (), presets: Sequence[str] = ()) -> Graph:
    """Create the graph of a name.

    Args:
        name: A key of `GRAPHS`.
        gates: Short names of the gates of a host, in order; `consistency` if empty. A method alone
            has none.
        presets: Names of presets, for the methods that have them.

    Raises:
        InvalidInputError: If there is no such graph, gate or preset; the message lists all.
    """
    create = GRAPHS.get(name)
    if create is None:
        msg = f"there is no graph {name!r}: use one of {', '.join(GRAPHS)}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    if gates and name not in _HAVE_GATES:
        msg = f"{name} has no gates: leave out {', '.join(map(repr, gates))}"
        raise InvalidInputError(msg, code=ErrorCode.SPEC_INVALID)
    return create(gates, presets)


PNG_DPI = 144
"""Twice Graphviz's 72 dots per inch: sharp on a dense screen."""

_INK, _LINE, _CHOICE, _PAPER = "#1f2933", "#52606d", "#7b8794", "#ffffff"
_FRAMES = ("#fafbfc", "#f1f4f7", "#e6ebf0")
"""Fill of nested graphs by depth: a frame within a frame is a shade darker."""

_FONT = "Helvetica,Arial,sans-serif"
_GRAPH = {"rankdir": "TB", "nodesep": "0.3", "ranksep": "0.4", "pad": "0.2", "bgcolor": _PAPER}
_NODE = {
    "shape": "box",
    "style": "rounded,filled",
    "fillcolor": "#eef4fb",
    "color": "#3b6ea5",
    "fontname": _FONT,
    "fontcolor": _INK,
    "fontsize": "13",
    # Wider than the text needs: the viewer's font may be wider than the one that was measured.
    "margin": "0.24,0.08",
    "height": "0.42",
}
_EDGE = {
    "color": _LINE,
    "arrowsize": "0.7",
    "fontname": _FONT,
    "fontsize": "11",
    "fontcolor": _LINE,
}
_TERMINAL = {"fillcolor": _INK, "color": _INK, "fontcolor": _PAPER, "height": "0.36"}
# Start and end of a nested graph are dots: its frame already says where it begins and ends.
_NESTED_TERMINAL = {
    "shape": "circle",
    "style": "filled",
    "label": "",
    "fixedsize": "true",
    "width": "0.12",
    "height": "0.12",
}
_TERMINALS = {"__start__": "start", "__end__": "end"}
_ACRONYMS = {"cmte": "CMTE"}

_FRAME = {"style": "rounded,filled", "color": "#9aa5b1", "margin": "14"}
_FRAME_TITLE = {
    "shape": "plaintext",
    "style": "",
    "fontcolor": _LINE,
    "fontsize": "12",
    "margin": "0",
    "width": "0",
    "height": "0.3",
}

# Everything is inline, so that the page works from a file and without a network.
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem }}
svg {{ max-width: 100%; height: auto }}
pre {{ background: #f3f5f7; overflow-x: auto; padding: 1rem }}
</style>
</head>
<body>
<h1>{name}</h1>
<p>A solid edge is always followed; a dashed one is one of several choices.</p>
{svg}
<details><summary>The same graph as Mermaid</summary><pre>{mermaid}</pre></details>
</body>
</html>
"""


def to_mermaid(graph: Graph) -> str:
    """The graph with all nested graphs, as a Mermaid flow chart."""
    return graph.get_graph(xray=True).draw_mermaid()


def to_svg(graph: Graph) -> str:
    """The graph with all nested graphs, as an SVG document that loads nothing.

    Raises:
        ConfigurationError: If the extra `draw` is not installed.
    """
    drawn = graph.get_graph(xray=True)
    text = _layout(to_dot(drawn), format="svg").decode()
    # Graphviz adds its version and the address of a DTD; neither belongs in an embedded picture.
    text = re.sub(r"<!--.*?-->\n?|<\?xml[^>]*>\n?|<!DOCTYPE[^>]*>\n?", "", text, flags=re.DOTALL)
    titles = ", ".join(title_of(name) for name in drawn.nodes if title_of(name))
    about = (
        f"<title>{escape(graph.get_name())}</title>\n"
        f"<desc>A flow chart of {escape(titles)}.</desc>\n"
    )
    head, end, rest = text.partition(">\n")
    return f'{head} role="img"{end}{about}{rest}'


def to_png(graph: Graph) -> bytes:
    """The graph with all nested graphs, as a PNG image.

    Raises:
        ConfigurationError: If the extra `draw` is not installed.
    """
    return _layout(to_dot(graph.get_graph(xray=True), dpi=PNG_DPI), format="png")


def to_page(graph: Graph) -> str:
    """The graph with all nested graphs, as an HTML page that loads nothing.

    Raises:
        ConfigurationError: If the extra `draw` is not installed.
    """
    return _PAGE.format(
        name=escape(graph.get_name()), svg=to_svg(graph), mermaid=escape(to_mermaid(graph))
    )


def to_dot(graph: Drawing, *, dpi: int | None = None) -> str:
    """The graph in Graphviz's language; nested graphs are clusters with a title.

    Args:
        graph: From `get_graph(xray=True)`, which names the nodes of nested graphs `outer:inner`.
        dpi: Dots per inch, for pixel formats.
    """
    settings = _GRAPH if dpi is None else {**_GRAPH, "dpi": str(dpi)}
    lines = [
        "digraph {",
        f"graph {_attributes(settings)};",
        f"node {_attributes(_NODE)};",
        f"edge {_attributes(_EDGE)};",
        *_cluster_lines("", list(graph.nodes)),
        *(_edge_line(edge) for edge in graph.edges),
        "}",
    ]
    return "\n".join(lines) + "\n"


def title_of(name: str) -> str:
    """The text of a node: its short name in words; empty for start and end of a nested graph."""
    parent, _, short = name.rpartition(":")
    if short in _TERMINALS:
        return "" if parent else _TERMINALS[short]
    return _ACRONYMS.get(short, short.replace("_", " "))


def _cluster_lines(parent: str, names: list[str]) -> Iterator[str]:
    """The nodes of one graph, and the clusters of the graphs nested in it."""
    prefix = f"{parent}:" if parent else ""
    nested: dict[str, list[str]] = {}
    for name in names:
        child, colon, _ = name.removeprefix(prefix).partition(":")
        if colon:
            nested.setdefault(f"{prefix}{child}", []).append(name)
        else:
            yield _node_line(name)
    for child, inner in nested.items():
        fill = _FRAMES[min(child.count(":"), len(_FRAMES) - 1)]
        # Graphviz draws a frame only around subgraphs whose name begins with `cluster`.
        yield f"subgraph {_quote(f'cluster {child}')} {{"
        yield f"graph {_attributes({**_FRAME, 'fillcolor': fill})};"
        yield from _title_lines(child, first=inner[0])
        yield from _cluster_lines(child, inner)
        yield "}"


def _title_lines(cluster: str, *, first: str) -> Iterator[str]:
    """The title of a nested graph, left of its first node.

    It is a node, because edges avoid nodes and run through the label of a cluster.
    """
    title = _quote(f"title {cluster}")
    yield f"{title} {_attributes({**_FRAME_TITLE, 'label': title_of(cluster)})};"
    # The same rank puts the title next to the node; a rank across frames would break them.
    is_direct = first.rpartition(":")[0] == cluster
    if is_direct:
        yield f"{{ rank=same; {title}; {_quote(first)}; }}"
    yield f"{title} -> {_quote(first)} [style=invis];"


def _node_line(name: str) -> str:
    attributes: dict[str, str] = {"label": title_of(name)}
    parent, _, short = name.rpartition(":")
    if short in _TERMINALS:
        attributes |= {**_TERMINAL, **(_NESTED_TERMINAL if parent else {})}
    return f"{_quote(name)} {_attributes(attributes)};"


def _edge_line(edge: Edge) -> str:
    attributes: dict[str, str] = {"style": "dashed", "color": _CHOICE} if edge.conditional else {}
    if edge.data:
        attributes["label"] = f" {str(edge.data).replace('_', ' ')} "
    return f"{_quote(edge.source)} -> {_quote(edge.target)} {_attributes(attributes)};"


def _attributes(attributes: Mapping[str, str]) -> str:
    return f"[{', '.join(f'{key}={_quote(value)}' for key, value in attributes.items())}]"


def _quote(text: str) -> str:
    # A JSON string is a DOT string too, for the names that LangGraph accepts.
    return json.dumps(text, ensure_ascii=False)


def _layout(dot: str, *, format: str) -> bytes:  # noqa: A002 - Graphviz's own word
    try:
        import pygraphviz  # noqa: PLC0415 - an extra
    except ImportError as error:
        msg = (
            "SVG, PNG and pages need Graphviz: pip install 'langgraph-memguard[draw]', "
            "or use Mermaid"
        )
        raise ConfigurationError(msg, code=ErrorCode.DRAW_EXTRA) from error
    return bytes(pygraphviz.AGraph(string=dot).draw(format=format, prog="dot") or b"")
