"""What a cascade saves: the first gate that does not admit a candidate spares it the rest. Pure."""

from collections.abc import Sequence

from memguard.guard.gates import Gate
from memguard.schema.receipt import Receipt


def cascade_notes(receipts: Sequence[Receipt], *, gates: Sequence[Gate]) -> tuple[str, ...]:
    """For each gate but the first: how many candidates never came to it, and what that saved.

    Args:
        receipts: Of one run; those of candidates that no gate judged do not count.
        gates: In the order in which they are run.
    """
    judged = [receipt for receipt in receipts if receipt.reports]
    notes: list[str] = []
    for position, gate in enumerate(gates):
        spared = sum(len(receipt.reports) <= position for receipt in judged)
        if spared and gate.min_calls:
            notes.append(
                f"cascade: {spared} of {len(judged)} candidates ended before {gate.name}; "
                f"at least {spared * gate.min_calls} model calls saved"
            )
    return tuple(notes)
