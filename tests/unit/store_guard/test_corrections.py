"""Corrections through a guarded store, whose caller keys and writes the items."""

from collections.abc import Callable
from typing import Any

from memguard import guard_store, use_source
from memguard.journal.journal import Journal
from memguard.schema.memory import Conversation, Turn, lifecycle_of
from memguard.testing import ScriptedChatModel
from memguard.testing.replies import relations
from tests.unit.methods.reconciling import ANA, JUNE, MAY, indexed_store

PORTO, LISBON = "I live in Porto.", "I live in Lisbon."


def always(relation: str) -> Callable[[str, str], str]:
    def relate(text: str, memory: str) -> str:
        del text, memory
        return relation

    return relate


def guarded(relate: Any, **settings: Any) -> Any:
    model = ScriptedChatModel(rules=[("<new_memory>", relations(relate))])
    return guard_store(
        indexed_store(),
        model=model,
        gates=[],
        needs_source=False,
        receipts=Journal.memory(),
        reconcile=True,
        **settings,
    )


def put(store: Any, key: str, text: str, at: Any) -> None:
    turn = Turn(id="t1", role="user", content=text, at=at)
    with use_source(Conversation(turns=(turn,), id=f"talk {at}")):
        store.put(ANA, key, {"content": text}, index=["content"])


def test_a_correction_marks_the_item_that_it_replaces() -> None:
    store = guarded({PORTO: "supersedes"})
    put(store, "a", PORTO, MAY)
    put(store, "b", LISBON, JUNE)
    old, new = store.get(ANA, "a"), store.get(ANA, "b")
    assert new.value == {"content": LISBON}
    assert lifecycle_of(old.value).superseded_by == "b"
    assert old.value["content"] == PORTO


def test_without_it_nothing_is_marked() -> None:
    store: Any = guard_store(
        indexed_store(), gates=[], needs_source=False, receipts=Journal.memory()
    )
    put(store, "a", PORTO, MAY)
    put(store, "b", LISBON, JUNE)
    assert store.get(ANA, "a").value == {"content": PORTO}


def test_an_item_that_is_written_over_replaces_nothing_else() -> None:
    store = guarded(always("supersedes"))
    put(store, "a", PORTO, MAY)
    put(store, "a", LISBON, JUNE)
    assert store.get(ANA, "a").value == {"content": LISBON}


def test_a_repeat_in_other_words_is_not_written() -> None:
    store = guarded(always("duplicate"))
    put(store, "a", PORTO, MAY)
    put(store, "b", "I live in Porto, as I said.", JUNE)
    assert store.get(ANA, "b") is None


def test_an_older_value_waits_for_a_person() -> None:
    store = guarded(always("supersedes"))
    put(store, "a", LISBON, JUNE)
    put(store, "b", PORTO, MAY)
    assert store.get(ANA, "b") is None
    assert store.get(ANA, "a").value == {"content": LISBON}
    (receipt,) = store.quarantine.list().receipts
    assert receipt.decision.reason == "conflict"
