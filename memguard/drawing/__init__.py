"""Pictures of the graphs: Mermaid, SVG, PNG, and a page. They are drawn on this machine."""

from memguard.drawing.catalog import GRAPHS, open_graph
from memguard.drawing.pictures import to_mermaid, to_page, to_png, to_svg

__all__ = ["GRAPHS", "open_graph", "to_mermaid", "to_page", "to_png", "to_svg"]
