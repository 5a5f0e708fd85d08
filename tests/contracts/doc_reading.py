"""The adjudicator and decomposer behind the pages: answers by the words of each unit."""

import json
import re
from typing import Any

UNITS: dict[str, dict[str, Any]] = {
    "battery": {"kind": "claim", "subject": "world", "evidence_conflict": True},
    "brand A": {"kind": "preference"},
    "brother": {"kind": "fact", "subject": "bystander"},
    "allerg": {"kind": "safety"},
    "prefer": {"kind": "preference"},
}
"""What is found of a unit, by the first of these words that it holds; else a plain fact."""

ENTRIES: dict[str, dict[str, Any]] = {
    "brand A": {"role": "preference"},
    "brother": {"subject": "mismatch"},
    "allerg": {"role": "constraint", "safety": True},
    "prefer": {"role": "preference"},
}
"""The same of a whole entry."""

CUTS = {
    "because its battery": [
        {"text": "I prefer brand A", "kind": "preference"},
        {"text": "brand A's battery lasts longest", "kind": "claim"},
    ]
}
"""Memories that are cut, by words they hold."""

_LINE = re.compile(r"^\[(\w+)\] (?:\([^)]*\) )?(\".*\")$", re.MULTILINE)


def answer_reading(system: str, prompt: str) -> str | None:
    """The answer to a prompt of read time; `None` for any other prompt."""
    if "<memories>" in prompt:
        return json.dumps({"memories": [_cut(name, said) for name, said in _LINE.findall(prompt)]})
    if "<units>" not in prompt:
        return None
    if "<request>" not in prompt:
        return json.dumps({"conflicts": []})
    units = prompt.split("<units>")[1].split("</units>", maxsplit=1)[0]
    by_words, common = (ENTRIES, _ENTRY) if "- utility:" in system else (UNITS, _UNIT)
    rows = [
        {"unit": name, **common, **_first(by_words, json.loads(said))}
        for name, said in _LINE.findall(units)
    ]
    situation = {"target": "user", "mode": "recommendation", "asks_view": False}
    return json.dumps({"situation": situation, "units": rows})


_UNIT = {
    "kind": "fact",
    "subject": "user",
    "epistemic": "stated",
    "temporality": "current",
    "relevance": "direct",
}
_ENTRY = {
    "scope": "in",
    "subject": "match",
    "role": "fact",
    "epistemic": "stated",
    "temporal": "current",
    "utility": "helpful",
}


def _first(by_words: dict[str, dict[str, Any]], text: str) -> dict[str, Any]:
    return next((found for words, found in by_words.items() if words in text), {})


def _cut(name: str, said: str) -> dict[str, Any]:
    text = json.loads(said)
    units = next((found for words, found in CUTS.items() if words in text), None)
    kind = _first(UNITS, text).get("kind", "fact")
    return {"memory": name, "units": units or [{"text": text, "kind": kind}]}
