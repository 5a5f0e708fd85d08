"""A model that writes and judges by rule, for whole runs of the guard."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from memguard.testing import ScriptedChatModel
from memguard.testing.replies import relations

WRITES = re.compile(r"<new_turns>")
JUDGES = re.compile(r"<memory>")
RELATES = re.compile(r"<new_memory>")


def scripted(
    *,
    facts: Callable[[str], list[dict[str, Any]]] | None = None,
    scores: Mapping[str, Any] | Callable[[str], Any] | None = None,
    **settings: Any,
) -> ScriptedChatModel:
    """A model that extracts `facts(prompt)` and scores each memory by its text (default 0.9).

    Memories that are near one another coexist.
    """

    def write(messages: Any) -> Any:
        shown = str(messages[-1].content)
        found = facts(shown) if facts else one_fact_per_user_turn(shown)
        return json.dumps({"facts": found})

    def judge(messages: Any) -> Any:
        memory = memory_in(str(messages[-1].content))
        if callable(scores):
            return scores(memory)
        return (scores or {}).get(memory, "0.9")

    rules: list[Any] = [(WRITES, write), (JUDGES, judge), (RELATES, relations())]
    return ScriptedChatModel(rules=rules, **settings)


def memory_in(prompt: str) -> str:
    """The memory that a support prompt asks about."""
    quoted = prompt.partition("<memory>\n")[2].partition("\n</memory>")[0]
    return json.loads(quoted)


def one_fact_per_user_turn(prompt: str) -> list[dict[str, Any]]:
    """What a writer would draw that repeats every user turn word for word."""
    new = prompt.partition("<new_turns>\n")[2].partition("\n</new_turns>")[0]
    lines = re.findall(r'^\[(\d+)\] user(?: "[^"]*")?[^"]*: (".*")$', new, re.MULTILINE)
    return [{"text": json.loads(text), "about": "user", "turns": [int(n)]} for n, text in lines]


def calls_of(model: ScriptedChatModel, kind: re.Pattern[str]) -> int:
    """How many calls of a kind the model had."""
    return sum(bool(kind.search(str(call.messages[-1].content))) for call in model.calls)
