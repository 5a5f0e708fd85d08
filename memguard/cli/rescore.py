"""`memguard rescore ID`: decide a ConMem case again under other weights, without a model."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memguard.cli.opening import open_journal
from memguard.cli.options import JsonOption, ReceiptArgument, StoreOption
from memguard.cli.output import console, print_json, print_table
from memguard.errors import ErrorCode, InvalidInputError

if TYPE_CHECKING:
    from memguard.methods.conmem.config import ConMem
    from memguard.methods.conmem.log import Cmte
    from memguard.schema.decision import AdmissionDecision
    from memguard.schema.receipt import MethodReport

    Row = tuple[ConMem, Cmte, AdmissionDecision | None]

UNDECIDED = "undecided: a tie now, and the receipt has no verdict of the tie-break judge"

PenaltyOption = Annotated[
    float | None, typer.Option("--risk-penalty", help="Cost of a risk on the risk probe.")
]
WeightOption = Annotated[
    list[str] | None,
    typer.Option("--weight", help="NAME=NUMBER of any of the seven weights; repeat it for more."),
]


def rescore(
    receipt_id: ReceiptArgument,
    store: StoreOption = "memory",
    risk_penalty: PenaltyOption = None,
    weight: WeightOption = None,
    without: Annotated[
        Literal["quality", "auditor"] | None,
        typer.Option("--without", help="Decide without the judge's or the auditor's verdicts."),
    ] = None,
    zero: Annotated[
        Literal["tie_break", "admit", "reject"] | None,
        typer.Option("--zero", help="What an effect of zero leads to."),
    ] = None,
    grid: Annotated[bool, typer.Option("--grid", help="All 27 settings of the paper.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Decide a case of ConMem again from its receipt. Calls no model and changes nothing."""
    from memguard.methods.conmem.rules import grid as points

    report = _report_of(receipt_id, store=store)
    weights = _weights(weight, risk_penalty=risk_penalty)
    spec = _spec(report, weights=weights, without=without, zero=zero)
    specs = [spec]
    if grid:
        specs = [spec.model_copy(update={"weights": point}) for point in points(spec.weights)]
    rows = _decide(report, specs=specs)
    if as_json:
        bodies = [
            {"weights": variant.weights, "score": score, "decision": decision}
            for variant, score, decision in rows
        ]
        print_json(bodies)
    elif grid:
        _print_grid(rows)
    else:
        _print_case(report, *rows[0])


def _report_of(receipt_id: str, *, store: str) -> "MethodReport":
    from memguard.journal.receipts import ReceiptLog

    with open_journal(store) as journal:
        receipt = ReceiptLog(journal).get(receipt_id)
    reports = [report for report in receipt.reports if report.method == "conmem"]
    if not reports:
        methods = ", ".join(report.method for report in receipt.reports) or "no gate"
        msg = f"receipt {receipt.id!r} has no report of ConMem; its reports are of: {methods}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    return reports[0]


def _weights(options: list[str] | None, *, risk_penalty: float | None) -> dict[str, Any]:
    """The weights that the options change."""
    from memguard.methods.conmem.config import Weights

    weights: dict[str, Any] = {}
    for option in options or ():
        name, equals, number = option.partition("=")
        if not equals or name not in Weights.model_fields:
            names = ", ".join(Weights.model_fields)
            msg = f"--weight takes NAME=NUMBER, got {option!r}; names are {names}"
            raise InvalidInputError(msg, code=ErrorCode.SPEC_INVALID)
        # Not converted here: the model validates the text, and its message names the weight.
        weights[name] = number
    if risk_penalty is not None:
        weights["risk_risk"] = risk_penalty
    return weights


def _spec(
    report: "MethodReport", *, weights: dict[str, Any], without: str | None, zero: str | None
) -> "ConMem":
    """The settings of the run, with what the options change."""
    from pydantic import ValidationError

    from memguard.llm.parsing import explain
    from memguard.methods.conmem.config import ConMem

    # From the stored settings and not from a preset, so that only what an option names changes.
    settings: dict[str, Any] = ConMem.model_validate(report.spec).model_dump()
    settings["weights"] |= weights
    if without is not None:
        settings[{"quality": "quality_judge", "auditor": "auditor"}[without]] = False
    if zero is not None:
        settings["zero"] = zero
    try:
        return ConMem.model_validate(settings)
    except ValidationError as error:
        msg = f"these settings are not valid: {explain(error)}"
        raise InvalidInputError(msg, code=ErrorCode.SPEC_INVALID) from None


def _decide(report: "MethodReport", *, specs: "list[ConMem]") -> "list[Row]":
    from memguard.methods.conmem.log import CounterfactualLog
    from memguard.methods.conmem.rules import redecide

    log = CounterfactualLog.model_validate(report.evidence)
    try:
        return [(spec, *redecide(log, spec=spec)) for spec in specs]
    except ValueError as error:
        raise InvalidInputError(str(error), code=ErrorCode.INPUT_INVALID) from None


def _print_case(
    report: "MethodReport", spec: "ConMem", score: "Cmte", decision: "AdmissionDecision | None"
) -> None:
    from memguard.methods.conmem.rules import explain_score

    out = console()
    out.print(f"was: {report.decision.outcome}: {report.decision.explanation}")
    outcome = UNDECIDED if decision is None else decision.outcome
    explanation = explain_score(score) if decision is None else decision.explanation
    out.print(f"now: {outcome}: {explanation}")
    out.print("  " + ", ".join(f"{name} {n:g}" for name, n in spec.weights.model_dump().items()))


def _print_grid(rows: "list[Row]") -> None:
    from memguard.methods.conmem.rules import GRID

    cells = [
        (
            *(f"{getattr(spec.weights, name):g}" for name in GRID),
            f"{score.total:+.2f}",
            UNDECIDED if decision is None else decision.outcome,
        )
        for spec, score, decision in rows
    ]
    print_table("the paper's grid, from stored evidence", (*GRID, "sum", "decision"), cells)
