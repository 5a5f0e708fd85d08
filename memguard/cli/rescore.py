"""`memguard rescore ID`: decide a ConMem case again under other weights, without a model."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memguard.cli.opening import open_journal
from memguard.cli.options import JsonOption, ReceiptArgument, StoreOption
from memguard.cli.output import console, print_json, print_table
from memguard.errors import ErrorCode, InvalidInputError

if TYPE_CHECKING:
    from memguard.methods.conmem.config import ConMem
    from memguard.methods.conmem.log import Cmte, CounterfactualLog
    from memguard.schema.decision import AdmissionDecision
    from memguard.schema.receipt import MethodReport

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
    numbers = _numbers(weight, risk_penalty=risk_penalty)
    spec = _spec(report, numbers=numbers, without=without, zero=zero)
    specs = [spec]
    if grid:
        specs = [spec.model_copy(update={"weights": point}) for point in points(spec.weights)]
    rows = [(variant, *_decide(report, spec=variant)) for variant in specs]
    if as_json:
        print_json([_as_json(*row) for row in rows])
        return
    if grid:
        _print_grid(rows)
        return
    _print_one(report, *rows[0])


def _report_of(receipt_id: str, *, store: str) -> "MethodReport":
    from memguard.journal.receipts import ReceiptLog

    with open_journal(store) as journal:
        receipt = ReceiptLog(journal).get(receipt_id)
    reports = [report for report in receipt.reports if report.method == "conmem"]
    if not reports:
        methods = ", ".join(report.method for report in receipt.reports) or "no gate"
        msg = f"receipt {receipt.id!r} has no report of ConMem, but of {methods}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    return reports[0]


def _numbers(weight: list[str] | None, *, risk_penalty: float | None) -> dict[str, Any]:
    from memguard.methods.conmem.config import Weights

    numbers: dict[str, Any] = {}
    for option in weight or ():
        name, equals, number = option.partition("=")
        if not equals or name not in Weights.model_fields:
            names = ", ".join(Weights.model_fields)
            msg = f"--weight takes NAME=NUMBER, got {option!r}; names are {names}"
            raise InvalidInputError(msg, code=ErrorCode.SPEC_INVALID)
        # Left as text: the model validates it, and its message names the weight.
        numbers[name] = number
    if risk_penalty is not None:
        numbers["risk_risk"] = risk_penalty
    return numbers


def _spec(
    report: "MethodReport", *, numbers: dict[str, Any], without: str | None, zero: str | None
) -> "ConMem":
    from pydantic import ValidationError

    from memguard.llm.parsing import explain
    from memguard.methods.conmem.config import ConMem

    # From the settings of that run, so that only what is named on the line changes.
    stored: dict[str, Any] = ConMem.model_validate(report.spec).model_dump()
    stored["weights"] |= numbers
    if without == "quality":
        stored["quality_judge"] = False
    if without == "auditor":
        stored["auditor"] = False
    if zero is not None:
        stored["zero"] = zero
    try:
        return ConMem.model_validate(stored)
    except ValidationError as error:
        msg = f"these settings are not valid: {explain(error)}"
        raise InvalidInputError(msg, code=ErrorCode.SPEC_INVALID) from None


def _log(report: "MethodReport") -> "CounterfactualLog":
    from memguard.methods.conmem.log import CounterfactualLog

    return CounterfactualLog.model_validate(report.evidence)


def _decide(report: "MethodReport", *, spec: "ConMem") -> "tuple[Cmte, AdmissionDecision | None]":
    from memguard.methods.conmem.rules import redecide

    try:
        return redecide(_log(report), spec=spec)
    except ValueError as error:
        raise InvalidInputError(str(error), code=ErrorCode.INPUT_INVALID) from None


def _as_json(spec: "ConMem", score: "Cmte", decision: "AdmissionDecision | None") -> dict[str, Any]:
    return {
        "weights": spec.weights.model_dump(),
        "score": score.model_dump(mode="json"),
        "decision": None if decision is None else decision.model_dump(mode="json"),
    }


UNDECIDED = "undecided: a tie now, and the receipt has no verdict of the tie-break judge"


def _print_one(
    report: "MethodReport", spec: "ConMem", score: "Cmte", decision: "AdmissionDecision | None"
) -> None:
    from memguard.methods.conmem.rules import explain_score

    out = console()
    out.print(f"was: {report.decision.outcome}: {report.decision.explanation}")
    outcome = UNDECIDED if decision is None else decision.outcome
    explanation = explain_score(score) if decision is None else decision.explanation
    out.print(f"now: {outcome}: {explanation}")
    out.print("  " + ", ".join(f"{name} {n:g}" for name, n in spec.weights.model_dump().items()))


def _print_grid(rows: "list[tuple[ConMem, Cmte, AdmissionDecision | None]]") -> None:
    from memguard.methods.conmem.rules import GRID

    print_table(
        "the paper's grid, from stored evidence",
        (*GRID, "sum", "decision"),
        [
            (
                *(f"{getattr(spec.weights, name):g}" for name in GRID),
                f"{score.total:+.2f}",
                UNDECIDED if decision is None else decision.outcome,
            )
            for spec, score, decision in rows
        ],
    )
