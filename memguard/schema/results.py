"""What the graphs of the methods and the read guard return, for type checkers."""

from typing import TypedDict

from memguard.schema.decision import AdmissionDecision
from memguard.schema.read import Ledger, ReadReport, UnitVerdict
from memguard.schema.receipt import MethodReport, Receipt


class GateResult(TypedDict):
    """The result of a write-time method."""

    decision: AdmissionDecision
    """Whether the candidate is admitted."""
    report: MethodReport
    """The evidence for the decision."""
    receipt: Receipt
    """The whole record."""


class Admitted(TypedDict):
    """What a read lets into the prompt, and what it leaves out."""

    memory_context: str
    """The section for the prompt; empty for nothing."""
    admitted: tuple[UnitVerdict, ...]
    """The units in it, in their order."""
    withheld: tuple[UnitVerdict, ...]
    """The units left out, with the reason."""


class AdmissionResults(Admitted):
    """The result of a read-time method."""

    ledger: Ledger
    """Every verdict."""
    report: ReadReport
    """The receipt of the read."""


class ReadResult(Admitted):
    """The result of the read guard."""

    read: ReadReport
    """The receipt of the read."""
