"""Exports and imports: a round trip has everything, and a wrong file changes nothing."""

import io
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memguard import Memories, create_write_guard
from memguard.errors import ErrorCode, InvalidInputError
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.journal.receipts import ReceiptLog
from memguard.memories.imports import blocked_keys
from memguard.memories.lines import ExportedMemory, ExportedReceipt
from memguard.schema.memory import Lifecycle
from memguard.schema.relations import RecordChange
from memguard.stores import ChromaStore, recover
from tests.unit.journal.conftest import build_receipt
from tests.unit.memories.conftest import ANA, BOB, NOON, new_store, texts

PEANUTS = "I am allergic to peanuts."
PORTO = "I live in Porto."
LISBON = "I live in Lisbon."
SECRET = "hunter2Xy!9"


def fill(memories: Memories, store: Any, journal: Journal) -> None:
    """Memories in every state, from people, a guard and another program."""
    memories.add(PORTO, actor="ana")
    memories.edit(memories.list().memories[0].id, LISBON, actor="ana", reason="moved")
    memories.add(LISBON, actor="ana")
    memories.delete(memories.add("I like jazz.").record_key, actor="ana")
    memories.undo(memories.add("I like rain.").id)
    guard = create_write_guard("local", store=store, namespace=ANA, receipts=journal)
    said = [
        {"id": "t1", "role": "user", "content": PEANUTS, "at": "2026-02-01T10:00:00+01:00"},
        {"id": "t2", "role": "user", "content": f"My password is {SECRET}."},
        {"id": "t3", "role": "user", "content": "My colleague does not eat meat."},
    ]
    guard.invoke({"messages": said})
    store.put(ANA, "other", {"content": "Ana rows.", "mood": "good"})
    Memories(store, namespace=BOB, receipts=journal).add("Bob's own.")
    Memories(store, namespace=(*ANA, "work"), receipts=journal).add("Below.")


def exported(memories: Memories) -> list[dict[str, Any]]:
    """The lines of an export, without what differs between two stores."""
    file = io.StringIO()
    memories.export(file)
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    for line in lines:
        line.pop("exported_at", None)
        line.pop("stored_at", None)
    return [lines[0], *sorted(lines[1:], key=lambda line: json.dumps(line, sort_keys=True))]


def test_a_round_trip_has_everything(
    memories: Memories, store: Any, journal: Journal, tmp_path: Path
) -> None:
    fill(memories, store, journal)
    file = tmp_path / "ana.jsonl"
    report = memories.export(file)
    assert report.left_out == 1
    text = file.read_text(encoding="utf-8")
    assert SECRET not in text
    assert "Bob" not in text
    assert "Below" not in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with ChromaStore.memory() as other, Journal.memory() as log:
        restored = Memories(other, namespace=ANA, receipts=log)
        done = restored.import_(file, actor="eve")
        assert (done.memories, done.receipts) == (report.memories, report.receipts)
        assert exported(restored) == [
            {**exported(memories)[0], "left_out": 0},
            *exported(memories)[1:],
        ]
        assert texts(restored, include_superseded=True, limit=99)
        for entry in memories.list(include_superseded=True, limit=99).memories:
            copy = restored.show(entry.id)
            assert copy.receipt == memories.show(entry.id).receipt
            assert copy.source == memories.show(entry.id).source
            assert copy.memory == entry.model_copy(update={"stored_at": copy.memory.stored_at})
        # It lives on: states, keys and quarantine are those of the log.
        assert restored.add(LISBON).outcome == "duplicate"
        undone = restored.list(include_superseded=True, contains="jazz").memories[0]
        restored.undo(undone.id)
        assert "I like jazz." in texts(restored)
        first, second = Quarantine(journal).list(namespace=ANA), Quarantine(log).list(namespace=ANA)
        assert {r.id for r in second.receipts} == {
            r.id for r in first.receipts if r.decision.reason != "secret"
        }


def test_an_import_is_idempotent_and_says_who_did_it(
    memories: Memories, store: Any, journal: Journal, tmp_path: Path
) -> None:
    fill(memories, store, journal)
    file = tmp_path / "ana.jsonl"
    report = memories.export(file)
    again = memories.import_(file)
    assert (again.memories, again.receipts, again.skipped) == (0, 0, ())
    assert again.unchanged == report.memories + report.receipts
    with ChromaStore.memory() as other, Journal.memory() as log:
        restored = Memories(other, namespace=ANA, receipts=log)
        restored.import_(file, actor="eve")
        before = exported(restored)
        assert restored.import_(file, actor="eve").memories == 0
        assert exported(restored) == before
        events = [event for event in ReceiptLog(log).replay() if event.actor == "eve"]
        assert {event.kind for event in events} == {"restored"}


def test_an_interrupted_import_is_completed_by_the_next(
    memories: Memories, store: Any, journal: Journal, tmp_path: Path
) -> None:
    fill(memories, store, journal)
    file = tmp_path / "ana.jsonl"
    memories.export(file)

    class Failing(ChromaStore):
        async def abatch(self, ops: Any) -> Any:
            ops = list(ops)
            if any(getattr(op, "value", None) for op in ops):
                msg = "the disk is full"
                raise OSError(msg)
            return await super().abatch(ops)

    with ChromaStore.memory() as other, Journal.memory() as log:
        failing = Failing(other._location)  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(Exception, match="import the file again"):
            Memories(failing, namespace=ANA, receipts=log).import_(file)
        restored = Memories(other, namespace=ANA, receipts=log)
        restored.import_(file)
        assert exported(restored)[1:] == exported(memories)[1:]


def lines_of(memories: Memories, tmp_path: Path) -> tuple[Path, list[str]]:
    file = tmp_path / "ana.jsonl"
    memories.export(file)
    return file, file.read_text(encoding="utf-8").splitlines()


def changed(line: str, **fields: Any) -> str:
    return json.dumps({**json.loads(line), **fields})


Damage = Callable[[list[str]], list[str]]

DAMAGE: list[tuple[Damage, str]] = [
    (lambda _: [], "is empty"),
    (lambda lines: lines[1:], "does not begin with a header"),
    (lambda lines: lines[:-1], "cut off or edited"),
    (lambda lines: [*lines, lines[-1]], "in the file twice"),
    (lambda lines: [*lines[:-1], lines[-1][:-9]], "wrong line 5: no JSON"),
    (lambda lines: [lines[0], "[1]", *lines[2:]], "wrong line 2: no `schema_version`"),
    (lambda lines: [changed(lines[0], schema_version=2), *lines[1:]], "upgrade memguard"),
    (lambda lines: [changed(lines[0], namespace=["memories", "bob"]), *lines[1:]], "not of mem"),
    (lambda lines: [lines[0], changed(lines[1], value=3), *lines[2:]], "memory.value"),
    (lambda lines: [lines[0], lines[0], *lines[2:]], "a second header"),
    (lambda lines: [*lines[:-1], changed(lines[-1], events=[])], "event `decided`"),
    (lambda lines: [*lines[:-1], lines[-1].replace('"ana"', '"bob"')], "of another namespace"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE)
def test_a_wrong_file_changes_nothing(
    memories: Memories, tmp_path: Path, damage: Damage, message: str
) -> None:
    memories.add(PORTO)
    memories.add(PEANUTS)
    file, lines = lines_of(memories, tmp_path)
    file.write_text("\n".join(damage(lines)), encoding="utf-8")
    with ChromaStore.memory() as other, Journal.memory() as log:
        restored = Memories(other, namespace=ANA, receipts=log)
        with pytest.raises(InvalidInputError, match=message) as refused:
            restored.import_(file)
        assert refused.value.code is ErrorCode.FILE_UNREADABLE
        assert restored.list(include_superseded=True).memories == ()
        assert ReceiptLog(log).list().receipts == ()


def test_files_that_cannot_be_used_are_named(memories: Memories, tmp_path: Path) -> None:
    for path in (tmp_path / "missing.jsonl", tmp_path):
        with pytest.raises(InvalidInputError, match=path.name) as refused:
            memories.import_(path)
        assert refused.value.code is ErrorCode.FILE_UNREADABLE
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="cannot write"):
        memories.export(tmp_path / "file" / "ana.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_what_is_in_the_way_is_named_or_left_out(memories: Memories, tmp_path: Path) -> None:
    memories.add(PORTO)
    memories.add(PEANUTS)
    file, _ = lines_of(memories, tmp_path)
    porto = memories.list(contains="Porto").memories[0]
    memories.edit(porto.id, LISBON)
    memories.forget(memories.list(contains="peanuts").memories[0].id)
    with pytest.raises(InvalidInputError, match="nothing was imported") as refused:
        memories.import_(file)
    assert refused.value.code is ErrorCode.IMPORT_CONFLICT
    assert texts(memories) == [LISBON]
    done = memories.import_(file, on_conflict="skip")
    assert any("forgotten" in reason for reason in done.skipped)
    assert any(porto.id in reason for reason in done.skipped)
    with pytest.raises(InvalidInputError, match="on_conflict"):
        memories.import_(file, on_conflict="replace")  # pyright: ignore[reportArgumentType]


def test_what_was_forgotten_does_not_come_back(memories: Memories, tmp_path: Path) -> None:
    memories.add(PEANUTS)
    file, _ = lines_of(memories, tmp_path)
    memories.forget_user()
    memories.import_(file, on_conflict="skip")
    assert texts(memories, include_superseded=True) == []


def test_a_chain_comes_whole_or_not_at_all(memories: Memories, tmp_path: Path) -> None:
    memories.add(PORTO)
    memories.edit(memories.list().memories[0].id, LISBON)
    memories.add(PEANUTS)
    file, _ = lines_of(memories, tmp_path)
    with ChromaStore.memory() as other, Journal.memory() as log:
        restored = Memories(other, namespace=ANA, receipts=log)
        # The same text, as another decision: it is current here.
        restored.add(PORTO)
        done = restored.import_(file, on_conflict="skip")
        assert sorted(texts(restored)) == [PEANUTS, PORTO]
        assert (done.memories, done.receipts) == (1, 1)
        assert len(done.skipped) == 4
        assert sum("belongs to a chain" in reason for reason in done.skipped) == 3
        # Nothing of the chain is in the log, so the memory is as it was.
        restored.edit(restored.list(contains="Porto").memories[0].id, LISBON)
        assert sorted(texts(restored)) == [PEANUTS, LISBON]


@pytest.mark.asyncio
async def test_recovery_leaves_an_import_as_it_is(tmp_path: Path) -> None:
    journal = Journal.memory()
    source = new_store("memory")
    memories = Memories(source, namespace=ANA, receipts=journal)
    await memories.aadd(PORTO)
    await memories.aedit((await memories.alist()).memories[0].id, LISBON)
    file = tmp_path / "ana.jsonl"
    await memories.aexport(file)
    target, log = new_store("memory"), Journal.memory()
    restored = Memories(target, namespace=ANA, receipts=log)
    await restored.aimport(file)
    before = (await restored.alist(include_superseded=True)).memories
    await recover(log, target)
    assert (await restored.alist(include_superseded=True)).memories == before


KEYS = st.sampled_from(["a", "b", "c", "d", "e"])


@given(
    st.dictionaries(KEYS, KEYS, max_size=5),
    st.lists(st.tuples(KEYS, KEYS), max_size=4),
    st.sets(st.sampled_from(["a", "b", "r0", "r1"])),
)
def test_what_is_blocked_is_closed_under_every_link(
    successors: dict[str, str], pairs: list[tuple[str, str]], conflicts: set[str]
) -> None:
    memories = [
        ExportedMemory(id=key, value={"memguard": {"superseded_by": following}}, stored_at=NOON)
        for key, following in successors.items()
    ]
    receipts = [
        ExportedReceipt(
            receipt=build_receipt(f"r{n}").model_copy(
                update={
                    "record_key": key,
                    "changes": (
                        RecordChange(
                            namespace=ANA, key=other, before=Lifecycle(), after=Lifecycle()
                        ),
                    ),
                }
            ),
            events=(),
        )
        for n, (key, other) in enumerate(pairs)
    ]
    blocked = blocked_keys(memories, receipts, conflicts=conflicts)
    assert {key for key in successors if key in conflicts} <= blocked
    links = [{key, other} for key, other in (*successors.items(), *pairs)]
    assert all(link <= blocked or link.isdisjoint(blocked) for link in links)
    if conflicts.isdisjoint({*successors, *(f"r{n}" for n in range(len(pairs)))}):
        assert not blocked
