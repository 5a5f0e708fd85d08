"""A search of raw files, as somebody would make who has the disk."""

import json
from collections.abc import Iterable
from pathlib import Path


def encoded_forms(word: str) -> set[bytes]:
    """The bytes that a word may be stored as: UTF-8, UTF-16, escaped in JSON once and twice."""
    forms: set[bytes] = set()
    for text in {word, word.lower(), word.upper(), word.casefold()}:
        forms |= {text.encode(), text.encode("utf-16-le"), text.encode("utf-16-be")}
        escaped = json.dumps(text)[1:-1]
        forms |= {escaped.encode(), json.dumps(escaped)[1:-1].encode()}
        forms.add("".join(f"\\u{unit:04x}" for unit in _units(text)).encode())
    return forms


def files_with(folder: Path, words: Iterable[str]) -> set[tuple[str, str]]:
    """The names of files at or below a folder that have one of the words, with the word."""
    patterns = {word: encoded_forms(word) for word in words}
    matches: set[tuple[str, str]] = set()
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        content = path.read_bytes()
        for word, forms in patterns.items():
            if any(form in content for form in forms):
                matches.add((str(path.relative_to(folder)), word))
    return matches


def _units(text: str) -> list[int]:
    data = text.encode("utf-16-be")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]
