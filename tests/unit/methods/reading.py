"""Answers of a scripted adjudicator, and keys of the tables as such answers."""

from collections.abc import Mapping
from itertools import product
from typing import Any

from memguard.methods.adjudication.tables import Table, TableRow

SITUATION = {"target": "user", "mode": "recommendation", "asks_view": False}
"""Something is recommended to the user."""

UNIT = {
    "kind": "fact",
    "subject": "user",
    "epistemic": "stated",
    "temporality": "current",
    "relevance": "direct",
}
"""A plain fact about the user, to the point."""

ENTRY = {
    "scope": "in",
    "subject": "match",
    "role": "fact",
    "epistemic": "stated",
    "temporal": "current",
    "utility": "needed",
}
"""The same of a whole entry."""


def unit_row(name: str, **changed: Any) -> dict[str, Any]:
    """A row of PS."""
    return {"unit": name, "reason": f"about {name}", **UNIT, **changed}


def entry_row(name: str, **changed: Any) -> dict[str, Any]:
    """A row of FC."""
    return {"unit": name, "reason": f"about {name}", **ENTRY, **changed}


def answer(*rows: Mapping[str, Any], **situation: Any) -> dict[str, Any]:
    """An adjudicator's answer."""
    return {"situation": {**SITUATION, **situation}, "units": list(rows)}


def cut(*memories: Mapping[str, str]) -> dict[str, Any]:
    """A decomposer's answer: per memory its units with their kinds."""
    return {
        "memories": [
            {"memory": f"m{number}", "units": [{"text": t, "kind": k} for t, k in units.items()]}
            for number, units in enumerate(memories, start=1)
        ]
    }


def key_of_row(table: Table, row: TableRow) -> dict[str, str]:
    """A key that the row decides."""
    choices = [row.when.get(column, values) for column, values in table.columns.items()]
    keys = (dict(zip(table.columns, values, strict=True)) for values in product(*choices))
    return next(key for key in keys if table.decide(key) is row)


def answer_of_key(key: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Any]]:
    """A key as the attributes and the situation of an answer."""
    situation = {
        "target": key["target"],
        "mode": key["mode"],
        "asks_view": key["asks_view"] == "yes",
        "lookup": key["lookup"],
    }
    rest = {name: value for name, value in key.items() if name not in situation}
    return rest, situation
