"""Models that answer exactly as the sets are labelled."""

import json
import re
from collections.abc import Mapping
from typing import Any

from langchain_core.embeddings import Embeddings

from benchmarks.reconcile.sets import Lookup, PolicyCase, event_date
from memguard.redaction import redact
from memguard.schema.decision import Inconclusive
from memguard.testing import ScriptedChatModel

# A line of a prompt has the memory's name at its start, and its text as JSON at its end.
_NAME = re.compile(r"\[([a-z]+\d+)\]")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"$')
_RELATES = re.compile(r"<stored_memories>")
_ADJUDICATES = re.compile(r"<units>")
_DECOMPOSES = re.compile(r"<memories>")


class OneDirection(Embeddings):
    """Gives every text the same vector, so that every memory is near every candidate."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The same vector for each text."""
        return [[1.0, 0.0] for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        """The same vector as for a document."""
        del text
        return [1.0, 0.0]


def quoted_lines(prompt: str, tag: str) -> list[tuple[str, str]]:
    """Name and text of each line in the last section with a tag."""
    section = prompt.rpartition(f"<{tag}>\n")[2].partition(f"\n</{tag}>")[0]
    lines: list[tuple[str, str]] = []
    for line in section.splitlines():
        name = _NAME.match(line)
        text = _TEXT.search(line)
        if name and text:
            lines.append((name[1], json.loads(text[0])))
    return lines


def exact_reader(case: PolicyCase) -> ScriptedChatModel:
    """A model that gives the labelled relations of a case.

    A memory that is not in the case is none of the candidate's business.
    """
    memories = {memory.text: memory for memory in case.memories}

    def relate(messages: Any) -> str:
        relations: list[dict[str, Any]] = []
        for name, text in quoted_lines(str(messages[-1].content), "stored_memories"):
            memory = memories.get(text)
            # A memory without a usable relation is one that the answer leaves out.
            if memory is not None and isinstance(memory.relation, Inconclusive):
                continue
            relations.append(
                {
                    "memory": name,
                    "reason": case.kind.replace("_", " "),
                    "relation": memory.relation if memory else "coexists",
                    "certain": memory.certain if memory else True,
                }
            )
        return json.dumps(
            {
                "relations": relations,
                "assertion": case.candidate.assertion,
                "event_at": event_date(case.candidate.event_at),
            }
        )

    return ScriptedChatModel(rules=[(_RELATES, relate)])


def no_relation() -> ScriptedChatModel:
    """A model that answers at once that a candidate has nothing to do with what is stored."""

    def relate(messages: Any) -> str:
        rows = [
            {"memory": name, "reason": "", "relation": "coexists", "certain": True}
            for name, _ in quoted_lines(str(messages[-1].content), "stored_memories")
        ]
        return json.dumps({"relations": rows, "assertion": "plain", "event_at": None})

    return ScriptedChatModel(rules=[(_RELATES, relate)])


def exact_adjudicator(lookup: Lookup) -> ScriptedChatModel:
    """A model that leaves memories whole, and gives the labelled attributes."""
    # A prompt has memories without their secrets.
    texts = [redact(memory.text) for memory in lookup.memories]

    def adjudicate(messages: Any) -> str:
        lines = quoted_lines(str(messages[-1].content), "units")
        names = {text: name for name, text in lines}
        rows = [_row(lookup, texts.index(text), names) for _, text in lines if text in texts]
        return json.dumps(
            {"situation": lookup.situation.model_dump(), "units": rows}, ensure_ascii=False
        )

    def decompose(messages: Any) -> str:
        rows = [
            {"memory": name, "units": [{"text": text, "kind": _kind(lookup, text)}]}
            for name, text in quoted_lines(str(messages[-1].content), "memories")
        ]
        return json.dumps({"memories": rows}, ensure_ascii=False)

    return ScriptedChatModel(rules=[(_ADJUDICATES, adjudicate), (_DECOMPOSES, decompose)])


def _row(lookup: Lookup, index: int, names: Mapping[str, str]) -> dict[str, Any]:
    memory = lookup.memories[index]
    others = [redact(lookup.memories[other].text) for other in memory.conflicts_with]
    return {
        "unit": names[redact(memory.text)],
        "reason": lookup.kind.replace("_", " "),
        **memory.attributes,
        "evidence_conflict": False,
        "conflicts_with": [names[text] for text in others if text in names],
        "author": "other" if memory.said_by in ("document", "tool") else "user",
        "influence": 0.5,
    }


def _kind(lookup: Lookup, text: str) -> str:
    kinds = {redact(memory.text): memory.attributes["kind"] for memory in lookup.memories}
    return kinds.get(text, "fact")
