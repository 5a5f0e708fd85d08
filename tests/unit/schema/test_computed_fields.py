"""The JSON of a report has what the pages tell to read, and the report is read back from it."""

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from memguard import ReadReport, WriteReport
from memguard.schema.read import Ledger, UnitVerdict
from memguard.schema.units import Unit


def read_report() -> ReadReport:
    shown = UnitVerdict(
        unit=Unit(id="1", memory_id="m", text="a"), permission="CONTEXT", row="r", position=1
    )
    denied = UnitVerdict(
        unit=Unit(id="2", memory_id="m", text="b"), permission="DENY", row="r", withheld="denied"
    )
    return ReadReport(
        id="r1",
        at=datetime(2026, 1, 1, tzinfo=UTC),
        method="m",
        spec={},
        query="?",
        ledger=Ledger(scheme="units", verdicts=(shown, denied)),
        flags=("recall_late",),
    )


def test_a_read_report() -> None:
    read = read_report()
    body = read.model_dump(mode="json")
    assert [verdict["unit"]["text"] for verdict in body["admitted"]] == ["a"]
    assert [verdict["unit"]["text"] for verdict in body["withheld"]] == ["b"]
    assert body["degraded"] is True
    assert ReadReport.model_validate(body) == read
    assert ReadReport.model_validate_json(read.model_dump_json()) == read
    old = read.model_dump_json(exclude_computed_fields=True)
    assert "admitted" not in old
    assert ReadReport.model_validate_json(old) == read


def test_a_write_report() -> None:
    writes = WriteReport(run_id="r", namespace=("memories",))
    body = writes.model_dump(mode="json")
    assert body["counts"] == writes.counts
    assert WriteReport.model_validate(body) == writes


def test_other_unknown_fields_are_still_refused() -> None:
    with pytest.raises(ValidationError, match="mood"):
        WriteReport.model_validate({"run_id": "r", "namespace": [], "mood": "new"})


def test_the_schema_of_the_output_shows_them() -> None:
    schema = WriteReport.model_json_schema(mode="serialization")
    assert "counts" in schema["properties"]
