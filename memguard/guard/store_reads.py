"""Reading a guarded store by a query: what the request does not permit is not in the results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from langgraph.store.base import BaseStore, SearchItem

from memguard.errors import ErrorCode, StoreConfigurationError
from memguard.guard.admission import Admission
from memguard.guard.backing import Backing
from memguard.guard.recall_items import memory_of
from memguard.guard.store_writes import memory_text
from memguard.journal.reads import ReadLog
from memguard.schema.ledger import ReadReport, UnitVerdict
from memguard.schema.memory import Conversation
from memguard.schema.read import RecalledMemory


@dataclass(frozen=True, kw_only=True)
class ReadGate:
    """What a guarded store asks before it hands results over."""

    backing: Backing
    admission: Admission
    clock: Callable[[], datetime]

    async def keep(
        self, query: str, items: Sequence[SearchItem], *, dialogue: Conversation
    ) -> list[SearchItem]:
        """The items that this query may use, in their order.

        Of an item of which only a part may be used the rest is cut out. What cannot be judged in
        time is treated as if nobody had judged it: safety constraints stay, the rest does not.

        Args:
            query: What is searched for.
            items: What the store found.
            dialogue: What was said before.

        Raises:
            StoreConfigurationError: If the store does not rank by similarity.
            ReceiptError: If the log failed.
        """
        require_ranked(self.backing.store, items)
        now = self.clock()
        found = [memory_of(item, now=now) for item in items]
        memories = tuple(memory for memory in found if memory is not None)
        if not memories:
            return list(items)
        verdicts, report = await self._ask(query, memories, dialogue=dialogue)
        await ReadLog(self.backing.journal).aappend(report)
        shown = {memory.id: _texts_of(memory, verdicts) for memory in memories}
        kept: list[SearchItem] = []
        for item, memory in zip(items, found, strict=True):
            if memory is None:  # holds no text, so there is nothing to withhold
                kept.append(item)
            elif shown[memory.id]:
                kept.append(_only(item, shown[memory.id], whole=memory.text))
        return kept

    async def _ask(
        self, query: str, memories: tuple[RecalledMemory, ...], *, dialogue: Conversation
    ) -> tuple[tuple[UnitVerdict, ...], ReadReport]:
        given = {"query": query, "memories": memories, "dialogue": dialogue, "now": self.clock()}
        judged = await self.admission.judge(
            given, journal=self.backing.journal, seconds=self.admission.deadline
        )
        report: ReadReport = judged.found["report"]
        told = {
            "flags": (*judged.flags, *report.flags),
            "failures": (*report.failures, *judged.failures),
        }
        return judged.found["admitted"], report.model_copy(update=told)


def require_ranked(store: BaseStore, items: Sequence[SearchItem]) -> None:
    """Refuse what a store returns unranked: it would be an arbitrary choice.

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
    own = [each.unit for each in admitted if each.unit.memory_id == memory.id]
    return tuple(unit.text for unit in sorted(own, key=lambda unit: unit.start or 0))


def _only(item: SearchItem, texts: Sequence[str], *, whole: str) -> SearchItem:
    """The item with nothing but these parts of its text; as it is where they are all of it."""
    value = cast("Mapping[str, Any]", item.value)
    if " ".join(texts).split() == whole.split():
        return item
    field = next((name for name in ("content", "text", "memory") if value.get(name) == whole), None)
    part = " ".join(texts)
    # Of a value without a text field nothing but the part is handed over.
    cut = {**value, field: part} if field is not None else {"content": part}
    return SearchItem(
        namespace=tuple(item.namespace),
        key=item.key,
        value=cut if memory_text(cut) == part else {"content": part},
        created_at=item.created_at,
        updated_at=item.updated_at,
        score=item.score,
    )
