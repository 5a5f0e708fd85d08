"""Every item of a guarded store has a receipt, and no receipt says what is not so."""

import math
from typing import Any

import pytest
from langgraph.store.base import GetOp, Op, PutOp, Result
from langgraph.store.memory import InMemoryStore

from memguard import ConsistencyGate
from memguard.errors import ErrorCode, StoreError
from memguard.journal.audit import audit
from memguard.journal.journal import Journal
from memguard.journal.receipts import ReceiptLog
from memguard.journal.recovery import recover
from memguard.store_guard.values import judged_text
from tests.unit.store_guard.test_guard_store import ANA, MEAT, PORTO, SAID, guarded
from tests.unit.write.scripts import JUDGES, calls_of


async def _agrees(store: Any) -> bool:
    return (await audit(store._gate.backing.journal, store.unguarded)).agrees


async def test_one_text_under_three_keys_has_three_receipts_and_is_judged_once() -> None:
    store = guarded(source=SAID)
    for key in ("a", "b", "b", "c"):
        await store.aput(ANA, key, {"content": PORTO})
    receipts = (await store.receipts.alist()).receipts
    assert sorted(receipt.record_key for receipt in receipts) == ["a", "b", "c"]
    assert calls_of(store.model, JUDGES) == 1
    first = next(receipt for receipt in receipts if receipt.record_key == "a")
    assert all(first.id in receipt.decision.explanation for receipt in receipts if receipt != first)
    assert [await store.receipts.astate(receipt.id) for receipt in receipts] == ["stored"] * 3
    assert await _agrees(store)


async def test_one_batch_of_one_text_under_three_keys_too() -> None:
    store = guarded(source=SAID)
    await store.abatch([PutOp(ANA, key, {"content": PORTO}) for key in "abc"])
    receipts = (await store.receipts.alist()).receipts
    assert sorted(receipt.record_key for receipt in receipts) == ["a", "b", "c"]
    assert await _agrees(store)


async def test_replaced_deleted_and_written_again() -> None:
    store = guarded(source=SAID, scores=lambda _: "0.9")
    await store.aput(ANA, "k", {"content": PORTO, "rank": 1})
    await store.aput(ANA, "k", {"content": PORTO, "rank": 2})
    assert await _agrees(store)
    await store.aput(ANA, "k", {"content": PORTO, "rank": 1})
    assert await _agrees(store)
    # Another field, no other text: a receipt of its own, and no judge is asked.
    assert calls_of(store.model, JUDGES) == 1
    ranks = [receipt.value["rank"] for receipt in (await store.receipts.alist()).receipts]
    assert ranks == [1, 2, 1]
    await store.adelete(ANA, "k")
    assert await _agrees(store)
    newest = (await store.receipts.alist()).receipts[0]
    assert await store.receipts.astate(newest.id) == "deleted"
    await store.aput(ANA, "k", {"content": PORTO, "rank": 1})
    assert len((await store.receipts.alist()).receipts) == 4
    assert await _agrees(store)


async def test_text_in_any_field_is_judged() -> None:
    seen: list[str] = []

    def score(memory: str) -> str:
        seen.append(memory)
        return "0.9" if "meat" not in memory else "0.1"

    store = guarded(source=SAID, scores=score)
    await store.aput(ANA, "k", {"content": PORTO, "kind": "home", "rank": 1})
    await store.aput(ANA, "k", {"content": PORTO, "kind": "home", "note": MEAT})
    assert seen == [PORTO, f"{PORTO}\nnote: {MEAT}"]
    item = await store.aget(ANA, "k")
    assert item.value == {"content": PORTO, "kind": "home", "rank": 1}
    assert await _agrees(store)


@pytest.mark.parametrize(
    ("value", "old", "text"),
    [
        ({"content": "A b.", "id": "x-1", "n": 3, "at": "2026-03-01 12:00:00"}, None, "A b."),
        ({"content": "A b.", "note": "Two words"}, None, "A b.\nnote: Two words"),
        ({"content": "A b.", "note": "Two words"}, {"content": "A", "note": "Two words"}, "A b."),
        ({"content": "A b.", "of": {"x": ["c d"]}}, None, "A b.\nof.x: c d"),
        ({"content": "A b.", "Two words": True}, None, "A b.\n$: Two words: True"),
        ({"content": "A b.", "note": "住在波尔图"}, None, "A b.\nnote: 住在波尔图"),
        ({"content": "A b.", "note": "x" * 129}, None, f"A b.\nnote: {'x' * 129}"),
        ({"home": "Porto it is"}, None, '{"home": "Porto it is"}'),
    ],
)
def test_what_is_text(value: dict[str, Any], old: dict[str, Any] | None, text: str) -> None:
    assert judged_text(value, old=old) == text


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
async def test_a_number_that_json_lacks_is_stored_as_it_is(number: float) -> None:
    store = guarded(source=SAID)
    await store.aput(ANA, "k", {"content": PORTO, "of": [{"x": number}]})
    item = await store.aget(ANA, "k")
    assert repr(item.value["of"][0]["x"]) == repr(number)
    (receipt,) = (await store.receipts.alist()).receipts
    # The receipt is JSON, so it has no copy that a repair could restore.
    assert receipt.value is None
    assert await _agrees(store)


class Dying(InMemoryStore):
    """A store whose puts and deletions do not return, before or after they were made."""

    dies: str = ""

    async def abatch(self, ops: Any) -> list[Result]:
        listed: list[Op] = list(ops)
        writes = any(isinstance(op, PutOp) for op in listed)
        if writes and self.dies == "before":
            raise _Killed
        done = await super().abatch(listed)
        if writes and self.dies == "after":
            raise _Killed
        return done


class _Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize(("dies", "state"), [("before", "missing"), ("after", "stored")])
async def test_a_write_that_was_interrupted_is_found_out(dies: str, state: str) -> None:
    inner, journal = Dying(), Journal.memory()
    store = guarded(inner, source=SAID, receipts=journal)
    inner.dies = dies
    with pytest.raises(_Killed):
        await store.aput(ANA, "k", {"content": PORTO})
    inner.dies = ""
    (receipt,) = (await store.receipts.alist()).receipts
    assert await store.receipts.astate(receipt.id) == "pending"
    assert (await audit(journal, inner)).pending == (receipt.id,)
    done = await recover(journal, inner)
    assert done.line.startswith("recovery: writes of a guarded store")
    assert await ReceiptLog(journal).astate(receipt.id) == state
    assert (await audit(journal, inner)).agrees
    # The writer comes again.
    await store.aput(ANA, "k", {"content": PORTO})
    assert await inner.aget(ANA, "k") is not None
    assert (await audit(journal, inner)).agrees


@pytest.mark.parametrize("dies", ["before", "after"])
async def test_a_deletion_that_was_interrupted_is_completed(dies: str) -> None:
    inner, journal = Dying(), Journal.memory()
    store = guarded(inner, source=SAID, receipts=journal)
    await store.aput(ANA, "k", {"content": PORTO})
    inner.dies = dies
    with pytest.raises(_Killed):
        await store.adelete(ANA, "k")
    inner.dies = ""
    assert len((await recover(journal, inner)).deleted) == 1
    assert await inner.aget(ANA, "k") is None
    assert (await audit(journal, inner)).agrees


async def test_an_item_that_was_put_after_a_deletion_failed_stays() -> None:
    inner, journal = Dying(), Journal.memory()
    store = guarded(inner, source=SAID, receipts=journal)
    await store.aput(ANA, "k", {"content": PORTO})
    inner.dies = "before"
    with pytest.raises(_Killed):
        await store.adelete(ANA, "k")
    inner.dies = ""
    await store.aput(ANA, "k", {"content": PORTO, "rank": 2})
    assert len((await recover(journal, inner)).deleted) == 1
    item = await inner.aget(ANA, "k")
    assert item is not None
    assert item.value["rank"] == 2
    assert (await audit(journal, inner)).agrees


@pytest.mark.parametrize("last", ["put", "delete"])
async def test_a_put_and_a_deletion_of_one_key_in_one_batch(last: str) -> None:
    store = guarded(source=SAID)
    ops = [PutOp(ANA, "k", None), PutOp(ANA, "k", {"content": PORTO})]
    await store.abatch(ops if last == "put" else ops[::-1])
    (receipt,) = (await store.receipts.alist()).receipts
    there = await store.aget(ANA, "k") is not None
    assert there is (last == "put")
    assert await store.receipts.astate(receipt.id) == ("stored" if there else "deleted")
    assert await _agrees(store)


class Failing(InMemoryStore):
    """A store that cannot look anything up."""

    async def abatch(self, ops: Any) -> list[Result]:
        listed: list[Op] = list(ops)
        if any(isinstance(op, GetOp) for op in listed):
            msg = "down"
            raise StoreError(msg, code=ErrorCode.STORE_UNREACHABLE)
        return await super().abatch(listed)


def _unreadable(prompt: str) -> str:
    del prompt
    return "who knows"


@pytest.mark.parametrize("on_failure", ["raise", "report"])
async def test_a_failure_is_raised_or_reported(
    on_failure: str, caplog: pytest.LogCaptureFixture
) -> None:
    unusable: dict[str, Any] = {
        "inner": InMemoryStore(),
        "scores": _unreadable,
        "gates": [ConsistencyGate(k=1, on_inconclusive="raise")],
    }
    failing: dict[str, Any] = {"inner": Failing()}
    for settings in (failing, unusable):
        store = guarded(source=SAID, on_failure=on_failure, **settings)
        value = {"content": PORTO, "note": "Said at lunch."}
        if on_failure == "raise":
            with pytest.raises(Exception, match=r"down|inconclusive|usable"):
                await store.aput(ANA, "k", value)
        else:
            await store.aput(ANA, "k", value)
        assert store.unguarded.search(ANA) == []
    if on_failure == "report":
        (held,) = (await store.quarantine.alist()).receipts
        assert held.decision.reason == "inconclusive"
        assert "not made" in caplog.text
