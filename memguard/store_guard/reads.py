"""Reading a guarded store by a query: what the query may not use is not in the results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from langgraph.store.base import BaseStore, SearchItem

from memguard.errors import ConfigurationError, ErrorCode, StoreConfigurationError
from memguard.journal.backing import Backing
from memguard.journal.reads import ReadLog
from memguard.read.admission import Admission
from memguard.read.recall import memory_of
from memguard.schema.failures import error_of
from memguard.schema.ledger import ReadReport, UnitVerdict
from memguard.schema.memory import Conversation
from memguard.schema.read import RecalledMemory
from memguard.store_guard.writes import memory_text


@dataclass(frozen=True, kw_only=True)
class ReadGate:
    """What a guarded store asks before it returns results."""

    backing: Backing
    admission: Admission
    clock: Callable[[], datetime]

    async def keep(
        self, query: str, items: Sequence[SearchItem], *, dialogue: Conversation
    ) -> list[SearchItem]:
        """The items that this query may use, in their order.

        Where only a part of an item may be used, the rest is removed from its text. What cannot be
        judged in time is treated as not judged: safety constraints stay, the rest does not.

        Args:
            query: The search text.
            items: The store's results.
            dialogue: The conversation before the search.

        Raises:
            ConfigurationError: If a model or setting cannot be used, or the store does not rank by
                similarity.
            ReceiptError: If the log failed.
        """
        require_ranked(self.backing.store, items)
        now = self.clock()
        memories = [memory_of(item, now=now) for item in items]
        texts = tuple(memory for memory in memories if memory is not None)
        if not texts:
            return list(items)
        admitted = await self._admit(query, texts, dialogue=dialogue, now=now)
        permitted = {memory.id: _texts_of(memory, admitted) for memory in texts}
        results: list[SearchItem] = []
        for item, memory in zip(items, memories, strict=True):
            if memory is None:  # it has no text, so there is nothing to withhold
                results.append(item)
            elif permitted[memory.id]:
                results.append(_only(item, permitted[memory.id], whole=memory.text))
        return results

    async def _admit(
        self,
        query: str,
        memories: tuple[RecalledMemory, ...],
        *,
        dialogue: Conversation,
        now: datetime,
    ) -> tuple[UnitVerdict, ...]:
        """The units that may be used; the receipt of the read is in the log by then."""
        result = await self.admission.judge(
            {"query": query, "memories": memories, "dialogue": dialogue, "now": now},
            journal=self.backing.journal,
            seconds=self.admission.deadline,
        )
        report: ReadReport = result.output["report"]
        update = {
            "flags": (*result.flags, *report.flags),
            "failures": (*report.failures, *result.failures),
        }
        await ReadLog(self.backing.journal).aappend(report.model_copy(update=update))
        # As in the read guard: a mistake in the settings is raised once its receipt is written.
        for error in map(error_of, result.failures):
            if isinstance(error, ConfigurationError):
                raise error
        return result.output["admitted"]


def require_ranked(store: BaseStore, items: Sequence[SearchItem]) -> None:
    """Refuse results that a store returns unranked: they would be an arbitrary choice.

    Raises:
        StoreConfigurationError: If no item has a score.
    """
    if items and all(item.score is None for item in items):
        msg = (
            f"the store {type(store).__name__} found items for a query without ranking them: it "
            "has no index. Give it one (`index=...`), or use `ChromaStore.local(path)`"
        )
        raise StoreConfigurationError(msg, code=ErrorCode.STORE_INDEX)


def _texts_of(memory: RecalledMemory, admitted: Sequence[UnitVerdict]) -> tuple[str, ...]:
    """What may be used of a memory, in the order of its text."""
    units = [verdict.unit for verdict in admitted if verdict.unit.memory_id == memory.id]
    return tuple(unit.text for unit in sorted(units, key=lambda unit: unit.start or 0))


def _only(item: SearchItem, texts: Sequence[str], *, whole: str) -> SearchItem:
    """The item with these parts of its text alone; unchanged where they are the whole text."""
    value = cast("Mapping[str, Any]", item.value)
    if " ".join(texts).split() == whole.split():
        return item
    field = next((name for name in ("content", "text", "memory") if value.get(name) == whole), None)
    part = " ".join(texts)
    # A value without a text field could repeat anywhere what is withheld, so only the part is left.
    narrowed = {**value, field: part} if field is not None else {"content": part}
    return SearchItem(
        namespace=tuple(item.namespace),
        key=item.key,
        value=narrowed if memory_text(narrowed) == part else {"content": part},
        created_at=item.created_at,
        updated_at=item.updated_at,
        score=item.score,
    )
