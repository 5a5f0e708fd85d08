"""The table of Permission-Semantic Admission: from the attributes of a unit to its permission.

The paper (arXiv 2610.11188, section 3.2) names kind, subject, epistemic status and temporality,
six permissions, and the same asymmetry as for whole entries. Relevance as an attribute, the values
and the rows are ours. They are chosen to give the paper's example its three branches: a past
purchase tells how to explain a purchase, is background to an investment, and has no bearing on a
résumé.
"""

from typing import get_args

from memguard.methods.adjudication.tables import Key, Table, TableRow, situation_key
from memguard.schema.read import Mode, Situation, Target
from memguard.schema.units import (
    Epistemic,
    Kind,
    Permission,
    Relevance,
    Subject,
    Temporal,
    UnitAttributes,
)

COLUMNS: dict[str, tuple[str, ...]] = {
    "kind": get_args(Kind),
    "subject": get_args(Subject),
    "epistemic": get_args(Epistemic),
    "temporality": get_args(Temporal),
    "relevance": get_args(Relevance),
    "target": get_args(Target),
    "mode": get_args(Mode),
    "asks_view": ("yes", "no"),
}
"""Attributes of the unit, and the situation."""

Values = dict[str, tuple[str, ...]]

_CONSTRAINT: Values = {"kind": ("safety", "constraint")}
_PREFERENCE: Values = {"kind": ("preference",)}
_BELIEF: Values = {"kind": ("belief",)}
_CLAIM: Values = {"kind": ("claim",)}
_FACT: Values = {"kind": ("fact",)}
_EXPERIENCE: Values = {"kind": ("experience",)}

_OF_USER: Values = {"subject": ("user",)}
_FOR_ANOTHER: Values = {**_OF_USER, "target": ("third_party",)}
_ADVICE: Values = {"mode": ("recommendation", "planning")}
_CERTAIN: Values = {
    "subject": ("user", "third_party", "world"),
    "temporality": ("current",),
    "relevance": ("direct", "indirect"),
}
"""Nothing is uncertain, except perhaps how well it is grounded."""
_STATED: Values = {**_CERTAIN, "epistemic": ("verified", "stated")}
_GROUNDED: Values = {**_CERTAIN, "epistemic": ("verified", "stated", "inferred")}
_DIRECT: Values = {"relevance": ("direct",)}
_VIEW_REQUESTED: Values = {"asks_view": ("yes",)}


def _row(name: str, then: Permission, why: str, *when: Values) -> TableRow:
    merged: Values = {}
    for part in when:
        merged.update(part)
    return TableRow(id=name, when=merged, then=then, why=why)


# First, because nothing below may widen what is certainly not for this answer.
_NEVER = (
    _row(
        "bystander", "DENY", "about somebody the answer is not about", {"subject": ("bystander",)}
    ),
    _row("superseded", "DENY", "no longer holds", {"temporality": ("superseded",)}),
    _row("contradicted", "DENY", "denied since it was said", {"epistemic": ("contradicted",)}),
    _row("irrelevant", "DENY", "has no bearing on the query", {"relevance": ("none",)}),
)

# Constraints fail open: one that is missed harms more than one that is shown for nothing.
_CONSTRAINTS = (
    _row(
        "constraint-of-another",
        "CONTEXT",
        "the user's own constraint, and the answer is for another person",
        _CONSTRAINT,
        _FOR_ANOTHER,
    ),
    _row(
        "constraint-aside",
        "CONTEXT",
        "what is so does not depend on a constraint that it only touches",
        {"kind": ("constraint",), "relevance": ("indirect",)},
        {"mode": ("factual",), "target": ("world",)},
    ),
    _row("constraint", "APPLY_CONSTRAINT", "said, current and to be kept", _CONSTRAINT, _STATED),
    _row("constraint-doubt", "CONTEXT", "a doubtful constraint fails open", _CONSTRAINT),
)

# Current preferences fail open as well, but never into a matter of fact.
_PREFERENCES = (
    _row(
        "preference-of-another",
        "DENY",
        "the user's taste is not that of the person whom the answer is for",
        _PREFERENCE,
        _FOR_ANOTHER,
    ),
    _row(
        "preference-on-facts",
        "DENY",
        "what is so does not depend on what the user likes",
        _PREFERENCE,
        {"mode": ("factual",), "target": ("world",)},
    ),
    _row(
        "preference-advice",
        "PERSONALIZE",
        "a current preference, and advice",
        _PREFERENCE,
        _STATED,
        _ADVICE,
    ),
    _row(
        "preference",
        "PERSONALIZE",
        "a current preference that the query is about",
        _PREFERENCE,
        _STATED,
        _DIRECT,
    ),
    _row(
        "preference-doubt",
        "CONTEXT",
        "a current preference fails open",
        _PREFERENCE,
        {"temporality": ("current",)},
    ),
    _row("preference-old", "CONTEXT_UNCERTAIN", "perhaps no longer a preference", _PREFERENCE),
)

# Beliefs fail closed: shown without being asked for, they invite agreement.
_BELIEFS = (
    _row(
        "belief-asked-for",
        "MENTION_VIEW",
        "the query asks for the view",
        _BELIEF,
        _GROUNDED,
        _VIEW_REQUESTED,
    ),
    _row(
        "belief-of-user",
        "MENTION_VIEW",
        "a view on the matter, and the answer is about the user",
        _BELIEF,
        _GROUNDED,
        _DIRECT,
        {"target": ("user",)},
    ),
    _row("belief", "DENY", "a belief fails closed: doubtful, or not asked for", _BELIEF),
)

# Unverified claims fail closed, and never settle a question of fact.
_CLAIMS = (
    _row(
        "claim-verified",
        "CONTEXT",
        "a verified statement",
        _CLAIM,
        _CERTAIN,
        {"epistemic": ("verified",)},
    ),
    _row(
        "claim-asked-for",
        "MENTION_VIEW",
        "unverified, and the query asks for the view",
        _CLAIM,
        _STATED,
        _VIEW_REQUESTED,
    ),
    _row(
        "claim-on-facts",
        "DENY",
        "an unverified statement does not settle what is so",
        _CLAIM,
        {"mode": ("factual",), "epistemic": ("stated", "inferred", "uncertain")},
    ),
    _row("claim", "CONTEXT_UNCERTAIN", "unverified, and to the point", _CLAIM, _STATED, _DIRECT),
    _row(
        "claim-verified-doubt",
        "CONTEXT_UNCERTAIN",
        "verified, and something else about it is doubtful",
        _CLAIM,
        {"epistemic": ("verified",)},
    ),
    _row("claim-doubt", "DENY", "an unverified statement fails closed", _CLAIM),
)

_FACTS = (
    _row(
        "fact-of-another",
        "DENY",
        "about the user beside the point, and the answer is for another person",
        _FACT,
        _FOR_ANOTHER,
        {"relevance": ("indirect", "uncertain")},
    ),
    _row("fact", "CONTEXT", "said, current and to the point", _FACT, _STATED, _DIRECT),
    _row(
        "fact-beside",
        "CONTEXT",
        "said, current and useful background",
        _FACT,
        _STATED,
        {"mode": ("recommendation", "planning", "support")},
    ),
    _row("fact-inferred", "CONTEXT_UNCERTAIN", "nobody said so", _FACT, _GROUNDED, _DIRECT),
    _row(
        "fact-verified-doubt",
        "CONTEXT_UNCERTAIN",
        "verified, and something else about it is doubtful",
        _FACT,
        {"epistemic": ("verified",)},
    ),
    _row("fact-doubt", "DENY", "a doubtful fact fails closed", _FACT),
)

# A past act is no wish: experience explains and supports, and is never taken for a preference.
_EXPERIENCES = (
    _row(
        "experience-of-another",
        "DENY",
        "the user's past beside the point, and the answer is for another person",
        _EXPERIENCE,
        _FOR_ANOTHER,
        {"relevance": ("indirect", "uncertain")},
    ),
    _row(
        "experience-skill",
        "PERSONALIZE",
        "tells how to explain to somebody who has done it",
        _EXPERIENCE,
        _STATED,
        _OF_USER,
        _DIRECT,
        {"mode": ("factual", "support"), "target": ("user", "world")},
    ),
    _row(
        "experience",
        "CONTEXT",
        "to the point; a past act is no wish",
        _EXPERIENCE,
        _STATED,
        _DIRECT,
    ),
    _row(
        "experience-beside",
        "CONTEXT",
        "useful background; a past act is no wish",
        _EXPERIENCE,
        _STATED,
        {"mode": ("recommendation", "planning", "support")},
    ),
    _row(
        "experience-inferred",
        "CONTEXT_UNCERTAIN",
        "nobody said so",
        _EXPERIENCE,
        _GROUNDED,
        _DIRECT,
    ),
    _row(
        "experience-verified-doubt",
        "CONTEXT_UNCERTAIN",
        "verified, and something else about it is doubtful",
        _EXPERIENCE,
        {"epistemic": ("verified",)},
    ),
    _row("experience-doubt", "DENY", "a doubtful experience fails closed", _EXPERIENCE),
)

PS_TABLE = Table(
    name="PS_TABLE",
    columns=COLUMNS,
    rows=(
        *_NEVER,
        *_CONSTRAINTS,
        *_PREFERENCES,
        *_BELIEFS,
        *_CLAIMS,
        *_FACTS,
        *_EXPERIENCES,
    ),
)
"""What a unit may be used for, first match wins."""


def _only(*names: str) -> dict[str, tuple[str, ...]]:
    return {name: COLUMNS[name] for name in names}


_LIVE: Values = {
    "subject": ("user", "third_party", "world", "uncertain"),
    "epistemic": ("verified", "stated", "inferred", "uncertain"),
    "temporality": ("current", "uncertain"),
    "relevance": ("direct", "indirect", "uncertain"),
}

PS_SAFETY = Table(
    name="PS_SAFETY",
    columns=_only("subject", "epistemic", "temporality", "relevance", "target"),
    rows=(
        _row(
            "safety-of-another",
            "CONTEXT",
            "the user's own, and the answer is for another person",
            _LIVE,
            _FOR_ANOTHER,
        ),
        _row(
            "safety",
            "APPLY_CONSTRAINT",
            "a safety constraint holds through doubt",
            _LIVE,
            {"subject": ("user", "third_party", "world"), "temporality": ("current",)},
        ),
        _row(
            "safety-doubt",
            "CONTEXT",
            "a safety constraint whose person or time is doubtful stays in sight",
            _LIVE,
        ),
        _row("safety-not-here", "DENY", "certainly not for this answer"),
    ),
)
"""The minimum that a unit about safety gets; ours, switched by `safety`."""

PS_PERSONALIZATION = Table(
    name="PS_PERSONALIZATION",
    columns=_only("kind", "subject", "epistemic", "temporality", "relevance", "target", "mode"),
    rows=(
        _row(
            "preference-kept",
            "PERSONALIZE",
            "a current preference of the user holds through doubt when advising the user",
            _PREFERENCE,
            _LIVE,
            _OF_USER,
            _ADVICE,
            {"temporality": ("current",), "target": ("user",)},
        ),
        _row("no-preference", "DENY", "not such a preference"),
    ),
)
"""The minimum that a current preference gets; ours, switched by `personalization_guard`."""


def unit_key(attributes: UnitAttributes, *, situation: Situation, safety: bool) -> Key:
    """The key of a unit in the tables of this module.

    Args:
        attributes: The verdict.
        situation: What the query asks for.
        safety: Whether safety is a kind of its own; else it is a constraint like any other.
    """
    kind = "constraint" if attributes.kind == "safety" and not safety else attributes.kind
    return {
        "kind": kind,
        "subject": attributes.subject,
        "epistemic": attributes.epistemic,
        "temporality": attributes.temporality,
        "relevance": attributes.relevance,
        **situation_key(situation),
    }
