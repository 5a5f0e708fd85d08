"""Lifecycles within the items of a store."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from memguard.schema.memory import (
    Lifecycle,
    MemoryRecord,
    Provenance,
    lifecycle_of,
    record_key,
    with_lifecycle,
    without_lifecycle,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MOMENTS = st.none() | st.datetimes(timezones=st.just(UTC))
LIFECYCLES = st.builds(
    Lifecycle,
    superseded_by=st.sampled_from(["", "k1", "k2"]),
    ended_as=st.sampled_from([None, "superseded", "edited", "deleted", "undone"]),
    valid_until=MOMENTS,
    reason=st.text(max_size=8),
    event_at=MOMENTS,
    detail_of=st.sampled_from(["", "k3"]),
    conflicts_with=st.lists(st.sampled_from(["a", "b"]), max_size=2).map(tuple),
    confirmed_at=MOMENTS,
    confirmed_by=st.lists(st.sampled_from(["c:1", "c:2"]), max_size=2).map(tuple),
)
VALUES = st.sampled_from(
    [
        {"content": "Tea.", "memguard": {"candidate_id": "c", "receipt_id": "r"}},
        {"content": "Tea."},
        {"text": "Tea.", "rank": 3, "memguard": {"note": "of the caller"}},
        {"text": "Tea.", "memguard": "of the caller"},
    ]
)


@given(value=VALUES, lifecycle=LIFECYCLES)
def test_a_lifecycle_is_read_as_it_was_written(value, lifecycle):
    if not isinstance(value.get("memguard", {}), dict):
        return
    written = with_lifecycle(value, lifecycle)
    assert lifecycle_of(written) == lifecycle
    assert without_lifecycle(written) == value
    assert with_lifecycle(written, Lifecycle()) == value


@given(lifecycle=LIFECYCLES)
def test_a_record_begins_with_its_lifecycle(lifecycle):
    origin = Provenance(candidate_id="c", receipt_id="r")
    values: tuple[dict[str, JsonValue] | None, ...] = (None, {"text": "Tea.", "rank": 3})
    for value in values:
        record = MemoryRecord(
            namespace=("m",), key="k", text="Tea.", provenance=origin, value=value
        ).model_copy(update={"lifecycle": lifecycle})
        assert lifecycle_of(record.to_value()) == lifecycle
        assert MemoryRecord.model_validate_json(record.model_dump_json()) == record


@pytest.mark.parametrize(
    "fields",
    [
        None,
        "x",
        3,
        {},
        {"superseded_by": ["?"], "valid_until": "soon", "conflicts_with": 3},
        {"ended_as": "eaten"},
    ],
)
def test_foreign_values_are_current(fields):
    assert lifecycle_of({"content": "Tea.", "memguard": fields}) == Lifecycle()


def test_what_can_be_read_counts():
    fields = {"superseded_by": "k", "ended_as": "eaten", "valid_until": NOON.isoformat()}
    assert lifecycle_of({"memguard": fields}) == Lifecycle(superseded_by="k", valid_until=NOON)


def test_generations_have_their_own_keys():
    keys = [record_key("I live in Porto.", generation=n) for n in range(20)]
    assert len(set(keys)) == 20
    assert keys[0] == record_key("I live in  Porto")
    assert record_key("I live in Porto1") not in keys
