"""What a cascade saves: the first gate that does not admit a candidate spares it the rest. Pure."""

from collections.abc import Sequence

from memguard.guard.gates import Gate
from memguard.schema.receipt import Receipt


def cascade_notes(receipts: Sequence[Receipt], *, gates: Sequence[Gate]) -> tuple[str, ...]:
    """For each gate but the first, how many candidates never came to it and what that saved.

    Args:
        receipts: Of one run; those that no gate was asked about do not count.
        gates: In the order they are asked.
    """
    judged = [receipt for receipt in receipts if receipt.reports]
    notes: list[str] = []
    for place, gate in enumerate(gates):
        spared = sum(len(receipt.reports) <= place for receipt in judged)
        if spared and gate.least_calls:
            saved = spared * gate.least_calls
            notes.append(
                f"cascade: {spared} of {len(judged)} candidates ended before {gate.name}; "
                f"at least {saved} model calls saved"
            )
    return tuple(notes)
