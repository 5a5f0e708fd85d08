"""A process that appends receipts to a journal, and imports little, so that it starts fast.

python journal_append.py PATH NAME     50 receipts
"""

import sys
from datetime import UTC, datetime

from memguard.journal.journal import Journal
from memguard.journal.receipts import ReceiptLog
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory
from memguard.schema.receipt import Receipt

ANA = ("memories", "ana")


def receipt(name: str, *, held: bool = False) -> Receipt:
    return Receipt(
        id=name,
        at=datetime.now(UTC),
        run_id="run",
        candidate=CandidateMemory(text=f"Ana said {name}.", namespace=ANA, turn_ids=(name,)),
        namespace=ANA,
        decision=AdmissionDecision(
            outcome="quarantine" if held else "admit",
            reason="low_support" if held else "supported",
            explanation="Because.",
        ),
    )


def append(path: str, name: str) -> None:
    with Journal.open(path) as journal:
        log = ReceiptLog(journal)
        for n in range(50):
            log.append(receipt(f"{name}-{n}"))


if __name__ == "__main__":
    append(*sys.argv[1:])
