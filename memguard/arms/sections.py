"""Arms that choose by rule or not at all: no memory, all of it, near ones, sections by topic."""

from collections.abc import Mapping, Sequence

from memguard.policy.relevance import gate_by_relevance
from memguard.rendering.memories import frame, quote_marked, render_memories, unit_line
from memguard.schema.base import is_blank
from memguard.schema.ledger import Ledger
from memguard.schema.read import RecalledMemory
from memguard.schema.read_config import RelevanceGate, Rendering

_NO_TOPIC = "none"


def no_memory() -> str:
    """NoMem: nothing."""
    return ""


def bare(memories: Sequence[RecalledMemory]) -> str:
    """Bare: everything that was recalled, word for word, in the order of recall."""
    lines = [unit_line(m.text, said_at=m.said_at) for m in memories if not is_blank(m.text)]
    return frame(lines) if lines else ""


def relevance_gate(memories: Sequence[RecalledMemory], *, spec: RelevanceGate | None = None) -> str:
    """The paper's Gate: what is near enough to the query, as one flat list."""
    ledger = gate_by_relevance(memories, spec=spec or RelevanceGate())
    return render_memories(ledger, rendering="neutral")


def rendered(ledger: Ledger, *, rendering: Rendering) -> str:
    """FC and PS: what the ledger shows, in one of the renderings. Asks no model."""
    return render_memories(ledger, rendering=rendering)


def grouping_only(memories: Sequence[RecalledMemory], *, topics: Mapping[str, str]) -> str:
    """Sections headed by a topic, without any admission (arXiv 2610.11188, section 5.1).

    Args:
        memories: What was recalled; all of it is shown.
        topics: The topic of each memory by its id, as a data set names it.
    """
    groups: dict[str, list[str]] = {}
    for memory in memories:
        if not is_blank(memory.text):
            line = unit_line(memory.text, said_at=memory.said_at)
            groups.setdefault(topics.get(memory.id, _NO_TOPIC), []).append(line)
    lines = [
        line
        for topic, found in groups.items()
        for line in (f"## Topic {quote_marked(topic)}", *found)
    ]
    return frame(lines) if lines else ""
