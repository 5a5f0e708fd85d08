"""The form of a model's answer, and how it is read row by row. Pure.

The schema names the closed sets of values, but a server may ignore a schema, so the reader accepts
any answer. Case, a hyphen for an underscore and extra keys are tolerated. A value outside its set
makes its row inconclusive and affects no other row; it is never read as the nearest value.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema, create_model

from memguard.methods.adjudication.permissions import FC_COLUMNS, PS_COLUMNS
from memguard.prompts import Prompt
from memguard.schema.decision import Inconclusive
from memguard.schema.read import Author, Conflict, Lookup, Mode, Row, Situation, Target
from memguard.schema.units import (
    Epistemic,
    FactorAttributes,
    FactorRole,
    Kind,
    Relevance,
    Scheme,
    Scope,
    Subject,
    SubjectMatch,
    Temporal,
    UnitAttributes,
    Utility,
)

_ID_KEYS = ("unit", "unit_id", "id")
# Models write `[u1]`, `"u1"` or `u1.` for the name that the prompt shows as `[u1]`.
_ID_MARKUP = " \t\n\"'`[](){}#."
# A server that ignores the schema may send anything; these bound what it adds to a receipt.
_MAX_REASON = 300
_MAX_QUOTED = 80
_MAX_NOTES = 20


class _SituationForm(BaseModel):
    target: Target
    mode: Mode
    asks_view: bool
    lookup: Lookup


class _UnitForm(BaseModel):
    unit: str
    reason: str
    kind: Kind
    subject: Subject
    author: Author
    epistemic: Epistemic
    temporality: Temporal
    relevance: Relevance
    evidence_conflict: bool
    conflicts_with: list[str]
    influence: float


class _FactorForm(BaseModel):
    unit: str
    reason: str
    scope: Scope
    allowed_content: str
    subject: SubjectMatch
    role: FactorRole
    safety: bool
    author: Author
    epistemic: Epistemic
    temporal: Temporal
    utility: Utility
    evidence_conflict: bool
    conflicts_with: list[str]
    influence: float


def _as_rows(value: Any) -> list[dict[str, Any]]:
    # An object by unit name is accepted where the schema asks for a list: what it says is clear.
    if isinstance(value, Mapping):
        value = [{"unit": name, **row} for name, row in value.items() if isinstance(row, Mapping)]
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [dict(row) if isinstance(row, Mapping) else {"broken": str(row)} for row in value]


def _as_object(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


_Rows = Annotated[list[dict[str, Any]], BeforeValidator(_as_rows)]


# Rows stay dictionaries here: a typed row would make one wrong value reject the whole answer.
class RowsAnswer(BaseModel):
    """An answer whose rows are not read yet."""

    model_config = ConfigDict(extra="ignore")

    situation: Annotated[dict[str, Any], BeforeValidator(_as_object)] = {}
    units: _Rows


_ROW_FORMS: dict[Scheme, type[BaseModel]] = {"units": _UnitForm, "factors": _FactorForm}


@cache
def answer_form(scheme: Scheme, unasked: frozenset[str] = frozenset()) -> type[RowsAnswer]:
    """The form of an answer, without some of its fields.

    Args:
        scheme: Which attributes a row has.
        unasked: Fields that are not asked for; others may not be named.
    """
    situation = WithJsonSchema(_schema_without(_SituationForm, unasked))
    row = _schema_without(_ROW_FORMS[scheme], unasked)
    rows = WithJsonSchema({"type": "array", "items": row})
    return create_model(
        "UnitsAnswer" if scheme == "units" else "FactorsAnswer",
        __base__=RowsAnswer,
        situation=(Annotated[dict[str, Any], BeforeValidator(_as_object), situation], {}),
        units=(Annotated[_Rows, rows], ...),
    )


def _schema_without(form: type[BaseModel], fields: frozenset[str]) -> dict[str, Any]:
    schema = form.model_json_schema()
    return {
        **schema,
        "properties": {k: v for k, v in schema["properties"].items() if k not in fields},
        "required": [name for name in schema["required"] if name not in fields],
    }


def without_fields(prompt: Prompt, fields: frozenset[str]) -> Prompt:
    """The prompt without some fields: without the line that defines each, and its value in JSON.

    A prompt whose definitions do not have the form `- name: ...` stays as it is.
    """
    system = prompt.system
    for name in sorted(fields):
        system = re.sub(rf"^- {name}: .*\n", "", system, flags=re.MULTILINE)
        system = re.sub(rf', "{name}": (?:"[^"]*"|\[[^\]]*\]|[\w.]+)', "", system)
    return replace(prompt, system=system)


@dataclass(frozen=True, kw_only=True)
class AnswerReading:
    """An answer's verdicts on the units of its call."""

    situation: Situation | Inconclusive
    rows: tuple[Row, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def judged(self) -> frozenset[str]:
        """The units with a usable row."""
        usable = (row for row in self.rows if not isinstance(row.attributes, Inconclusive))
        return frozenset(row.unit_id for row in usable)

    @classmethod
    def lost(cls, unit_ids: Iterable[str], *, why: Inconclusive) -> "AnswerReading":
        """The reading of an unusable answer: no verdict on any unit."""
        rows = tuple(Row(unit_id=unit_id, attributes=why) for unit_id in unit_ids)
        return cls(situation=why, rows=rows)


def read_answer_rows(
    situation: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    *,
    scheme: Scheme,
    requested: Mapping[str, str],
    names: Mapping[str, str],
) -> AnswerReading:
    """Read every row of an answer.

    Args:
        situation: The situation in the answer.
        rows: The rows of the answer.
        scheme: Which attributes they have.
        requested: Unit ids by their short names in the prompt, for the units of this call.
        names: The same for all units of the read; a conflict may name a unit of another part.

    Returns:
        The rows of requested units; notes name the other rows.
    """
    unit_rows: list[Row] = []
    conflicts: list[Conflict] = []
    notes: list[str] = []
    for entry in rows:
        name = _name_of(entry)
        if name not in requested:
            # An invented name affects no unit, so it is noted and not an error.
            label = name or str(entry.get("broken", ""))[:_MAX_QUOTED]
            notes.append(f"a row for {label!r}, which is not one of the units; left out")
            continue
        row = _row(entry, unit_id=requested[name], scheme=scheme)
        unit_rows.append(row)
        for other in _ids(entry.get("conflicts_with")):
            if other not in names:
                notes.append(f"{name} is said to conflict with {other!r}, which is not a unit")
            # A unit that is named as conflicting with itself is ignored.
            elif names[other] != row.unit_id:
                conflicts.append(Conflict(first=row.unit_id, second=names[other]))
    return AnswerReading(
        situation=read_situation(situation),
        rows=tuple(unit_rows),
        conflicts=tuple(dict.fromkeys(conflicts)),
        notes=_first_notes(notes),
    )


def _first_notes(notes: Sequence[str]) -> tuple[str, ...]:
    """The notes of one answer, so few that they fit on a receipt."""
    distinct = tuple(dict.fromkeys(notes))
    more = len(distinct) - _MAX_NOTES
    return distinct if more <= 0 else (*distinct[:_MAX_NOTES], f"and {more} more such notes")


def read_situation(entry: Mapping[str, Any]) -> Situation | Inconclusive:
    """The situation, or why it could not be read."""
    target = _choice(entry.get("target"), get_args(Target))
    mode = _choice(entry.get("mode"), get_args(Mode))
    if target is None or mode is None:
        return Inconclusive(
            reason="off_menu" if entry else "parse_failure",
            detail=f"the situation is {dict(entry)!r}"[:_MAX_REASON],
        )
    # Without a look-up everything is as strict as can be, so an unreadable one is none.
    lookup = _choice(entry.get("lookup"), get_args(Lookup)) or "none"
    asks_view = _yes(entry.get("asks_view"))
    return Situation.model_validate(
        {"target": target, "mode": mode, "asks_view": asks_view, "lookup": lookup}
    )


_MENUS: dict[Scheme, dict[str, tuple[str, ...]]] = {
    "units": {name: PS_COLUMNS[name] for name in UnitAttributes.model_fields},
    "factors": {
        name: FC_COLUMNS[name] for name in FactorAttributes.model_fields if name in FC_COLUMNS
    },
}
"""The closed set of values of each attribute, by scheme: those of the tables."""


def _row(entry: Mapping[str, Any], *, unit_id: str, scheme: Scheme) -> Row:
    menus = _MENUS[scheme]
    values = {name: _choice(entry.get(name), menu) for name, menu in menus.items()}
    # Only the first wrong value is named: the row is lost with one as with several.
    wrong = next((name for name, value in values.items() if value is None), None)
    if wrong is not None:
        attributes = Inconclusive(
            reason="off_menu" if entry.get(wrong) else "parse_failure",
            detail=f"{wrong} is {entry.get(wrong)!r}"[:_MAX_QUOTED],
        )
    elif scheme == "units":
        attributes = _unit_attributes(tuple(values.items()))
    else:
        allowed = entry.get("allowed_content")
        attributes = FactorAttributes.model_validate(
            {
                **values,
                "safety": _yes(entry.get("safety")),
                "allowed_content": allowed if isinstance(allowed, str) else "",
            }
        )
    why = entry.get("reason")
    return Row(
        unit_id=unit_id,
        attributes=attributes,
        # Read from unusable rows too: evidence may deny a unit whatever its attributes are.
        evidence_conflict=_yes(entry.get("evidence_conflict")),
        influence=_share(entry.get("influence")),
        author="other" if _choice(entry.get("author"), get_args(Author)) == "other" else "user",
        reason=why[:_MAX_REASON] if isinstance(why, str) else "",
    )


@cache
def _unit_attributes(values: tuple[tuple[str, str | None], ...]) -> UnitAttributes:
    """One shared value for equal verdicts: there are at most as many as keys of the table."""
    return UnitAttributes.model_validate(dict(values))


def _name_of(entry: Mapping[str, Any]) -> str:
    value = next((entry[key] for key in _ID_KEYS if key in entry), "")
    return str(value).strip(_ID_MARKUP).casefold()


def _ids(value: Any) -> list[str]:
    if isinstance(value, str):
        # A text in place of a list is accepted: what it says is clear.
        value = value.replace(";", ",").split(",")
    if not isinstance(value, Sequence):
        return []
    names = (str(name).strip(_ID_MARKUP).casefold() for name in value)
    return [name for name in names if name and name not in {"none", "null"}]


def _choice(value: Any, menu: Sequence[str]) -> str | None:
    if not isinstance(value, str):
        return None
    # Most answers follow the schema, so the exact value is tried before any folding.
    if value in menu:
        return value
    word = value.strip(_ID_MARKUP).casefold().replace("-", "_").replace(" ", "_")
    return word if word in menu else None


def _yes(value: Any) -> bool:
    # Anything else is no: a conflict or a safety mark must be stated, not inferred from a defect.
    return value is True or (isinstance(value, str) and value.strip().casefold() in {"true", "yes"})


def _share(value: Any) -> float | None:
    """A number in [0, 1]; `None` for anything else."""
    # `True` is an `int` in Python, and would be read as an influence of 1.
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        share = float(value)
    except ValueError:
        return None
    return share if 0.0 <= share <= 1.0 else None
