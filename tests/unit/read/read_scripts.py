"""A model that cuts and adjudicates by rule, for whole runs of the read guard."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from memguard.testing import ScriptedChatModel

JUDGES = re.compile(r"<units>")
CUTS = re.compile(r"<memories>")
UNIT: dict[str, Any] = {
    "kind": "fact",
    "subject": "user",
    "epistemic": "stated",
    "temporality": "current",
    "relevance": "direct",
    "evidence_conflict": False,
    "conflicts_with": [],
    "influence": 0.5,
}
ENTRY: dict[str, Any] = {
    "scope": "in",
    "subject": "match",
    "role": "fact",
    "epistemic": "stated",
    "temporal": "current",
    "utility": "needed",
    "safety": False,
    "allowed_content": "",
    "evidence_conflict": False,
    "conflicts_with": [],
    "influence": 0.5,
}
SITUATION: dict[str, Any] = {"target": "user", "mode": "recommendation", "asks_view": False}

Rows = Mapping[str, Mapping[str, Any]]
"""Attributes by the text of a unit; what is left out is as in `UNIT` or `ENTRY`."""


def reader(
    rows: Rows | None = None,
    *,
    base: Mapping[str, Any] = UNIT,
    situation: Mapping[str, Any] | None = None,
    judge: Callable[[str], Any] | None = None,
    kinds: Mapping[str, str] | None = None,
    **settings: Any,
) -> ScriptedChatModel:
    """A model that leaves memories whole and gives every unit its row."""

    def say(messages: Any) -> Any:
        shown = str(messages[-1].content)
        if judge is not None:
            return judge(shown)
        units = [
            {"unit": name, "reason": "scripted", **base, **(rows or {}).get(text, {})}
            for name, text in units_in(shown)
        ]
        return json.dumps({"situation": {**SITUATION, **(situation or {})}, "units": units})

    def cut(messages: Any) -> Any:
        found = re.findall(r'^\[(m\d+)\] (".*")$', str(messages[-1].content), re.MULTILINE)
        return json.dumps(
            {
                "memories": [
                    {
                        "memory": name,
                        "units": [
                            {"text": json.loads(text), "kind": _kind(json.loads(text), kinds)}
                        ],
                    }
                    for name, text in found
                ]
            }
        )

    return ScriptedChatModel(rules=[(JUDGES, say), (CUTS, cut)], **settings)


def _kind(text: str, kinds: Mapping[str, str] | None) -> str:
    return (kinds or {}).get(text, "fact")


def units_in(prompt: str) -> list[tuple[str, str]]:
    """Name and text of the units that an adjudication prompt shows."""
    lines = prompt.partition("<units>\n")[2].partition("\n</units>")[0]
    found = re.findall(r'^\[(u\d+)\] \([^"]*\) (".*")$', lines, re.MULTILINE)
    return [(name, json.loads(text)) for name, text in found]


def prompts_of(model: ScriptedChatModel, kind: re.Pattern[str]) -> list[str]:
    """The prompts of a kind that the model was sent."""
    sent = [str(call.messages[-1].content) for call in model.calls]
    return [text for text in sent if kind.search(text)]
