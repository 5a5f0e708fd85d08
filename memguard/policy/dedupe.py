"""Recognises repeated memories: only those with the same text.

Similarity must not decide. "May enter" and "may not enter", 14 May and 15 May, 20 mg and 200 mg are
close in any embedding but differ in meaning. Only what a reader would call the same sentence is a
repeat.
"""

import hashlib
import unicodedata
import uuid

# Full stops of Latin, Chinese and Japanese text, and the full-width one.
_CLOSING = ".\u3002\uff0e"


def same_text_form(text: str) -> str:
    """The normalised form of a text; texts with the same form are repeats.

    Unicode NFC, single spaces, no surrounding white space and no final full stop. Case, digits,
    signs, units and all words stay, because they carry meaning.
    """
    # NFC and not NFKC, which would turn 10² into 102.
    squeezed = " ".join(unicodedata.normalize("NFC", text).split())
    # A text of full stops alone keeps them, or it would have an empty form.
    return squeezed.rstrip(_CLOSING).rstrip() or squeezed


def record_key(text: str) -> str:
    """The key of a memory within its namespace, the same for repeats of a text.

    128 bits of SHA-256 over `same_text_form(text)`, written as a UUID, because langmem's memory
    tool edits and deletes by UUID.
    """
    digest = hashlib.sha256(same_text_form(text).encode()).digest()
    return str(uuid.UUID(bytes=digest[:16]))
