"""Namespace labels for stores that refuse some characters. Reversible.

LangGraph's own stores allow no dot in a label and no empty label, so an e-mail address raises
there. `%` is the escape: it, the dot and NUL become `%` and two hexadecimal digits.
"""

import re

_ESCAPED = re.compile(r"[%.\x00]")
_ESCAPE = re.compile(r"%([0-9A-F]{2})")


def encode_label(label: str) -> str:
    """The label without dots; a label that has none comes back as it is."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", label)


def decode_label(label: str) -> str:
    """What `encode_label` was given."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), label)
