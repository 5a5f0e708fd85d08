"""Characters that show nothing, look-alikes, and secrets, before any judge."""

import json
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from memguard import ConsistencyGate, Writer, WriteReport, create_write_guard, guard_store
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.journal.reads import ReadLog
from memguard.journal.receipts import ReceiptLog
from memguard.schema.memory import record_keys
from memguard.schema.read import RecalledMemory
from tests.unit.test_normal_form import PLAIN, VARIANTS
from tests.unit.write.scripts import JUDGES, calls_of, scripted

ANA = ("memories", "ana")
ONE = ConsistencyGate(k=1)
SECRET = "My password is hunter2."


def write(
    *candidates: str, said: str = PLAIN, store: Any, model: Any = None, **settings: Any
) -> WriteReport:
    options: dict[str, Any] = {"namespace": ANA, "gates": [ONE], **settings}
    guard = create_write_guard(model or scripted(), store=store, **options)
    turn = {"id": "1", "role": "user", "content": said}
    asked = {"conversation": {"id": "c", "turns": [turn]}, "candidates": list(candidates)}
    return guard.invoke(asked)["writes"]


def test_ten_encodings_of_a_sentence_make_one_record() -> None:
    store, model = InMemoryStore(), scripted()
    together = write(*VARIANTS, store=store, model=model)
    assert [receipt.outcome for receipt in together.receipts] == ["stored"]
    for variant in VARIANTS:
        again = write(variant, store=store, model=model, receipts=Journal.memory())
        assert [receipt.outcome for receipt in again.receipts] == ["duplicate"]
    assert len(store.search(ANA, limit=100)) == 1
    assert calls_of(model, JUDGES) == 1


def test_the_same_text_is_judged_stored_and_shown() -> None:
    store, model = InMemoryStore(), scripted()
    hidden = "The user owns a b\u200boat.\U000e0061\u202e"
    write(hidden, said=hidden, store=store, model=model)
    (item,) = store.search(ANA)
    assert item.value["content"] == "The user owns a boat."
    prompts = "".join(str(call.messages[-1].content) for call in model.calls)
    assert "owns a boat." in prompts
    assert not any(char in prompts for char in "\u200b\u202e\U000e0061")


@pytest.mark.parametrize(
    "text", ["\u2800", "\ufe0f\u200d", "\U000e0061\U000e0062", "\u3164 \u034f"]
)
def test_a_text_that_shows_nothing_is_refused_before_any_judge(text: str) -> None:
    store, model = InMemoryStore(), scripted()
    (receipt,) = write(text, store=store, model=model).receipts
    assert (receipt.outcome, receipt.decision.reason) == ("refused", "blank_text")
    assert calls_of(model, JUDGES) == 0


def test_a_record_under_its_earlier_key_is_a_duplicate() -> None:
    russian = "\u0410\u043d\u0430 \u043b\u044e\u0431\u0438\u0442 \u0447\u0430\u0439."
    _, earlier = record_keys(russian)
    store = InMemoryStore()
    store.put(ANA, earlier, {"content": russian})
    (receipt,) = write(russian, said=russian, store=store).receipts
    assert receipt.outcome == "duplicate"
    # The key of the record that is there, by which it is deleted.
    assert receipt.record_key == earlier
    assert len(store.search(ANA)) == 1


def test_look_alike_letters_are_on_the_receipt() -> None:
    (receipt,) = write("The user has a nut \u0430llergy.", store=InMemoryStore()).receipts
    assert receipt.look_alikes == ("\u0430llergy",)
    (plain,) = write(PLAIN, store=InMemoryStore()).receipts
    assert "look_alikes" not in plain.model_dump_json()


def test_a_secret_waits_in_quarantine_and_nowhere_else() -> None:
    store, journal, model = InMemoryStore(), Journal.memory(), scripted()
    writes = write(SECRET, said=SECRET, store=store, model=model, receipts=journal)
    (receipt,) = writes.receipts
    assert (receipt.outcome, receipt.decision.reason) == ("quarantined", "secret")
    assert "password" in receipt.decision.explanation
    assert calls_of(model, JUDGES) == 0
    assert store.search(ANA) == []
    log, quarantine = ReceiptLog(journal), Quarantine(journal)
    listed = [*log.list().receipts, *quarantine.list().receipts, log.get(receipt.id)]
    assert {entry.candidate.text for entry in listed} == {"My password is [password]."}
    assert "hunter2" not in writes.model_dump_json()
    # The owner sees it, and can store it.
    assert quarantine.show(receipt.id).candidate.text == SECRET
    quarantine.release(receipt.id, actor="ana", store=store)
    assert [item.value["content"] for item in store.search(ANA)] == [SECRET]


def test_two_secrets_are_two_candidates() -> None:
    store, journal = InMemoryStore(), Journal.memory()
    write(SECRET, "My password is hunter3.", store=store, receipts=journal)
    quarantine = Quarantine(journal)
    texts = {quarantine.show(held.id).candidate.text for held in quarantine.list().receipts}
    assert texts == {SECRET, "My password is hunter3."}


def test_the_source_of_another_candidate_does_not_repeat_a_secret() -> None:
    store, journal = InMemoryStore(), Journal.memory()
    said = f"I row. {SECRET}"
    writes = write("The user rows.", said=said, store=store, receipts=journal)
    (receipt,) = writes.receipts
    assert receipt.outcome == "stored"
    assert "[password]" in receipt.reports[0].context[0].content
    assert "hunter2" not in writes.model_dump_json()


def test_personal_data_is_held_only_where_asked() -> None:
    text = "The user's e-mail is ana@example.org."
    (stored,) = write(text, store=InMemoryStore()).receipts
    assert stored.outcome == "stored"
    strict = Writer(screen="personal")
    (held,) = write(text, store=InMemoryStore(), writer=strict).receipts
    assert (held.outcome, held.decision.reason) == ("quarantined", "personal_data")
    assert held.candidate.text == "The user's e-mail is [e-mail address]."


def test_the_screen_can_be_switched_off_later() -> None:
    store, journal = InMemoryStore(), Journal.memory()
    (held,) = write(SECRET, store=store, receipts=journal).receipts
    assert held.outcome == "quarantined"
    off = Writer(screen="nothing")
    (stored,) = write(SECRET, store=store, receipts=journal, writer=off).receipts
    assert stored.outcome == "stored"


@pytest.mark.parametrize(
    "value",
    [{"content": SECRET}, {"content": "A note.", "login": {"password": "hunter2"}}],
)
def test_a_guarded_store_holds_a_secret_in_any_field(value: dict[str, Any]) -> None:
    inner = InMemoryStore()
    store = guard_store(inner, gates=())
    store.put(ANA, "k", value)
    assert inner.search(ANA) == []
    (held,) = store.quarantine.list().receipts
    assert held.decision.reason == "secret"
    assert "hunter2" not in held.model_dump_json()
    store.quarantine.release(held.id, actor="ana", store=inner)
    assert inner.get(ANA, "k").value == value  # pyright: ignore[reportOptionalMemberAccess]
    off = guard_store(InMemoryStore(), gates=(), screen="nothing")
    off.put(ANA, "k", value)
    assert len(off.search(ANA)) == 1


def test_what_is_recalled_has_no_secret() -> None:
    assert RecalledMemory(text=SECRET).text == "My password is [password]."
    assert json.loads(RecalledMemory(text=SECRET).model_dump_json())["text"].endswith("[password].")


def test_the_log_of_reads_has_no_secret_of_the_request() -> None:
    from memguard import create_read_guard

    store, journal = (
        InMemoryStore(index={"dims": 8, "embed": lambda t: [[1.0] * 8 for _ in t]}),
        (Journal.memory()),
    )
    store.put(ANA, "k", {"content": SECRET})
    guard = create_read_guard(store=store, namespace=ANA, receipts=journal)
    out = guard.invoke({"query": "My API key is 9f8e7d6c5b4a3f2e1d0c, why is it refused?"})
    assert "hunter2" not in out["memory_context"]
    (read,) = ReadLog(journal).list().reads
    assert "[API key]" in read.query
    assert "hunter2" not in read.model_dump_json()
