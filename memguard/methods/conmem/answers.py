"""What each stage's model is asked to answer, and how an answer is read. Pure."""

from collections.abc import Collection
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from memguard.llm.parsing import parse_choice, parse_json
from memguard.policy.conmem_decision import canonical_reason
from memguard.schema.conmem import ROLES, ProbeRole
from memguard.schema.conmem_log import Attribution, ProbeAudit, ReasonType
from memguard.schema.verdict import Inconclusive

_LETTERS = ("A", "B", "TIE")
_DECISIONS = ("DO_NOT_STORE", "STORE")


class _Answer(BaseModel):
    """Tolerates more keys than were asked for."""

    model_config = ConfigDict(extra="ignore")


class ProbeSet(_Answer):
    """Three requests."""

    relevant: str
    irrelevant: str
    risk: str


class OneProbe(_Answer):
    """One request."""

    query: str


class Validity(_Answer):
    """What the probe auditor says of one probe."""

    reason: str = ""
    valid: bool
    leaks: bool = False


class Validation(_Answer):
    """What the probe auditor says, by kind; only what it was shown."""

    relevant: Validity | None = None
    irrelevant: Validity | None = None
    risk: Validity | None = None

    def audits(self, roles: Collection[ProbeRole]) -> tuple[ProbeAudit, ...]:
        """What was said of these roles."""
        return tuple(
            ProbeAudit(role=role, valid=said.valid, leaks=said.leaks, reason=said.reason)
            for role in ROLES
            if role in roles and (said := self.of(role)) is not None
        )

    def of(self, role: ProbeRole) -> Validity | None:
        """What was said of one."""
        return {"relevant": self.relevant, "irrelevant": self.irrelevant, "risk": self.risk}[role]


class Comparison(_Answer):
    """What the blind judge says."""

    reason: str = ""
    winner: Literal["A", "B", "TIE"]

    @field_validator("winner", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.strip().upper() if isinstance(value, str) else value


class Audit(_Answer):
    """What the attribution auditor says."""

    reason: str = ""
    used: bool
    changed: bool
    label: Attribution

    @field_validator("label", mode="before")
    @classmethod
    def _lower(cls, value: object) -> object:
        return value.strip().casefold() if isinstance(value, str) else value


class TieBreak(_Answer):
    """What the tie-break judge says."""

    reason: str = ""
    decision: Literal["STORE", "DO_NOT_STORE"]

    @field_validator("decision", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.strip().upper() if isinstance(value, str) else value


class Reason(_Answer):
    """Why a candidate was rejected."""

    reason_type: ReasonType
    confidence: float | None = Field(default=None, ge=0.0, le=1.0)
    explanation: str = ""

    @field_validator("reason_type", mode="before")
    @classmethod
    def _spelling(cls, value: object) -> object:
        return canonical_reason(value) if isinstance(value, str) else value


def read_comparison(text: str) -> Comparison | Inconclusive:
    """A verdict as JSON, or as `[[B]]`, `Verdict: tie` and the like; never a letter in prose."""
    letter = parse_choice(text, _LETTERS)
    if isinstance(letter, Inconclusive):
        return letter
    found = parse_json(text, Comparison)
    said = found.reason if isinstance(found, Comparison) and found.winner == letter else ""
    return Comparison.model_validate({"winner": letter, "reason": said})


def read_tie_break(text: str) -> TieBreak | Inconclusive:
    """A decision as JSON, or named as one in words."""
    word = parse_choice(text, _DECISIONS)
    if isinstance(word, Inconclusive):
        return word
    found = parse_json(text, TieBreak)
    said = found.reason if isinstance(found, TieBreak) and found.decision == word else ""
    return TieBreak.model_validate({"decision": word, "reason": said})


def read_reason(text: str) -> Reason | Inconclusive:
    """A reason of the closed list, but not the one that is for admitted candidates."""
    found = parse_json(text, Reason)
    if isinstance(found, Reason) and found.reason_type == "directly_relevant":
        detail = "directly_relevant is no reason to reject"
        return Inconclusive(reason="off_menu", detail=detail)
    return found


def read_validation(text: str, *, roles: Collection[ProbeRole]) -> Validation | Inconclusive:
    """What was said of these roles; an answer that leaves one out cannot be used."""
    found = parse_json(text, Validation)
    if isinstance(found, Inconclusive):
        return found
    missing = [role for role in ROLES if role in roles and found.of(role) is None]
    if missing:
        detail = f"nothing was said of: {', '.join(missing)}"
        return Inconclusive(reason="parse_failure", detail=detail)
    return found
