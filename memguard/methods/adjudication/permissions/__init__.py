"""The tables of FC and PS: from attributes and situation to a permission, as data.

A method has four tables: its rules, and three floors. Two protect safety constraints and current
preferences from being denied for doubt. The third, for an adjudicator that is not a model, admits
whatever nothing speaks against.
"""

from memguard.methods.adjudication.permissions.entries import (
    FC_COLUMNS,
    FC_OPEN,
    FC_PERSONALIZATION,
    FC_SAFETY,
    FC_TABLE,
)
from memguard.methods.adjudication.permissions.units import (
    PS_COLUMNS,
    PS_OPEN,
    PS_PERSONALIZATION,
    PS_SAFETY,
    PS_TABLE,
)

__all__ = [
    "FC_COLUMNS",
    "FC_OPEN",
    "FC_PERSONALIZATION",
    "FC_SAFETY",
    "FC_TABLE",
    "PS_COLUMNS",
    "PS_OPEN",
    "PS_PERSONALIZATION",
    "PS_SAFETY",
    "PS_TABLE",
]
