"""Any sequence of corrections, confirmations and undos keeps one current memory per chain."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from memguard.errors import InvalidInputError, RecordChangedError
from memguard.journal.audit import audit
from memguard.journal.commit import commit
from memguard.journal.current_keys import current_keys
from memguard.journal.journal import Journal
from memguard.journal.lineage import lineage
from memguard.journal.recovery import recover
from memguard.journal.undo import undo
from memguard.schema.decision import AdmissionDecision, Outcome, ReasonCode
from memguard.schema.memory import CandidateMemory, Lifecycle, lifecycle_of
from memguard.schema.receipt import Receipt
from memguard.schema.relations import RecordChange

ANA = ("memories", "ana")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("correct"), st.sampled_from(["Porto", "Lisbon", "Faro"])),
        st.tuples(st.just("confirm"), st.none()),
        st.tuples(st.just("undo"), st.integers(0, 12)),
    ),
    max_size=9,
)


@dataclass
class Life:
    """One fact, which is corrected, confirmed and undone."""

    journal: Journal
    store: InMemoryStore = field(default_factory=InMemoryStore)
    receipts: list[str] = field(default_factory=list[str])
    count: int = 0

    async def states(self) -> dict[str, Lifecycle]:
        items = await self.store.asearch(ANA, limit=100)
        return {item.key: lifecycle_of(item.value) for item in items}

    async def current(self) -> tuple[str, Lifecycle]:
        ((key, state),) = [
            (key, state) for key, state in (await self.states()).items() if state.is_current
        ]
        return key, state

    def receipt(
        self, text: str, *, outcome: Outcome = "admit", reason: ReasonCode = "supported"
    ) -> Receipt:
        self.count += 1
        candidate = CandidateMemory(text=text, namespace=ANA, turn_ids=(f"t{self.count}",))
        decision = AdmissionDecision(outcome=outcome, reason=reason, explanation="Because.")
        return Receipt(
            id=f"r{self.count:03}",
            at=NOON + timedelta(minutes=self.count),
            run_id="run",
            candidate=candidate,
            namespace=ANA,
            decision=decision,
        )

    async def begin(self) -> None:
        await commit(self.journal, self.store, [self.receipt("I live in Porto.")])

    async def do(self, step: str, argument: str | int | None) -> str:
        """Take one step; returns its receipt, or nothing if there was nothing to do."""
        key, state = await self.current()
        if step == "undo":
            if not self.receipts:
                return ""
            which = self.receipts[int(argument or 0) % len(self.receipts)]
            try:
                done = await undo(self.journal, self.store, which, actor="ana")
            except (RecordChangedError, InvalidInputError):
                return ""
        elif step == "confirm":
            made = self.receipt("Yes.", outcome="reject", reason="duplicate")
            turns = (*state.confirmed_by, f"c:{made.id}")
            after = state.model_copy(update={"confirmed_by": turns})
            done = await self._commit(made, key, state, after)
        else:
            text = f"I live in {argument}."
            choice = (await current_keys(self.store, ANA, [text]))[text]
            if choice.is_stored:
                return ""
            after = state.model_copy(update={"superseded_by": choice.key, "ended_as": "superseded"})
            made = self.receipt(text).model_copy(update={"record_key": choice.key})
            done = await self._commit(made, key, state, after)
        if done.id not in self.receipts:
            self.receipts.append(done.id)
        return done.id

    async def _commit(
        self, made: Receipt, key: str, before: Lifecycle, after: Lifecycle
    ) -> Receipt:
        change = RecordChange(namespace=ANA, key=key, before=before, after=after)
        made = made.model_copy(update={"changes": (change,), "record_key": made.record_key or key})
        return (await commit(self.journal, self.store, [made])).receipts[0]


@given(steps=STEPS)
@settings(max_examples=40, deadline=None)
def test_one_memory_of_a_chain_is_current(steps):
    async def run() -> None:
        async with Journal.memory(clock=lambda: NOON) as journal:
            life = Life(journal)
            await life.begin()
            for step, argument in steps:
                await life.do(step, argument)
                await life.current()
            assert (await audit(journal, life.store)).agrees
            assert (await recover(journal, life.store)).line == ""
            key, _ = await life.current()
            chain = await lineage(journal, life.store, ANA, key)
            assert {entry.key for entry in chain} == set(await life.states())
            places = {entry.key: index for index, entry in enumerate(chain)}
            for entry in chain:
                successor = entry.lifecycle.superseded_by
                assert not successor or places[entry.key] < places[successor]

    asyncio.run(run())


@given(steps=STEPS, last=STEPS.filter(bool))
@settings(max_examples=40, deadline=None)
def test_an_undo_restores_what_was_before(steps, last):
    async def run() -> None:
        async with Journal.memory(clock=lambda: NOON) as journal:
            life = Life(journal)
            await life.begin()
            for step, argument in steps:
                await life.do(step, argument)
            before = await life.states()
            taken = len(life.receipts)
            done = await life.do(*last[0])
            if not done or len(life.receipts) == taken:
                # Nothing was done, or it had been done before.
                assert await life.states() == before
                return
            after = await life.states()
            undone = await undo(journal, life.store, done, actor="ana")
            restored = await life.states()
            assert {key: restored[key] for key in before} == before
            assert {restored[key].ended_as for key in restored.keys() - before.keys()} <= {"undone"}
            await undo(journal, life.store, undone.id, actor="ana")
            assert await life.states() == after

    asyncio.run(run())
