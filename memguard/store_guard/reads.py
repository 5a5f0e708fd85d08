"""Judging the searches of a guarded store.

A search with a query returns only what the admission of a read guard permits for that query. Of an
item that may be used in part, the rest of its text is removed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from langgraph.store.base import BaseStore, SearchItem

from memguard.errors import ConfigurationError, ErrorCode, StoreConfigurationError
from memguard.journal.commit import Backing
from memguard.journal.reads import ReadLog
from memguard.namespaces import run_values
from memguard.read.admission import Admission
from memguard.read.audience import room_of, with_withheld, withhold_in_room
from memguard.read.recall import memory_of
from memguard.schema.audience import Audience
from memguard.schema.failures import error_of
from memguard.schema.memory import Conversation
from memguard.schema.read import ReadReport, RecalledMemory, UnitVerdict
from memguard.store_guard.values import memory_text


@dataclass(frozen=True, kw_only=True)
class ReadGate:
    """Decides which results of a guarded store are returned."""

    backing: Backing
    admission: Admission
    audience: Audience = "private"

    async def filter(
        self, query: str, items: Sequence[SearchItem], *, dialogue: Conversation
    ) -> list[SearchItem]:
        """The items that this query may use, in their order.

        If only a part of an item may be used, the rest is removed from its text. What cannot be
        judged in time counts as not judged: safety constraints stay, everything else is withheld.

        Args:
            query: The search text.
            items: The store's results.
            dialogue: The conversation before the search.

        Raises:
            ConfigurationError: If a model or setting cannot be used, or the store does not rank by
                similarity.
            ReceiptError: If the log failed.
        """
        _require_ranked(self.backing.store, items)
        now = self.backing.journal.now()  # one time for all items, so that they are aged alike
        memories = [memory_of(item, now=now) for item in items]
        judged = tuple(memory for memory in memories if memory is not None)
        if not judged:
            return list(items)
        admitted = await self._admit(query, judged, dialogue=dialogue, now=now)
        permitted = {memory.id: _permitted_texts(memory, admitted) for memory in judged}
        results: list[SearchItem] = []
        for item, memory in zip(items, memories, strict=True):
            if memory is None:  # it has no text, so there is nothing to withhold
                results.append(item)
            elif permitted[memory.id]:
                results.append(_narrowed(item, permitted[memory.id], text=memory.text))
        return results

    async def _admit(
        self,
        query: str,
        memories: tuple[RecalledMemory, ...],
        *,
        dialogue: Conversation,
        now: datetime,
    ) -> tuple[UnitVerdict, ...]:
        """The units that may be used; they are returned after the receipt of the read is logged."""
        room = room_of(default=self.audience, speaker=_asker(dialogue), run=run_values())
        withholding = await withhold_in_room(memories, room=room)
        result = await self.admission.judge(
            {
                "query": query,
                "memories": withholding.permitted,
                "dialogue": dialogue,
                "now": now,
            },
            journal=self.backing.journal,
            seconds=self.admission.deadline,
        )
        output = with_withheld(result.output, memories=memories, withholding=withholding, room=room)
        report: ReadReport = output["report"]
        # What the deadline cut off is not on the graph's own report.
        failures = (*report.failures, *result.failures)
        update = {"flags": (*result.flags, *report.flags), "failures": failures}
        await ReadLog(self.backing.journal).aappend(report.model_copy(update=update))
        # After the receipt is written: whoever searches a store by hand sees the mistake.
        for error in map(error_of, result.failures):
            if isinstance(error, ConfigurationError):
                raise error
        return output["admitted"]


def _asker(dialogue: Conversation) -> str:
    """The name of the user who spoke last; a search has no message of its own."""
    names = [turn.speaker for turn in dialogue.turns if turn.role == "user"]
    return names[-1] if names else ""


def _require_ranked(store: BaseStore, items: Sequence[SearchItem]) -> None:
    """Refuse results without a ranking, because they would be an arbitrary choice.

    Raises:
        StoreConfigurationError: If no item has a score.
    """
    if items and all(item.score is None for item in items):
        msg = (
            f"the store {type(store).__name__} found items for a query without ranking them: it "
            "has no index. Give it one (`index=...`), or use `ChromaStore.local(path)`"
        )
        raise StoreConfigurationError(msg, code=ErrorCode.STORE_INDEX)


def _permitted_texts(memory: RecalledMemory, admitted: Sequence[UnitVerdict]) -> tuple[str, ...]:
    """The parts of a memory that may be used, in the order of its text."""
    units = [verdict.unit for verdict in admitted if verdict.unit.memory_id == memory.id]
    return tuple(unit.text for unit in sorted(units, key=lambda unit: unit.start or 0))


def _narrowed(item: SearchItem, parts: Sequence[str], *, text: str) -> SearchItem:
    """The item with these parts of its text only; unchanged if they are the whole text."""
    value = cast("Mapping[str, Any]", item.value)
    part = " ".join(parts)
    if part.split() == text.split():
        return item
    field = next((name for name in ("content", "text", "memory") if value.get(name) == text), None)
    # Other fields of a value without a text field may repeat what is withheld, so they are dropped.
    narrowed = {**value, field: part} if field is not None else {"content": part}
    return SearchItem(
        namespace=tuple(item.namespace),
        key=item.key,
        value=narrowed if memory_text(narrowed) == part else {"content": part},
        created_at=item.created_at,
        updated_at=item.updated_at,
        score=item.score,
    )
