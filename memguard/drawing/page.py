"""A page with the picture, for a browser without a network."""

from html import escape
from typing import Any

from langgraph.graph.state import CompiledStateGraph

from memguard.drawing.mermaid import to_mermaid
from memguard.drawing.svg import to_svg

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
<p>A full line is always followed; a dashed one is one of several ways.</p>
{svg}
<details><summary>The same as Mermaid</summary><pre>{mermaid}</pre></details>
</body>
</html>
"""


def to_page(graph: CompiledStateGraph[Any, Any, Any, Any]) -> str:
    """The graph with all that is nested in it, as an HTML page that loads nothing."""
    return _PAGE.format(
        name=escape(graph.get_name()), svg=to_svg(graph), mermaid=escape(to_mermaid(graph))
    )
