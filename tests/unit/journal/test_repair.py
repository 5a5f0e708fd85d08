"""A store that has lost what the receipts know, and files that are damaged."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from langgraph.store.base import TTLConfig
from langgraph.store.memory import InMemoryStore

from memguard.journal.audit import audit
from memguard.journal.commit import commit
from memguard.journal.journal import Journal
from memguard.journal.receipts import ReceiptLog
from memguard.journal.removal import delete_memory
from memguard.journal.repair import find_damage, repair, salvage_journal, set_aside
from memguard.schema.receipt import Receipt
from tests.unit.journal.conftest import ANA, NOON, MakeReceipt


def of_a_caller(key: str, value: dict[str, Any] | None, *, make: MakeReceipt) -> Receipt:
    return make(key, text=f"Of {key}.").model_copy(
        update={"effect": "caller", "record_key": key, "value": value}
    )


async def test_what_the_log_contains_is_restored_and_the_rest_is_marked(
    journal: Journal, make_receipt: MakeReceipt
) -> None:
    store = InMemoryStore()
    await commit(journal, store, [make_receipt(name) for name in "abc"])
    await delete_memory(journal, store, "c", actor="ana", reason="asked")
    log = ReceiptLog(journal)
    for receipt, minutes in (
        (of_a_caller("whole", {"content": "Of whole.", "rank": 1}, make=make_receipt), None),
        (of_a_caller("bytes", None, make=make_receipt), None),
        (of_a_caller("short", {"content": "Of short."}, make=make_receipt), 5.0),
    ):
        await log.aappend(receipt)
        await journal.awrite(_stored, receipt, minutes)
    emptied = InMemoryStore()
    found = await audit(journal, emptied)
    assert sorted(found.without_record) == ["a", "b", "bytes", "short", "whole"]
    done = await repair(journal, emptied)
    assert sorted(done.restored) == ["a", "b", "whole"]
    assert sorted(done.missing) == ["bytes", "short"]
    assert done.line == "3 memories restored from the receipts, 2 marked as missing"
    assert (await audit(journal, emptied)).agrees
    assert await log.astate("a") == "stored"
    assert await log.astate("short") == "missing"
    item = await emptied.aget(ANA, "whole")
    assert item is not None
    assert item.value == {"content": "Of whole.", "rank": 1}
    # What was deleted on purpose stays away, and a second repair has nothing to do.
    assert len(await emptied.asearch(ANA)) == 3
    assert (await repair(journal, emptied)).restored == ()


def _stored(db: Any, receipt: Receipt, minutes: float | None) -> None:
    from memguard.journal.receipts import end_writes

    at = NOON - timedelta(minutes=10)
    end_writes(db, [(receipt.id, receipt.candidate.id, minutes)], actor="test", at=at)


class Expiring(InMemoryStore):
    supports_ttl = True

    def __init__(self) -> None:
        super().__init__()
        self.ttl_config = TTLConfig(default_ttl=60.0)


async def test_what_expired_is_not_restored(make_receipt: MakeReceipt) -> None:
    times = [NOON]
    async with Journal.memory(clock=lambda: times[0]) as journal:
        await commit(journal, Expiring(), [make_receipt("a")])
        assert (await repair(journal, Expiring())).restored == ("a",)
        times[0] += timedelta(minutes=61)
        assert (await repair(journal, Expiring())).missing == ("a",)


def test_a_damaged_log_is_set_aside_and_what_can_be_read_is_kept(
    tmp_path: Path, make_receipt: MakeReceipt
) -> None:
    path = tmp_path / "memguard.sqlite3"
    with Journal.open(path, clock=lambda: NOON) as journal:
        log = ReceiptLog(journal)
        for number in range(200):
            log.append(make_receipt(f"r{number:03}"))
    assert find_damage(path) == ""
    assert find_damage(tmp_path / "none") == ""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek((size // 2) // 4096 * 4096)
        file.write(os.urandom(4096))
    assert find_damage(path)
    before = path.read_bytes()
    folder = set_aside([path], at=NOON)
    assert (folder / path.name).read_bytes() == before
    copied, lost = salvage_journal(folder / path.name, path, now=NOON)
    assert copied
    assert lost < copied
    assert find_damage(path) == ""
    with Journal.open(path, clock=lambda: NOON) as journal:
        kept = sum(ReceiptLog(journal).count().values())
        assert 100 < kept <= 200
        ReceiptLog(journal).append(make_receipt("new"))


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "memguard.sqlite3").write_bytes(b"x" * 9000)
    assert "not a database" in find_damage(tmp_path / "memguard.sqlite3")
