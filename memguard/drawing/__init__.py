"""Pictures of the graphs, made here: Mermaid, SVG, PNG, and a page; no service is asked."""

from memguard.drawing.catalog import GRAPHS, open_graph
from memguard.drawing.mermaid import to_mermaid
from memguard.drawing.page import to_page
from memguard.drawing.png import to_png
from memguard.drawing.svg import to_svg

__all__ = ["GRAPHS", "open_graph", "to_mermaid", "to_page", "to_png", "to_svg"]
