"""When two memories are one: only when their text is the same.

Similarity never decides: "may enter" and "may not enter", 14 May and 15 May, 20 mg and 200 mg are
close in any embedding and opposite in meaning. Only what a reader would call the same sentence is
a repeat.
"""

import hashlib
import unicodedata
import uuid

_CLOSING = ".\u3002\uff0e"


def same_text_form(text: str) -> str:
    """The form under which two texts count as the same.

    Canonical Unicode, runs of white space as one space, no white space around, no closing full
    stop. Case, digits, signs, units and every word stay: they carry meaning.
    """
    squeezed = " ".join(unicodedata.normalize("NFC", text).split())
    return squeezed.rstrip(_CLOSING).rstrip() or squeezed


def record_key(text: str) -> str:
    """The key of a memory within its namespace: the same for the same text, else different.

    128 bits of SHA-256 over `same_text_form(text)`. Spelled as a UUID, because langmem's memory
    tool edits and deletes by UUID.
    """
    digest = hashlib.sha256(same_text_form(text).encode()).digest()
    return str(uuid.UUID(bytes=digest[:16]))
