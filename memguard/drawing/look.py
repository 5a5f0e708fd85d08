"""Colours and measures, the same for every kind of picture; readable on white and on grey."""

INK, LINE = "#1f2933", "#52606d"
NODE, NODE_EDGE = "#eef4fb", "#3b6ea5"
TERMINAL, TERMINAL_EDGE = "#1f2933", "#1f2933"
FRAMES = ("#fafbfc", "#f3f5f7", "#eceff2")
FRAME_EDGE = "#9aa5b1"
PAPER = "#ffffff"
FONT_SIZE = 13.0
TITLE_SIZE = 12.0
RADIUS = 8.0
ARROW = 8.0
DASH = (5.0, 4.0)


def frame_fill(name: str) -> str:
    """A frame within a frame is a shade darker."""
    return FRAMES[min(name.count(":"), len(FRAMES) - 1)]
