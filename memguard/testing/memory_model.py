"""What a loopback model answers to memguard's own prompts, without any language model.

It writes a memory per declarative sentence of a user's turn, and scores a memory by how many of
its words the source holds. Good enough to run the whole path over real HTTP, with supported and
unsupported candidates alike; no judgement of it means anything.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_LINE: Final = re.compile(r'^\[(\d+)\] (\w+)( "(?:[^"\\]|\\.)*")?[^"]*: (".*")$', re.MULTILINE)
_SENTENCE: Final = re.compile(r"[^.!?]+[.!?]?")
_WORD: Final = re.compile(r"\w+")
_LEAST_WORDS: Final = 4
_MOST_FACTS: Final = 3
_FULL_STOP: Final = "."


def memory_answer(request: Mapping[str, Any]) -> str:
    """Answer a chat request with facts or with a score, whichever its prompt asks for."""
    prompt = str(request["messages"][-1]["content"])
    if "<new_turns>" in prompt:
        return json.dumps({"facts": list(_facts(prompt))}, ensure_ascii=False)
    if "<memory>" in prompt:
        score, turns = _support(prompt)
        if "yes or no" in prompt:
            return "yes" if score >= 0.7 else "no"
        return json.dumps({"reason": "words in common", "turns": turns, "score": score})
    return "OK."


def _facts(prompt: str) -> Iterator[dict[str, Any]]:
    """One fact per declarative sentence of a user, under the speaker's name."""
    for number, role, speaker, quoted in _LINE.findall(_between(prompt, "new_turns")):
        if role != "user":
            continue
        name = json.loads(speaker) if speaker else "The user"
        sentences = [found.strip() for found in _SENTENCE.findall(json.loads(quoted))]
        told = [s for s in sentences if not s.endswith("?") and len(s.split()) >= _LEAST_WORDS]
        for sentence in told[:_MOST_FACTS]:
            yield {"text": f"{name} said: {sentence}", "about": name, "turns": [int(number)]}
            if len(sentence) % 5 == 0:
                # A writer's slip, so that something is rejected too.
                yield {
                    "text": f"{name} never visited seven distant lighthouses{_FULL_STOP}",
                    "about": name,
                    "turns": [int(number)],
                }


def _support(prompt: str) -> tuple[float, list[int]]:
    memory = set(_WORD.findall(json.loads(_between(prompt, "memory").strip()).lower()))
    best, turns, seen = 0.0, [], set[str]()
    for number, _, speaker, quoted in _LINE.findall(_between(prompt, "source")):
        words = set(_WORD.findall(f"{speaker} {json.loads(quoted)} said the user".lower()))
        seen |= words
        share = len(memory & words) / max(1, len(memory))
        if share > best:
            best, turns = share, [int(number)]
    return round(best, 2), turns


def _between(prompt: str, tag: str) -> str:
    return prompt.split(f"<{tag}>", 1)[1].split(f"</{tag}>", 1)[0]
