"""Admission by nearness alone: the paper's Gate, as far as the paper describes it.

No adjudication, one bit per memory (arXiv 2610.11188, sections 2.2 and 4.1). An adaptation, since
the gate that the paper re-implements is described by its inputs only.
"""

from collections.abc import Sequence

from memguard.methods.adjudication.tables import TableRow
from memguard.schema.base import is_blank
from memguard.schema.ledger import Ledger, UnitVerdict, Withheld
from memguard.schema.read import RecalledMemory, RelevanceGate
from memguard.schema.units import Unit

NEAR = TableRow(id="near", then="CONTEXT", why="near enough to the query")
FAR = TableRow(id="far", then="DENY", why="not near enough to the query")
UNRANKED = TableRow(id="not-ranked", then="DENY", why="its nearness to the query is not known")


def gate_by_relevance(memories: Sequence[RecalledMemory], *, spec: RelevanceGate) -> Ledger:
    """The verdicts on the memories: near enough or not, the nearest first.

    Args:
        memories: The recalled memories; one without a score is denied.
        spec: The threshold, and how many memories there is room for.
    """
    texts = [memory for memory in memories if not is_blank(memory.text)]
    ranked = sorted(texts, key=lambda memory: -(memory.score if memory.score is not None else -1.0))
    verdicts: list[UnitVerdict] = []
    count = 0
    for memory in ranked:
        row = _row(memory, theta=spec.theta)
        withheld: Withheld | None = None
        if row.then == "DENY":
            withheld = "denied"
        elif spec.max_units is not None and count >= spec.max_units:
            withheld = "max_units"
        else:
            count += 1
        verdicts.append(
            UnitVerdict(
                unit=whole_unit(memory),
                permission=row.then,
                row=row.id,
                explanation=row.why,
                withheld=withheld,
                position=count if withheld is None else None,
            )
        )
    return Ledger(scheme="relevance", verdicts=tuple(verdicts))


def whole_unit(memory: RecalledMemory) -> Unit:
    """The memory as one unit."""
    return Unit(
        id=f"{memory.id}.1",
        memory_id=memory.id,
        text=memory.text,
        start=0,
        end=len(memory.text),
        said_at=memory.said_at,
        score=memory.score,
        superseded=memory.superseded,
    )


def _row(memory: RecalledMemory, *, theta: float) -> TableRow:
    # Without a score nothing is known of its nearness, so it fails closed.
    if memory.score is None:
        return UNRANKED
    return NEAR if memory.score >= theta else FAR
