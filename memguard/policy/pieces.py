"""Whether pieces of a memory are the memory: nothing lost, nothing added. Pure."""

import hashlib


def pieces_key(text: str, *, fingerprint: str) -> str:
    """Under which the pieces of a memory are kept: the same text and decomposer, the same key."""
    return hashlib.sha256(f"{fingerprint}\x1f{text}".encode()).hexdigest()[:32]
