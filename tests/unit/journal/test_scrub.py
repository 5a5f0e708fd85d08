"""Secrets are taken out of a store, and put back on request."""

from typing import Any

import pytest
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from memguard.errors import ErrorCode, InvalidInputError, StoreError
from memguard.journal.audit import audit
from memguard.journal.commit import commit, recover
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.journal.scrub import scrub, undo_scrub
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory, Provenance
from memguard.schema.receipt import ReceiptFactory

ANA = ("memories", "ana")
BOB = ("memories", "bob")
SECRETS = ("My password is hunter2.", "The PIN is 4821.")
ADMIT = AdmissionDecision(outcome="admit", reason="supported", explanation="")


class BrokenStore(InMemoryStore):
    """A store that refuses to delete."""

    async def abatch(self, ops: Any) -> Any:
        ops = list(ops)
        if any(isinstance(op, PutOp) and op.value is None for op in ops):
            msg = "disk full"
            raise OSError(msg)
        return await super().abatch(ops)


async def filled(journal: Journal, store: InMemoryStore) -> dict[Any, Any]:
    """Two records of memguard with a secret, one without, and items of other writers."""
    receipts = [
        ReceiptFactory().create(
            CandidateMemory(text=text, namespace=ANA, turn_ids=("1",)), ADMIT, policy_digest="p"
        )
        for text in (*SECRETS, "Ana rows.")
    ]
    await commit(journal, store, receipts)
    await store.aput(BOB, "/notes.md", {"content": ["PIN: 4821", "Bob rows."]})
    await store.aput(BOB, "login", {"content": "Bob's login", "password": "hunter2"})
    await store.aput(BOB, "mail", {"content": "Write to bob@example.org"})
    return contents(store)


def contents(store: InMemoryStore) -> dict[Any, Any]:
    items = store.search((), limit=100)
    return {(item.namespace, item.key): item.value for item in items}


async def test_a_dry_run_counts_and_changes_nothing(journal: Journal) -> None:
    store = InMemoryStore()
    before = await filled(journal, store)
    report = await scrub(journal, store, actor="ana")
    assert (report.examined, report.records, report.run_id) == (6, 4, "")
    assert report.kinds == {"password": 4}
    assert contents(store) == before
    personal = await scrub(journal, store, actor="ana", screen="personal")
    assert personal.kinds == {"password": 4, "e-mail address": 1}
    assert (await scrub(journal, store, actor="ana", namespace=BOB)).records == 2


async def test_secrets_leave_the_store_and_come_back(journal: Journal) -> None:
    store = InMemoryStore()
    before = await filled(journal, store)
    report = await scrub(journal, store, actor="ana", apply=True)
    after = contents(store)
    assert "hunter2" not in str(after)
    assert "4821" not in str(after)
    assert len(after) == len(before)
    assert after[BOB, "/notes.md"] == {"content": ["PIN: [password]", "Bob rows."]}
    assert after[BOB, "login"] == {"content": "Bob's login", "password": "[password]"}
    texts = {value["content"] for (space, _), value in after.items() if space == ANA}
    assert texts == {"My password is [password].", "The PIN is [password].", "Ana rows."}
    assert (await audit(journal, store, namespace=ANA)).agrees
    assert (await scrub(journal, store, actor="ana")).records == 0
    quarantine = Quarantine(journal)
    held = (await quarantine.alist()).receipts
    assert len(held) == 4
    assert "hunter2" not in "".join(receipt.model_dump_json() for receipt in held)

    restored = await undo_scrub(journal, store, report.run_id, actor="ana")
    assert len(restored) == 4
    assert contents(store) == before
    assert await undo_scrub(journal, store, report.run_id, actor="ana") == ()
    again = await scrub(journal, store, actor="ana", apply=True)
    assert again.records == 4
    assert "hunter2" not in str(contents(store))


async def test_provenance_stays_with_the_redacted_record(journal: Journal) -> None:
    store = InMemoryStore()
    await filled(journal, store)
    await scrub(journal, store, actor="ana", apply=True)
    items = [item for item in store.search(ANA, limit=10) if "PIN" in item.value["content"]]
    assert Provenance.model_validate(items[0].value["memguard"]).turn_ids == ("1",)


async def test_two_secrets_that_become_one_text_both_come_back(journal: Journal) -> None:
    store = InMemoryStore()
    for number in (1, 2):
        receipt = ReceiptFactory().create(
            CandidateMemory(text=f"The password is hunter{number}.", namespace=ANA), ADMIT
        )
        await commit(journal, store, [receipt])
    before = contents(store)
    report = await scrub(journal, store, actor="ana", apply=True)
    assert [value["content"] for value in contents(store).values()] == [
        "The password is [password]."
    ]
    await undo_scrub(journal, store, report.run_id, actor="ana")
    assert contents(store) == before


async def test_an_interrupted_run_is_completed_by_the_next(journal: Journal) -> None:
    store = BrokenStore()
    await filled(journal, store)
    with pytest.raises(StoreError):
        await scrub(journal, store, actor="ana", apply=True)
    healthy = InMemoryStore()
    for (space, key), value in contents(store).items():
        await healthy.aput(space, key, value)
    await recover(journal, healthy)
    await scrub(journal, healthy, actor="ana", apply=True)
    assert "hunter2" not in str(contents(healthy))
    quarantine = Quarantine(journal)
    held = (await quarantine.alist()).receipts
    originals = {(await quarantine.ashow(receipt.id)).candidate.text for receipt in held}
    assert set(SECRETS) <= originals


async def test_an_unknown_run_is_an_error(journal: Journal) -> None:
    with pytest.raises(InvalidInputError, match="no scrub has the id 'x'") as caught:
        await undo_scrub(journal, InMemoryStore(), "x", actor="ana")
    assert caught.value.code == ErrorCode.RECEIPT_NOT_FOUND
