"""The rows for words that are not the user's, and which of them demand something. Pure.

Text of a tool, a document or the assistant informs at most. It never constrains, never supersedes
and never wins a conflict, and what it demands is withheld.
"""

from memguard.local.demands import demands_action, waives_control
from memguard.methods.adjudication.tables import TableRow
from memguard.schema.memory import SaidBy
from memguard.schema.read import Row
from memguard.schema.units import Unit

ANOTHER_AUTHOR = TableRow(
    "another-author", "CONTEXT_UNCERTAIN", "the words of another author, not of the user"
)
"""The widest that a unit in another author's words gets."""
ANOTHER_DEMAND = TableRow("another-demand", "DENY", "another author demands that something is done")
CONFLICT_AUTHOR = TableRow(
    "conflict-author", "CONTEXT_UNCERTAIN", "the words of another author contradict the user's"
)
OTHER_AUTHORS: frozenset[SaidBy] = frozenset({"tool", "document", "assistant"})
"""Who said a unit in which no word is the user's."""


def is_of_another(unit: Unit, finding: Row) -> bool:
    """Whether the words of a unit are another author's.

    The store's word counts; where it does not know, the adjudicator's.
    """
    return unit.said_by in OTHER_AUTHORS or (
        unit.said_by == "unknown" and finding.author == "other"
    )


def is_demand(unit: Unit) -> bool:
    """Whether a unit demands something that the user did not ask for."""
    if unit.said_by in OTHER_AUTHORS:
        return demands_action(unit.text)
    # Nobody says so of oneself, so the words are not the user's, whatever the store says.
    return waives_control(unit.text)
