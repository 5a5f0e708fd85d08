"""The rows outside the tables: for records, instructions, evidence and conflicts."""

from dataclasses import replace

from memguard.methods.adjudication.tables import TableRow
from memguard.schema.units import Instruction

SUPERSEDED_RECORD = TableRow(
    "superseded-record", "DENY", "the store has a later record in its place"
)
INSTRUCTIONS: dict[Instruction, TableRow] = {
    "override": TableRow(
        "instruction-override", "DENY", "tells the assistant to set its rules or its role aside"
    ),
    "concealment": TableRow(
        "instruction-concealment", "DENY", "tells the assistant to hide something from the user"
    ),
    "disclosure": TableRow(
        "instruction-disclosure",
        "DENY",
        "tells the assistant to show, send or change something sensitive",
    ),
    "trigger": TableRow(
        "instruction-trigger", "DENY", "tells the assistant what to do when somebody asks"
    ),
    "command": TableRow("instruction-command", "DENY", "a standing rule for the assistant"),
}
"""The rows of units that instruct the assistant. They come before everything else, so no verdict,
safety word or missing answer lifts them."""

OTHER_TOPIC = TableRow(
    "local-first-other-topic",
    "DENY",
    "clearly of another topic, so it was left out before the model was asked",
)
EVIDENCE = TableRow(
    "evidence-conflict", "DENY", "contradicted by the evidence given with the query"
)
EVIDENCE_SAFETY = replace(EVIDENCE, id="evidence-conflict-safety", then="CONTEXT")
EVIDENCE_CONSTRAINT = TableRow(
    "evidence-conflict-constraint",
    "CONTEXT",
    "evidence speaks against it, but evidence alone lifts no constraint",
)
NOT_JUDGED: dict[str, TableRow] = {
    "safety": TableRow(
        "not-judged-safety",
        "CONTEXT",
        "not judged; its words are those of a safety constraint, so it is shown",
    ),
    "preference": TableRow(
        "not-judged-preference",
        "CONTEXT",
        "not judged; its words are those of a current preference, so it is shown",
    ),
    "other": TableRow("not-judged", "DENY", "not judged"),
}
"""The rows of units without a usable verdict: two kinds fail open, the rest fails closed."""

CONFLICT_LOST = TableRow(
    "conflict-lost", "DENY", "a later unit, at least as well grounded, contradicts it"
)
CONFLICT_DOUBTFUL = TableRow(
    "conflict-doubtful",
    "CONTEXT_UNCERTAIN",
    "it contradicts a unit that is better grounded, or that the user said",
)
CONFLICT_OPEN = TableRow(
    "conflict-open",
    "CONTEXT_UNCERTAIN",
    "another unit contradicts it, and their times do not tell which is current",
)
CONFLICT_SAFETY = TableRow(
    "conflict-safety", "CONTEXT", "another unit contradicts it; a safety constraint is still shown"
)
CONFLICT_LOOKED_UP = TableRow(
    "conflict-looked-up",
    "CONTEXT_UNCERTAIN",
    "another unit says otherwise, and the request asks what was told: both are shown",
)
CONFLICT_MARKED = TableRow(
    "conflict-marked",
    "CONTEXT_UNCERTAIN",
    "the store marks another memory of this read as contradicting it",
)
