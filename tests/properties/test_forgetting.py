"""Whatever happened before: after a forgetting, no file has the text."""

import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import Item
from langgraph.store.memory import InMemoryStore

from memguard.errors import MemguardError
from memguard.journal.caches import DecompositionLog, ExtractionLog, LoggedExtraction, owned_by
from memguard.journal.commit import commit
from memguard.journal.forgetting import ForgetSelection, forget
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.journal.receipts import ReceiptFilter, ReceiptLog
from memguard.journal.recovery import recover
from memguard.journal.removal import delete_memory
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory, Lifecycle, Turn, lifecycle_of, record_key
from memguard.schema.receipt import MethodReport, Receipt
from memguard.schema.relations import RecordChange
from memguard.schema.units import Piece, Pieces
from tests.raw_files import files_with

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANA, BEN = ("memories", "ana"), ("memories", "ben")
WORDS = ("Quokkaburg", "Ñandúville", "Żubrówek", "波尔图大桥", "Zorilla7")

steps = st.lists(
    st.tuples(
        st.sampled_from(["store", "hold", "reject", "delete", "release", "extract", "again"]),
        st.integers(0, len(WORDS) - 1),
        st.none() | st.integers(0, len(WORDS) - 1),
        st.sampled_from([ANA, ANA, BEN]),
    ),
    max_size=14,
)


def text_of(number: int) -> str:
    return f"The user of {number} lives in {WORDS[number]}, {'and likes it there ' * 40}."


class World:
    """A log and a store, to which steps are applied."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.store = InMemoryStore()
        self.serial = 0

    async def apply(self, kind: str, number: int, old: int | None, namespace: Any) -> None:
        self.serial += 1
        turn = Turn(id=f"t{self.serial}", role="user", content=f"As I said: {text_of(number)}")
        candidate = CandidateMemory(
            text=text_of(number), namespace=namespace, turn_ids=(turn.id,), conversation_id="c"
        )
        if kind == "extract":
            await ExtractionLog(self.journal).arecord(
                LoggedExtraction(
                    conversation_key="/".join((*namespace, "c")),
                    writer_digest="w",
                    turn_keys=(f"{self.serial}",),
                    candidates=(candidate,),
                )
            )
            with owned_by({f"k{self.serial}": candidate.id}):
                pieces = Pieces(pieces=(Piece(text=text_of(number)),))
                await DecompositionLog(self.journal).aput({f"k{self.serial}": pieces})
            return
        if kind in {"delete", "release"}:
            await self._act(kind, number, namespace)
            return
        outcome: Any = {"hold": "quarantine", "reject": "reject"}.get(kind, "admit")
        context = (turn,)
        changes: tuple[RecordChange, ...] = ()
        explanation = "The user said so."
        if old is not None and old != number and outcome == "admit":
            changes = await self._changes(old, number, namespace)
            context += (Turn(id="t0", role="user", content=text_of(old)),)
            explanation = f'superseded "{text_of(old)}": not in {WORDS[old]} now'
        decision = AdmissionDecision(
            outcome=outcome,
            reason="supported" if outcome == "admit" else "low_support",
            explanation=explanation,
        )
        report = MethodReport(
            method="m", spec={}, decision=decision, evidence={"old": old}, context=context
        )
        receipt = Receipt(
            id=f"r{self.serial}",
            at=NOON,
            run_id="run",
            candidate=candidate,
            namespace=namespace,
            decision=decision,
            reports=(report,),
            policy_digest="p",
            changes=changes,
        )
        await commit(self.journal, self.store, [receipt])

    async def _changes(self, old: int, new: int, namespace: Any) -> tuple[RecordChange, ...]:
        key = record_key(text_of(old))
        item = await self.store.aget(namespace, key)
        if item is None:
            return ()
        before = lifecycle_of(item.value)
        after = Lifecycle(
            superseded_by=record_key(text_of(new)),
            ended_as="superseded",
            reason=f"moved from {WORDS[old]} to {WORDS[new]}",
        )
        return (RecordChange(namespace=namespace, key=key, before=before, after=after),)

    async def _act(self, kind: str, number: int, namespace: Any) -> None:
        page = await ReceiptLog(self.journal).alist(ReceiptFilter(namespace=namespace))
        for receipt in page.receipts:
            if receipt.candidate.text != text_of(number):
                continue
            try:
                if kind == "delete":
                    await delete_memory(
                        self.journal, self.store, receipt.id, actor="a", reason="old"
                    )
                else:
                    await Quarantine(self.journal).arelease(receipt.id, actor="a", store=self.store)
            except MemguardError:
                pass  # not in quarantine, or never stored


@given(steps, st.integers(0, len(WORDS) - 1), st.booleans())
@settings(max_examples=25, deadline=None)
def test_no_file_has_a_forgotten_text(history: Any, number: int, everything: bool) -> None:
    asyncio.run(_check(history, number, everything=everything))


async def _check(history: Any, number: int, *, everything: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with await Journal.aopen(folder / "log.sqlite3", clock=lambda: NOON) as journal:
            world = World(journal)
            for step in history:
                await world.apply(*step)
            selection = (
                ForgetSelection(namespace=ANA, everything=True)
                if everything
                else ForgetSelection(contains=WORDS[number])
            )
            before = await world.store.asearch((), limit=100)
            await forget(journal, world.store, selection=selection, actor="dpo")
            remaining = await world.store.asearch((), limit=100)
            assert {_place(item) for item in remaining} == {
                _place(item)
                for item in before
                if (item.namespace != ANA if everything else WORDS[number] not in _text(item))
            }
            # A word that the memories of another user have, too, may be there.
            others = {n for _, *numbers, name in history if name == BEN for n in numbers}
            erased = {WORDS[number]}
            if everything:
                erased = {word for n, word in enumerate(WORDS) if n not in others}
            assert files_with(folder, erased) == set()
            assert not any(word in str(item.value) for item in remaining for word in erased)
            assert (await recover(journal, world.store)).line == ""
            assert (await forget(journal, world.store, selection=selection, actor="dpo")).is_empty


def _place(item: Item) -> tuple[Any, str]:
    return item.namespace, item.key


def _text(item: Item) -> str:
    return str(item.value["content"])
