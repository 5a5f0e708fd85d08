"""The receipts of a person's changes: what they mark, and what they leave as it is. Pure."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import Item

from memguard.memories.changes import confirm_receipt, delete_receipt, edit_receipt
from memguard.schema.memory import Lifecycle, lifecycle_of, with_lifecycle
from memguard.schema.receipt import ReceiptFactory

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MOMENTS = st.none() | st.integers(-(10**6), 10**6).map(lambda n: NOON + timedelta(minutes=n))
LIFECYCLES = st.builds(
    Lifecycle,
    event_at=MOMENTS,
    detail_of=st.sampled_from(["", "k3"]),
    conflicts_with=st.lists(st.sampled_from(["a", "b"]), max_size=2).map(tuple),
    confirmed_at=MOMENTS,
    confirmed_by=st.lists(st.sampled_from(["c:1", "c:2"]), max_size=2).map(tuple),
)
ORIGINS: list[dict[str, Any]] = [
    {"content": "Tea."},
    {"content": "Tea.", "memguard": {"candidate_id": "c", "receipt_id": "r", "turn_ids": ["t"]}},
]
FACTORY = ReceiptFactory(clock=lambda: NOON)


@st.composite
def items(draw: st.DrawFn) -> Item:
    value = with_lifecycle(draw(st.sampled_from(ORIGINS)), draw(LIFECYCLES))
    return Item(namespace=("m",), key="k1", value=value, created_at=NOON, updated_at=NOON)


def other_fields(lifecycle: Lifecycle, *names: str) -> dict[str, Any]:
    return lifecycle.model_dump(exclude=set(names))


@given(items())
def test_a_deletion_changes_the_mark_alone(item: Item) -> None:
    receipt = delete_receipt(item, actor="ana", reason="wrong", receipts=FACTORY)
    (change,) = receipt.changes
    assert (change.namespace, change.key) == (("m",), "k1")
    assert change.before == lifecycle_of(item.value)
    assert change.after.ended_as == "deleted"
    names = ("ended_as", "reason")
    assert other_fields(change.after, *names) == other_fields(change.before, *names)
    # The text is on the receipt, so that the deletion can be understood and undone.
    assert receipt.candidate.text == "Tea."
    assert receipt.outcome == "deleted"


@given(items())
def test_a_confirmation_never_lowers_the_time(item: Item) -> None:
    receipt = confirm_receipt("Tea.", item=item, actor="ana", said_at=NOON, receipts=FACTORY)
    (change,) = receipt.changes
    assert change.after.is_current
    assert change.after.confirmed_at is not None
    assert change.after.confirmed_at >= max(change.before.confirmed_at or NOON, NOON)
    assert change.after.confirmed_by[:-1] == change.before.confirmed_by
    names = ("confirmed_at", "confirmed_by")
    assert other_fields(change.after, *names) == other_fields(change.before, *names)


@given(items(), st.sampled_from(["", "moved"]))
def test_an_edit_marks_the_old_and_stores_the_new(item: Item, reason: str) -> None:
    receipt = edit_receipt(
        "Coffee.",
        old=item,
        key="k2",
        existing=None,
        actor="ana",
        reason=reason,
        at=NOON,
        receipts=FACTORY,
    )
    (change,) = receipt.changes
    assert (receipt.outcome, receipt.record_key) == ("stored", "k2")
    assert (change.key, change.after.superseded_by, change.after.ended_as) == ("k1", "k2", "edited")
    assert change.after.reason
    assert receipt.candidate.said_by == "user"
    names = ("superseded_by", "ended_as", "reason")
    assert other_fields(change.after, *names) == other_fields(change.before, *names)
