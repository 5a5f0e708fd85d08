"""Reports as tables: in a notebook, in a terminal, and as data frames."""

import sys
from datetime import UTC, datetime
from html.parser import HTMLParser
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter

from memguard import ConfigurationError, ReadReport, WriteReport
from memguard.errors import ErrorCode
from memguard.schema.decision import AdmissionDecision
from memguard.schema.failures import Failure
from memguard.schema.memory import CandidateMemory
from memguard.schema.read import Ledger, UnitVerdict
from memguard.schema.receipt import MethodReport, Receipt, ReceiptFactory
from memguard.schema.tables import MAX_ROWS, ReportTable
from memguard.schema.units import Unit
from memguard.write.report import Review

PLACE = ("memories", "ana")
SCRIPT = '<script>alert("x")</script><img src=x onerror=alert(1)>'
SECRET = "password: hunter2-Zx81!"


def candidate(text: str) -> CandidateMemory:
    return CandidateMemory(text=text, namespace=PLACE)


def receipt(text: str, *, admit: bool, evidence: Any = None) -> Receipt:
    decision = AdmissionDecision(
        outcome="admit" if admit else "quarantine",
        reason="supported" if admit else "inconclusive",
        explanation=f"because of {text}",
        method="m",
    )
    report = MethodReport(method="m", spec={}, decision=decision, evidence=evidence or {})
    return ReceiptFactory().create(candidate(text), decision, reports=(report,))


def write_report(**fields: Any) -> WriteReport:
    return WriteReport(run_id="r", namespace=PLACE, **fields)


def read_report(*verdicts: UnitVerdict, **fields: Any) -> ReadReport:
    return ReadReport(
        id="r1",
        at=datetime(2026, 1, 1, tzinfo=UTC),
        method="m",
        spec={},
        query=fields.pop("query", "?"),
        ledger=Ledger(scheme="units", verdicts=verdicts),
        **fields,
    )


class Markup(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def html_of(report: object) -> str:
    data, _ = DisplayFormatter().format(report)
    return data["text/html"]


OWN_TAGS = {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "p"}


@pytest.mark.parametrize(
    "report",
    [
        receipt(SCRIPT, admit=True),
        write_report(
            receipts=(receipt(SCRIPT, admit=False),),
            unjudged=(candidate(SCRIPT),),
            failures=(Failure(code="model-failed", message=SCRIPT, step="gate"),),
            notes=(SCRIPT,),
        ),
        read_report(
            UnitVerdict(
                unit=Unit(id="1", memory_id="m", text=SCRIPT),
                permission="CONTEXT",
                row="r",
                explanation=SCRIPT,
                position=1,
            ),
            query=SCRIPT,
            notes=(SCRIPT,),
        ),
    ],
    ids=["receipt", "write", "read"],
)
def test_the_text_of_a_memory_is_no_markup(report: Any) -> None:
    page = Markup(html_of(report))
    assert set(page.tags) <= OWN_TAGS
    assert SCRIPT in "".join(page.texts)
    # A notebook would read the text between two dollar signs as a formula.
    assert html_of(report).startswith('<div class="tex2jax_ignore mathjax_ignore">')


@given(st.lists(st.tuples(st.text(), st.none() | st.floats(allow_nan=False))), st.text())
def test_no_text_adds_a_tag_or_a_row(rows: list[tuple[str, float | None]], line: str) -> None:
    table = ReportTable(title=line, columns=("text", "score"), rows=tuple(rows), lines=(line,))
    page = Markup(table.to_html())
    assert set(page.tags) <= OWN_TAGS
    assert page.tags.count("td") == 2 * len(rows)
    assert len(table.to_text().split("\n")) == len(rows) + 3


def test_the_rows_of_a_write() -> None:
    report = write_report(
        receipts=(
            receipt("She rows.", admit=True, evidence={"score": 0.98}),
            receipt("She swims.", admit=False, evidence={"score": {"cmte": -0.5}}),
        ),
        unjudged=(candidate("She cycles."),),
        unread=("t1", "t2"),
    )
    table = report.to_table()
    assert table.title == "write to memories / ana: 1 stored, 1 quarantined"
    assert table.columns == ("text", "outcome", "reason", "score", "explanation")
    assert table.rows == (
        ("She rows.", "stored", "supported", 0.98, "because of She rows."),
        ("She swims.", "quarantined", "inconclusive", -0.5, "because of She swims."),
        ("She cycles.", "unjudged", "", None, ""),
    )
    assert table.lines == ("2 turns were not read",)
    assert write_report().to_table().title.endswith("nothing was decided")


@pytest.mark.parametrize(
    ("review", "outcome"),
    [
        ({"ruling": "approve", "outcome": "stored"}, "stored"),
        ({"ruling": "reject", "outcome": "discarded"}, "rejected"),
        ({"ruling": "respond", "outcome": "held"}, "quarantined"),
        ({"ruling": "edit", "outcome": "stored", "stored_as": "r2"}, "edited"),
    ],
)
def test_a_review_changes_the_outcome(review: dict[str, Any], outcome: str) -> None:
    waiting = receipt("She swims.", admit=False)
    ruling = Review(receipt_id=waiting.id, actor="ana", **review)
    (row,) = write_report(receipts=(waiting,), reviews=(ruling,)).to_table().rows
    assert row[1:3] == (outcome, f"{review['ruling']} by ana")


def test_the_rows_of_a_read() -> None:
    unit = Unit(id="1", memory_id="m", text="She rows.", score=0.5)
    shared: dict[str, Any] = {"row": "r", "explanation": "useful"}
    report = read_report(
        UnitVerdict(unit=unit, permission="DENY", withheld="denied", row="stale"),
        UnitVerdict(unit=unit, permission="CONTEXT", withheld="max_units", **shared),
        UnitVerdict(unit=unit, permission="CONTEXT", position=1, **shared),
        flags=("recall_late",),
    )
    table = report.to_table()
    assert table.title == "read for '?': 1 admitted, 2 withheld"
    assert table.columns == ("text", "outcome", "permission", "reason", "score")
    assert table.rows == (
        ("She rows.", "admitted", "CONTEXT", "useful", 0.5),
        ("She rows.", "withheld", "DENY", "stale", 0.5),
        ("She rows.", "withheld", "CONTEXT", "max_units; useful", 0.5),
    )
    assert table.lines == ("recall_late",)


def test_a_secret_is_not_kept_in_a_notebook() -> None:
    unit = Unit(id="1", memory_id="m", text=SECRET)
    verdict = UnitVerdict(unit=unit, permission="CONTEXT", row="r", position=1)
    for report in (
        receipt(SECRET, admit=True),
        write_report(receipts=(receipt(SECRET, admit=True),), unjudged=(candidate(SECRET),)),
        read_report(verdict, query=SECRET),
    ):
        assert "hunter2" not in report.to_table().to_html()


def test_a_long_report_is_cut_and_says_so() -> None:
    rows = tuple((f"text {number} " + "x" * 1_000,) for number in range(MAX_ROWS + 5))
    table = ReportTable(title="t", columns=("text",), rows=rows)
    assert table.to_html().count("<td") == MAX_ROWS
    assert "5 more rows; `to_frame()` has all" in table.to_html()
    assert len(table.to_html()) < 500 * MAX_ROWS
    assert "5 more rows" in table.to_text()


def test_the_text_of_a_report_is_not_its_repr() -> None:
    report = write_report(receipts=(receipt("She rows.", admit=True),))
    data, _ = DisplayFormatter().format(report)
    assert data["text/plain"] == (
        "write to memories / ana: 1 stored\n"
        "text | outcome | reason | score | explanation\n"
        "She rows. | stored | supported |  | because of She rows."
    )


def test_without_pandas_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigurationError, match="pip install pandas") as refused:
        write_report().to_frame()
    assert refused.value.code == ErrorCode.FRAME_EXTRA


def test_pandas_gets_rows_and_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    def frame(rows: object, *, columns: object) -> tuple[object, object]:
        return rows, columns

    pandas = ModuleType("pandas")
    pandas.__dict__["DataFrame"] = frame
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    report = write_report(receipts=(receipt("She rows.", admit=True),))
    table = report.to_table()
    assert report.to_frame() == (list(table.rows), list(table.columns))


def test_a_data_frame_has_a_row_per_candidate() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = write_report(
        receipts=(receipt("She rows.", admit=True, evidence={"score": 0.98}),),
        unjudged=(candidate("She cycles."),),
    ).to_frame()
    assert list(frame["outcome"]) == ["stored", "unjudged"]
    assert list(frame["score"].isna()) == [False, True]
    assert write_report().to_frame().empty
