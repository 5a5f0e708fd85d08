"""Changes of stored memories, made by the decisions that are logged with them."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from langgraph.store.base import BaseStore, GetOp, Op, PutOp, TTLConfig
from langgraph.store.memory import InMemoryStore

from memguard.errors import ErrorCode, RecordChangedError, StoreError
from memguard.journal.audit import audit
from memguard.journal.commit import Committer, commit, finish_changes, log_decisions
from memguard.journal.current_keys import current_keys
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.journal.receipts import ReceiptLog, end_writes, record_of
from memguard.journal.recovery import recover
from memguard.journal.removal import delete_memory
from memguard.journal.repair import repair
from memguard.journal.storing import record_of_item
from memguard.schema.memory import Lifecycle, lifecycle_of, record_key
from memguard.schema.receipt import Receipt
from memguard.schema.relations import RecordChange
from memguard.stores import ChromaStore
from memguard.testing.embeddings import HashEmbeddings
from tests.unit.journal.conftest import ANA, build_receipt

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
CURRENT = Lifecycle()


def superseding(receipt_id: str, text: str, old: str, **options: Any) -> Receipt:
    """The receipt of a text that supersedes the memory under a key."""
    before = options.pop("before", Lifecycle())
    receipt = build_receipt(receipt_id, text=text, turn=f"turn-{receipt_id}", **options)
    key = receipt.record_key or record_key(text)
    after = before.model_copy(
        update={"superseded_by": key, "ended_as": "superseded", "valid_until": MARCH}
    )
    change = RecordChange(namespace=ANA, key=old, before=before, after=after)
    return receipt.model_copy(update={"changes": (change,)})


def confirming(receipt_id: str, old: str, *, before: Lifecycle = CURRENT) -> Receipt:
    """The receipt of a duplicate that confirms the memory under a key."""
    receipt = build_receipt(receipt_id, outcome="reject", reason="duplicate", turn=receipt_id)
    turns = (*before.confirmed_by, f"c:{receipt_id}")
    after = before.model_copy(update={"confirmed_at": MARCH, "confirmed_by": turns})
    change = RecordChange(namespace=ANA, key=old, before=before, after=after)
    return receipt.model_copy(update={"record_key": old, "changes": (change,)})


class CountingStore(InMemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[Op]] = []
        self.error: Exception | None = None

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        listed = list(ops)
        self.batches.append(listed)
        if self.error is not None:
            raise self.error
        return await super().abatch(listed)


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


async def lifecycle_at(store: InMemoryStore, key: str) -> Lifecycle:
    item = await store.aget(ANA, key)
    assert item is not None
    return lifecycle_of(item.value)


PORTO, LISBON = record_key("I live in Porto."), record_key("I live in Lisbon.")


async def with_porto(journal: Journal, store: BaseStore) -> None:
    await commit(journal, store, [build_receipt("old", text="I live in Porto.")])


class TestCommit:
    async def test_stores_the_new_before_it_retires_the_old(
        self, journal: Journal, store: CountingStore
    ):
        await with_porto(journal, store)
        before = await store.aget(ANA, PORTO)
        store.batches.clear()
        receipt = superseding("new", "I live in Lisbon.", PORTO)
        done = await commit(journal, store, [receipt])
        assert done.records == (record_of(receipt),)
        puts = [op for ops in store.batches for op in ops if isinstance(op, PutOp)]
        assert [op.key for op in puts] == [LISBON, PORTO]
        assert puts[1].index == ["content"]
        after = await store.aget(ANA, PORTO)
        assert before is not None
        assert after is not None
        assert lifecycle_of(after.value) == receipt.changes[0].after
        assert after.value["content"] == before.value["content"]
        assert before.value["memguard"].items() <= after.value["memguard"].items()
        assert (await audit(journal, store)).agrees
        assert await ReceiptLog(journal).astate("new") == "stored"

    async def test_without_changes_costs_no_more(self, journal: Journal, store: CountingStore):
        await commit(journal, store, [build_receipt("a"), build_receipt("b")])
        assert [len(ops) for ops in store.batches] == [2, 2, 2]

    async def test_a_record_begins_with_its_lifecycle(self, journal: Journal, store: CountingStore):
        begins = Lifecycle(detail_of=PORTO, event_at=MARCH)
        receipt = build_receipt("a", text="Near the river.").model_copy(
            update={"lifecycle": begins}
        )
        await commit(journal, store, [receipt])
        assert await lifecycle_at(store, record_key("Near the river.")) == begins
        item = await store.aget(ANA, record_key("Near the river."))
        assert item is not None
        assert record_of_item(item) == record_of(receipt)

    async def test_again_changes_nothing(self, journal: Journal, store: CountingStore):
        await with_porto(journal, store)
        receipt = superseding("new", "I live in Lisbon.", PORTO)
        await commit(journal, store, [receipt])
        asked = len([op for ops in store.batches for op in ops if isinstance(op, PutOp)])
        assert (await commit(journal, store, [receipt])).receipts == (receipt_key(receipt),)
        assert len([op for ops in store.batches for op in ops if isinstance(op, PutOp)]) == asked

    async def test_a_duplicate_confirms(self, journal: Journal, store: CountingStore):
        await with_porto(journal, store)
        first = confirming("again", PORTO)
        second = confirming("thrice", PORTO, before=first.changes[0].after)
        done = await commit(journal, store, [first, second])
        assert done.records == ()
        assert (await lifecycle_at(store, PORTO)).confirmed_by == ("c:again", "c:thrice")
        assert [receipt.outcome for receipt in done.receipts] == ["duplicate", "duplicate"]
        assert (await audit(journal, store)).agrees

    async def test_shadow_mode_changes_nothing(self, journal: Journal, store: CountingStore):
        await with_porto(journal, store)
        shadow = superseding("new", "I live in Lisbon.", PORTO)
        await commit(journal, store, [shadow.model_copy(update={"effect": "shadow"})])
        assert await lifecycle_at(store, PORTO) == Lifecycle()

    async def test_an_item_of_another_shape_keeps_its_fields(
        self, journal: Journal, store: CountingStore
    ):
        value = {"text": "I live in Porto.", "rank": 3}
        await store.aput(ANA, "mine", value)
        await commit(journal, store, [superseding("new", "I live in Lisbon.", "mine")])
        item = await store.aget(ANA, "mine")
        assert item is not None
        assert value.items() <= item.value.items()
        assert lifecycle_of(item.value).superseded_by == LISBON
        puts = [op for ops in store.batches for op in ops if isinstance(op, PutOp)]
        assert puts[-1].index is None


def receipt_key(receipt: Receipt) -> Receipt:
    """The receipt as it is in the log."""
    return receipt.model_copy(update={"record_key": record_key(receipt.candidate.text)})


class TestRefusal:
    async def test_what_the_store_no_longer_has(self, journal: Journal, store: CountingStore):
        await with_porto(journal, store)
        await commit(journal, store, [superseding("new", "I live in Lisbon.", PORTO)])
        late = superseding("late", "I live in Faro.", PORTO)
        with pytest.raises(RecordChangedError, match=PORTO) as caught:
            await commit(journal, store, [late, build_receipt("other")])
        assert caught.value.code == ErrorCode.RECORD_CHANGED
        assert "write the candidate again" in caught.value.message
        log = ReceiptLog(journal)
        assert [await log.astate(name) for name in ("late", "other")] == [None, None]
        assert await store.aget(ANA, record_key("I live in Faro.")) is None

    async def test_what_was_deleted(self, journal: Journal, store: CountingStore):
        with pytest.raises(RecordChangedError, match="deleted"):
            await commit(journal, store, [superseding("new", "I live in Lisbon.", PORTO)])

    async def test_what_is_pending_in_the_log(self, journal: Journal, store: CountingStore):
        await with_porto(journal, store)
        store.error = TimeoutError("slow")
        with pytest.raises(StoreError):
            await commit(journal, store, [superseding("new", "I live in Lisbon.", PORTO)])
        store.error = None
        with pytest.raises(RecordChangedError, match="'new'"):
            await commit(journal, store, [superseding("late", "I live in Faro.", PORTO)])
        assert (await recover(journal, store)).problems == ()
        assert (await lifecycle_at(store, PORTO)).superseded_by == LISBON

    async def test_in_a_batch_one_alone_fails(self, journal: Journal, store: CountingStore):
        await with_porto(journal, store)
        committer = Committer(journal, store)
        receipts = [
            superseding("new", "I live in Lisbon.", PORTO),
            superseding("late", "I live in Faro.", PORTO),
            build_receipt("other"),
        ]
        first, second, third = [
            await task for task in [_commit_task(committer, receipt) for receipt in receipts]
        ]
        assert isinstance(first, Receipt)
        assert isinstance(second, RecordChangedError)
        assert isinstance(third, Receipt)
        assert await store.aget(ANA, record_key("I live in Faro.")) is None
        assert not committer.left_pending


def _commit_task(committer: Committer, receipt: Receipt) -> Any:
    async def run() -> Receipt | Exception:
        try:
            return await committer.commit(receipt)
        except RecordChangedError as error:
            return error

    return asyncio.create_task(run())


class TestRecovery:
    @pytest.mark.parametrize("failing", range(8))
    async def test_an_interruption_at_any_exchange(
        self, journal: Journal, store: CountingStore, failing: int
    ):
        await with_porto(journal, store)

        class Interrupted(CountingStore):
            async def abatch(self, ops: Iterable[Op]) -> list[Any]:
                self.batches.append(list(ops))
                if len(self.batches) > failing:
                    raise TimeoutError
                return await store.abatch(self.batches[-1])

        receipt = superseding("new", "I live in Lisbon.", PORTO)
        try:
            await commit(journal, Interrupted(), [receipt])
        except StoreError:
            assert await ReceiptLog(journal).astate("new") == "pending"
        assert (await recover(journal, store)).problems == ()
        assert (await recover(journal, store)).line == ""
        assert await lifecycle_at(store, PORTO) == receipt.changes[0].after
        assert await lifecycle_at(store, LISBON) == Lifecycle()
        assert (await audit(journal, store)).agrees

    async def test_a_confirmation_is_completed(self, journal: Journal, store: CountingStore):
        await with_porto(journal, store)
        store.error = TimeoutError("slow")
        with pytest.raises(StoreError):
            await commit(journal, store, [confirming("again", PORTO)])
        store.error = None
        done = await recover(journal, store)
        assert done.changed == ("again",)
        assert done.line == "recovery: interrupted changes completed: 1"
        assert (await lifecycle_at(store, PORTO)).confirmed_by == ("c:again",)

    async def test_what_was_deleted_while_it_was_pending_changes_nothing(
        self, journal: Journal, store: CountingStore
    ):
        await with_porto(journal, store)
        store.error = TimeoutError("slow")
        with pytest.raises(StoreError):
            await commit(journal, store, [superseding("new", "I live in Lisbon.", PORTO)])
        store.error = None
        await delete_memory(journal, store, "new", actor="ana", reason="no")
        assert (await recover(journal, store)).line == ""
        assert await lifecycle_at(store, PORTO) == Lifecycle()
        assert (await audit(journal, store)).agrees
        await commit(journal, store, [superseding("faro", "I live in Faro.", PORTO)])
        assert (await audit(journal, store)).agrees


class TestGenerations:
    async def test_going_back_to_the_old_value(self, journal: Journal, store: CountingStore):
        committer = Committer(journal, store)
        await committer.commit(build_receipt("p0", text="I live in Porto.", turn="1"))
        await committer.commit(superseding("l0", "I live in Lisbon.", PORTO))
        (choice,) = (await current_keys(store, ANA, ["I live in Porto"])).values()
        assert choice.key == record_key("I live in Porto", generation=1)
        assert not choice.is_stored
        back = superseding("p1", "I live in Porto.", LISBON)
        change = back.changes[0]
        after = change.after.model_copy(update={"superseded_by": choice.key})
        change = change.model_copy(update={"after": after})
        back = back.model_copy(update={"record_key": choice.key, "changes": (change,)})
        logged = await committer.commit(back)
        assert (logged.outcome, logged.record_key) == ("stored", choice.key)
        assert (await lifecycle_at(store, LISBON)).superseded_by == choice.key
        assert (await lifecycle_at(store, PORTO)).superseded_by == LISBON
        assert (await lifecycle_at(store, choice.key)).is_current
        assert (await current_keys(store, ANA, ["I live in Porto"]))[
            "I live in Porto"
        ].key == choice.key
        again = await committer.commit(build_receipt("p2", text="I live in Porto.", turn="9"))
        assert (again.outcome, again.record_key) == ("duplicate", choice.key)
        assert await committer.commit(back) == logged
        assert (await audit(journal, store)).agrees

    async def test_the_changes_name_the_key_that_was_chosen(
        self, journal: Journal, store: CountingStore
    ):
        committer = Committer(journal, store)
        await committer.commit(build_receipt("p0", text="I live in Porto.", turn="1"))
        await committer.commit(superseding("l0", "I live in Lisbon.", PORTO))
        await committer.commit(superseding("p1", "I live in Porto.", LISBON))
        back = record_key("I live in Porto.", generation=1)
        assert (await lifecycle_at(store, LISBON)).superseded_by == back
        assert (await lifecycle_at(store, back)).is_current
        assert (await audit(journal, store)).agrees

    async def test_one_exchange_where_nothing_ended(self, journal: Journal, store: CountingStore):
        await with_porto(journal, store)
        store.batches.clear()
        choices = await current_keys(store, ANA, ["I live in Porto.", "I live in Lisbon."])
        assert [choice.is_stored for choice in choices.values()] == [True, False]
        assert len(store.batches) == 1
        assert all(isinstance(op, GetOp) for op in store.batches[0])

    async def test_many_generations(self, store: CountingStore):
        ended = Lifecycle(ended_as="superseded")
        for generation in range(30):
            key = record_key("Tea.", generation=generation)
            fields = ended.model_dump(mode="json", exclude_defaults=True)
            value = {"content": "Tea.", "memguard": {"receipt_id": f"r{generation}", **fields}}
            await store.aput(ANA, key, value)
        choice = (await current_keys(store, ANA, ["Tea."]))["Tea."]
        assert choice.key == record_key("Tea.", generation=30)
        assert len(choice.ended) == 30


class TestGuardedWrites:
    async def test_the_caller_writes_first(self, journal: Journal, store: CountingStore):
        await with_porto(journal, store)
        receipt = superseding("new", "I live in Lisbon.", PORTO).model_copy(
            update={"effect": "caller", "record_key": "k1", "value": {"text": "I live in Lisbon."}}
        )
        (logged,) = await log_decisions(journal, store, [receipt])
        # The write never came.
        assert (await recover(journal, store)).missing == ("new",)
        assert await lifecycle_at(store, PORTO) == Lifecycle()
        (again,) = await log_decisions(
            journal, store, [logged.model_copy(update={"id": "n2", "policy_digest": "p2"})]
        )
        await store.aput(ANA, "k1", {"text": "I live in Lisbon."})
        done = [("n2", logged.candidate.id, None)]
        await journal.awrite(end_writes, done, actor="me", at=journal.now())
        await finish_changes(journal, store, [again])
        assert (await lifecycle_at(store, PORTO)).superseded_by == LISBON
        assert await ReceiptLog(journal).astate("n2") == "stored"
        assert (await recover(journal, store)).line == ""

    async def test_recovery_makes_them(self, journal: Journal, store: CountingStore):
        await with_porto(journal, store)
        receipt = superseding("new", "I live in Lisbon.", PORTO).model_copy(
            update={"effect": "caller", "record_key": "k1", "value": {"text": "I live in Lisbon."}}
        )
        await log_decisions(journal, store, [receipt])
        await store.aput(ANA, "k1", {"text": "I live in Lisbon."})
        done = await recover(journal, store)
        assert (done.confirmed, done.changed) == (("new",), ("new",))
        assert (await lifecycle_at(store, PORTO)).superseded_by == LISBON


class TestQuarantine:
    async def test_a_release_makes_the_changes(self, journal: Journal, store: CountingStore):
        await with_porto(journal, store)
        held = superseding("new", "I live in Lisbon.", PORTO, outcome="quarantine")
        await commit(journal, store, [held])
        assert await lifecycle_at(store, PORTO) == Lifecycle()
        await Quarantine(journal).arelease("new", actor="me", store=store)
        assert (await lifecycle_at(store, PORTO)).superseded_by == LISBON
        assert (await Quarantine(journal).arelease("new", actor="me", store=store)).already

    async def test_a_release_leaves_out_what_is_outdated(
        self, journal: Journal, store: CountingStore
    ):
        await with_porto(journal, store)
        held = superseding("held", "I live in Lisbon.", PORTO, outcome="quarantine")
        await commit(journal, store, [held, superseding("new", "I live in Faro.", PORTO)])
        await Quarantine(journal).arelease("held", actor="me", store=store)
        assert (await lifecycle_at(store, PORTO)).superseded_by == record_key("I live in Faro.")
        assert (await lifecycle_at(store, LISBON)).is_current

    async def test_a_release_revives_an_ended_record_of_the_text(
        self, journal: Journal, store: CountingStore
    ):
        held = build_receipt("held", text="I live in Porto.", turn="9", outcome="quarantine")
        await commit(journal, store, [held])
        await with_porto(journal, store)
        await commit(journal, store, [superseding("new", "I live in Lisbon.", PORTO)])
        await Quarantine(journal).arelease("held", actor="me", store=store)
        assert (await lifecycle_at(store, PORTO)).is_current


class TestTwoJournals:
    """Two processes with a log each, on one store."""

    async def test_only_one_of_two_at_once_supersedes(self, journal: Journal):
        class Racing(InMemoryStore):
            """Lets the other writer come in between the check and the write of this one."""

            def __init__(self) -> None:
                super().__init__()
                self.rival: Any = None

            async def abatch(self, ops: Iterable[Op]) -> list[Any]:
                listed = list(ops)
                results = await super().abatch(listed)
                if self.rival and any(isinstance(op, PutOp) and op.key == PORTO for op in listed):
                    rival, self.rival = self.rival, None
                    await rival()
                return results

        store = Racing()
        await with_porto(journal, store)
        async with Journal.memory() as other:
            item = await store.aget(ANA, PORTO)
            assert item is not None
            old = dict(item.value)

            async def rival() -> None:
                # As if the other had read the memory before this one wrote it.
                await store.aput(ANA, PORTO, old)
                await commit(other, store, [superseding("late", "I live in Faro.", PORTO)])

            store.rival = rival
            await commit(journal, store, [superseding("new", "I live in Lisbon.", PORTO)])
            faro = record_key("I live in Faro.")
            assert (await lifecycle_at(store, PORTO)).superseded_by == faro
            assert (await lifecycle_at(store, LISBON)).conflicts_with == (faro,)
            assert (await lifecycle_at(store, faro)).conflicts_with == (LISBON,)
            history = await ReceiptLog(journal).ahistory("new")
            assert [event.kind for event in history][-2:] == ["change_lost", "stored"]
            (loss,) = cast("list[dict[str, Any]]", history[-2].body["lost"])
            assert (loss["key"], loss["winner"]) == (PORTO, faro)
            assert (await audit(journal, store, namespace=("nobody",))).agrees
            assert (await recover(journal, store)).line == ""
            assert "change_lost" not in [e.kind for e in await ReceiptLog(other).ahistory("late")]


class TestRepair:
    async def test_a_lost_mark_is_reported_and_made_again(
        self, journal: Journal, store: CountingStore
    ):
        await with_porto(journal, store)
        before = await store.aget(ANA, PORTO)
        assert before is not None
        await commit(journal, store, [superseding("new", "I live in Lisbon.", PORTO)])
        await store.aput(ANA, PORTO, before.value)
        compared = await audit(journal, store)
        assert compared.unmarked == ("new",)
        assert not compared.agrees
        assert (await audit(journal, store, namespace=("other",))).agrees
        assert (await repair(journal, store)).marked == ("new",)
        assert (await lifecycle_at(store, PORTO)).superseded_by == LISBON
        assert (await audit(journal, store)).agrees

    async def test_an_item_that_its_writer_replaced_is_current(
        self, journal: Journal, store: CountingStore
    ):
        value = {"text": "I live in Porto."}
        for name in ("first", "second"):
            receipt = build_receipt(name, text="I live in Porto.", turn=name).model_copy(
                update={"effect": "caller", "record_key": "k1", "value": value}
            )
            await log_decisions(journal, store, [receipt])
            await store.aput(ANA, "k1", value)
            done = [(name, receipt.candidate.id, None)]
            await journal.awrite(end_writes, done, actor="me", at=journal.now())
            if name == "first":
                await commit(journal, store, [superseding("new", "I live in Lisbon.", "k1")])
                assert (await audit(journal, store)).agrees
        assert (await audit(journal, store)).agrees

    async def test_a_lost_record_comes_back_as_it_was(self, journal: Journal, store: CountingStore):
        await with_porto(journal, store)
        await commit(journal, store, [superseding("new", "I live in Lisbon.", PORTO)])
        state = await lifecycle_at(store, PORTO)
        await store.adelete(ANA, PORTO)
        assert (await audit(journal, store)).without_record == ("old",)
        done = await repair(journal, store)
        assert (done.restored, done.marked) == (("old",), ("new",))
        assert "1 changes of memories made again" in done.line
        assert await lifecycle_at(store, PORTO) == state

    async def test_what_another_process_changed_stays(self, journal: Journal, store: CountingStore):
        await with_porto(journal, store)
        receipt = superseding("new", "I live in Lisbon.", PORTO)
        await commit(journal, store, [receipt])
        async with Journal.memory() as other:
            note = receipt.changes[0].after.model_copy(update={"reason": "a note"})
            change = receipt.changes[0].model_copy(
                update={"before": receipt.changes[0].after, "after": note}
            )
            more = confirming("more", PORTO).model_copy(update={"changes": (change,)})
            await commit(other, store, [more])
        assert (await audit(journal, store)).agrees
        assert (await repair(journal, store)).marked == ()
        assert (await lifecycle_at(store, PORTO)).reason == "a note"


class TestChroma:
    """A store that keeps embeddings and lifetimes beside the values."""

    async def test_a_mark_keeps_the_embedding_and_the_lifetime(self, journal: Journal):
        ttl: TTLConfig = {"default_ttl": 60.0, "refresh_on_read": False}
        store = ChromaStore.memory(embed=HashEmbeddings(), ttl=ttl)
        async with store:
            await with_porto(journal, store)
            (before,) = await store.asearch(ANA, query="I live in Porto.")
            await commit(journal, store, [superseding("new", "I live in Lisbon.", PORTO)])
            found = await store.asearch(ANA, query="I live in Porto.")
            after = next(item for item in found if item.key == PORTO)
            assert after.score == before.score
            assert after.created_at == before.created_at
            assert lifecycle_of(after.value).superseded_by == LISBON
            assert (await audit(journal, store)).agrees
