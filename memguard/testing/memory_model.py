"""Answers of a loopback model to memguard's own prompts, without a language model.

The model writes one memory for each declarative sentence of a user, and scores a memory by the
share of its words that are in the source. It relates a memory to stored ones by their words. At
read time it leaves memories whole, and a memory is relevant if it has a longer word in common with
the request. That is enough to run the whole path over HTTP, with supported and unsupported
candidates. Nothing of it is a judgement.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from memguard.testing.replies import relations_of

_LINE: Final = re.compile(r'^\[(\d+)\] (\w+)( "(?:[^"\\]|\\.)*")?[^"]*: (".*")$', re.MULTILINE)
_SENTENCE: Final = re.compile(r"[^.!?]+[.!?]?")
_WORD: Final = re.compile(r"\w+")
_MIN_WORDS: Final = 4
_UNIT_LINE: Final = re.compile(r'^\[(\w+)\] (?:\([^)]*\) )?(".*")$', re.MULTILINE)
_MIN_LETTERS: Final = 4
"""Shorter words, such as "the", are in every request."""
# The columns of an answer that all units share; those of PS, and those of FC.
_UNIT: Final = {
    "kind": "fact",
    "subject": "user",
    "epistemic": "stated",
    "temporality": "current",
    "relevance": "direct",
}
_ENTRY: Final = {
    "scope": "in",
    "subject": "match",
    "role": "context",
    "epistemic": "stated",
    "temporal": "current",
    "utility": "helpful",
}
_IRRELEVANT: Final = {"relevance": "none", "utility": "none"}
_MAX_FACTS: Final = 3
_CHANGES: Final = frozenset({"now", "moved", "changed", "anymore"})
_MIN_COMMON: Final = 0.4
"""Share of a stored memory's longer words that a correction of it repeats."""


def memory_answer(request: Mapping[str, Any]) -> str:
    """Answer a chat request with facts, a score or attributes, depending on its prompt."""
    prompt = str(request["messages"][-1]["content"])
    if "<memories>" in prompt:
        return json.dumps({"memories": [_whole(*line) for line in _UNIT_LINE.findall(prompt)]})
    if "<units>" in prompt:
        whole_entries = "- utility:" in str(request["messages"][0]["content"])
        return _adjudication(prompt, columns=_ENTRY if whole_entries else _UNIT)
    if "<new_turns>" in prompt:
        facts = list(_facts(_between(prompt, "<new_turns>", "</new_turns>")))
        return json.dumps({"facts": facts}, ensure_ascii=False)
    if "<new_memory>" in prompt:
        return relations_of(prompt, _relation, reason="words in common")
    if "<memory>" in prompt:
        source = _between(prompt, "<source>", "</source>")
        score, turns = _support(source, memory=_between(prompt, "<memory>", "</memory>"))
        judgement = {"reason": "words in common", "turns": turns, "score": score}
        is_yes_no = "yes or no" in prompt
        return ("yes" if score >= 0.7 else "no") if is_yes_no else json.dumps(judgement)
    return _paper_answer(prompt)


def _relation(text: str, memory: str) -> str | None:
    """A repeat has the same longer words; a correction says "now" or "moved", about the same."""
    words, others = _long_words(text), _long_words(memory)
    if words == others:
        return "duplicate"
    common = len(words & others) / max(1, len(others))
    if common >= _MIN_COMMON and _CHANGES & set(_WORD.findall(text.lower())):
        return "supersedes"
    return "refines" if others < words else None


def _paper_answer(prompt: str) -> str:
    """The answer to a prompt of the ConsistencyGate paper, whose sections have headings."""
    if prompt.endswith("\nFacts:"):
        facts = _facts(_between(prompt, "\nContext:\n", "\nFacts:"))
        return json.dumps([fact["text"] for fact in facts], ensure_ascii=False)
    if "\nCandidate fact:\n" in prompt:
        source = _between(prompt, "\nSource context:\n", "\nCandidate fact:\n")
        memory = _between(prompt, "\nCandidate fact:\n", "\nQuestion:")
        return str(_support(source, memory=memory)[0])
    return "OK."


def _whole(name: str, quoted: str) -> dict[str, Any]:
    """A memory that is not cut."""
    return {"memory": name, "units": [{"text": json.loads(quoted), "kind": "fact"}]}


def _adjudication(prompt: str, *, columns: Mapping[str, str]) -> str:
    """The situation and one row per unit; the two of them, or the conflicts of a second call."""
    if "<request>" not in prompt:
        return json.dumps({"conflicts": []})
    request = _long_words(_between(prompt, "<request>", "</request>"))
    rows: list[dict[str, str]] = []
    for name, quoted in _UNIT_LINE.findall(_between(prompt, "<units>", "</units>")):
        relevant = not request.isdisjoint(_long_words(json.loads(quoted)))
        changed = {} if relevant else {k: v for k, v in _IRRELEVANT.items() if k in columns}
        rows.append({"unit": name, **columns, **changed, "reason": "words in common"})
    situation = {"target": "user", "mode": "recommendation", "asks_view": False}
    return json.dumps({"situation": situation, "units": rows})


def _long_words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.lower()) if len(word) >= _MIN_LETTERS}


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
