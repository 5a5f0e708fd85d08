"""Answers of a loopback model to memguard's own prompts, without a language model.

The model writes one memory for each declarative sentence of a user, and scores a memory by the
share of its words that are in the source. That is enough to run the whole path over HTTP, with
supported and unsupported candidates. Its scores are no judgement of a memory's quality.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_LINE: Final = re.compile(r'^\[(\d+)\] (\w+)( "(?:[^"\\]|\\.)*")?[^"]*: (".*")$', re.MULTILINE)
_SENTENCE: Final = re.compile(r"[^.!?]+[.!?]?")
_WORD: Final = re.compile(r"\w+")
_MIN_WORDS: Final = 4
_MAX_FACTS: Final = 3


def memory_answer(request: Mapping[str, Any]) -> str:
    """Answer a chat request with facts or with a score, depending on its prompt."""
    prompt = str(request["messages"][-1]["content"])
    if "<new_turns>" in prompt:
        facts = list(_facts(_between(prompt, "<new_turns>", "</new_turns>")))
        return json.dumps({"facts": facts}, ensure_ascii=False)
    if "<memory>" in prompt:
        source = _between(prompt, "<source>", "</source>")
        score, turns = _support(source, memory=_between(prompt, "<memory>", "</memory>"))
        if "yes or no" in prompt:
            return "yes" if score >= 0.7 else "no"
        return json.dumps({"reason": "words in common", "turns": turns, "score": score})
    # The prompts of the paper, whose sections have headings.
    if prompt.endswith("\nFacts:"):
        facts = _facts(_between(prompt, "\nContext:\n", "\nFacts:"))
        return json.dumps([fact["text"] for fact in facts], ensure_ascii=False)
    if "\nCandidate fact:\n" in prompt:
        source = _between(prompt, "\nSource context:\n", "\nCandidate fact:\n")
        memory = _between(prompt, "\nCandidate fact:\n", "\nQuestion:")
        return str(_support(source, memory=memory)[0])
    return "OK."


def _facts(turns: str) -> Iterator[dict[str, Any]]:
    """One fact for each declarative sentence of a user, with the speaker's name."""
    for number, role, speaker, quoted in _LINE.findall(turns):
        if role != "user":
            continue
        name = json.loads(speaker) if speaker else "The user"
        sentences = [match.strip() for match in _SENTENCE.findall(json.loads(quoted))]
        statements = [s for s in sentences if not s.endswith("?") and len(s.split()) >= _MIN_WORDS]
        for sentence in statements[:_MAX_FACTS]:
            texts = [f"{name} said: {sentence}"]
            if len(sentence) % 5 == 0:
                # An invented fact, so that something is rejected too.
                texts.append(f"{name} never visited seven distant lighthouses.")
            for text in texts:
                yield {"text": text, "about": name, "turns": [int(number)]}


def _support(source: str, *, memory: str) -> tuple[float, list[int]]:
    claimed = set(_WORD.findall(json.loads(memory.strip()).lower()))
    best, turns = 0.0, list[int]()
    for number, _, speaker, quoted in _LINE.findall(source):
        words = set(_WORD.findall(f"{speaker} {json.loads(quoted)} said the user".lower()))
        share = len(claimed & words) / max(1, len(claimed))
        if share > best:
            best, turns = share, [int(number)]
    return round(best, 2), turns


def _between(prompt: str, before: str, after: str) -> str:
    return prompt.split(before, 1)[1].split(after, 1)[0]
