"""The tables of FC and PS: from attributes and situation to a permission, as data.

Factor-Compiled Admission (FC) looks whole entries up by nine steps. Permission-Semantic Admission
(PS) looks single units up. The paper (arXiv 2610.11188, section 3.2) names kind, subject,
epistemic status and temporality, six permissions, and the same asymmetry for units and for whole
entries. For PS, relevance as an attribute, the values and the rows are ours. They give the paper's
example its three branches: a past purchase tells how to explain a purchase, is background to an
investment, and has no bearing on a résumé.

A method has four tables: its rules, and three floors. Two protect safety constraints and current
preferences from being denied for doubt. The third, for an adjudicator that is not a model, admits
whatever nothing speaks against.
"""

from dataclasses import replace
from typing import get_args

from memguard.methods.adjudication.tables import Table, TableRow
from memguard.schema.read import Mode, Target
from memguard.schema.units import (
    Epistemic,
    FactorRole,
    Kind,
    Permission,
    Relevance,
    Scope,
    Subject,
    SubjectMatch,
    Temporal,
    Utility,
)

Values = dict[str, tuple[str, ...]]
"""Accepted values by column."""


def _row(name: str, then: Permission, why: str, **when: str | tuple[str, ...]) -> TableRow:
    """A row; the keywords are its conditions, one value or several per column."""
    accepted = {
        column: (values,) if isinstance(values, str) else values for column, values in when.items()
    }
    return TableRow(name, then, why, accepted)


def _rows_with(shared: Values, *rows: TableRow) -> tuple[TableRow, ...]:
    """The rows with further conditions, which they share."""
    return tuple(replace(row, when={**shared, **row.when}) for row in rows)


_SITUATION: Values = {
    "target": get_args(Target),
    "mode": get_args(Mode),
    "asks_view": ("yes", "no"),
}

FC_COLUMNS: Values = {
    "scope": get_args(Scope),
    "subject": get_args(SubjectMatch),
    "role": get_args(FactorRole),
    "epistemic": get_args(Epistemic),
    "temporal": get_args(Temporal),
    "utility": get_args(Utility),
    "allowed": ("given", "empty"),
    **_SITUATION,
}
"""Factors of the entry, whether it names its allowed content, and the situation."""

_CERTAIN: Values = {
    "scope": ("in", "partial"),
    "subject": ("match",),
    "epistemic": ("verified", "stated", "inferred"),
    "temporal": ("current",),
}
"""Nothing about the entry is uncertain. Exclusions come first, so a partial scope has its part."""

# Exclusions come first, so that no later row can widen what they deny. Within a role the rows go
# from the certain to the doubtful: what fails open ends in CONTEXT, what fails closed in DENY.
_FC_EXCLUSIONS = (
    _row("1-subject", "DENY", "about another person", subject="mismatch"),
    _row("2-scope", "DENY", "meant for other situations", scope="out"),
    _row(
        "2-nothing-allowed",
        "DENY",
        "only a part may be used, and no part was named",
        scope="partial",
        allowed="empty",
    ),
    _row("3-superseded", "DENY", "no longer holds", temporal="superseded"),
    _row("3-contradicted", "DENY", "contradicted", epistemic="contradicted"),
    # Not for constraints: whether one helps this answer does not matter, because it limits it.
    _row(
        "4-no-use",
        "DENY",
        "adds nothing to this answer",
        utility="none",
        role=("preference", "belief", "fact", "context"),
    ),
)
_FC_CONSTRAINTS = _rows_with(
    {"role": ("constraint",)},
    _row(
        "5-constraint",
        "APPLY_CONSTRAINT",
        "a constraint, and nothing about it is uncertain",
        **_CERTAIN,
    ),
    _row(
        "5-constraint-doubt", "CONTEXT", "a doubtful constraint fails open: it is shown as context"
    ),
)
_FC_PREFERENCES = _rows_with(
    {"role": ("preference",)},
    # Before the two rows that admit: this one holds for certain preferences as well.
    _row(
        "6-preference-on-facts",
        "DENY",
        "a matter of fact does not depend on what the user likes",
        mode="factual",
        target="world",
    ),
    _row(
        "6-preference",
        "PERSONALIZE",
        "a current preference, and nothing about it is uncertain",
        **_CERTAIN,
    ),
    _row(
        "6-preference-doubt", "CONTEXT", "a doubtful preference fails open: it is shown as context"
    ),
)
_FC_BELIEFS = _rows_with(
    {"role": ("belief",)},
    _row(
        "7-belief-of-user",
        "MENTION_VIEW",
        "a view of the user, and the answer is about the user",
        **_CERTAIN,
        target="user",
    ),
    _row(
        "7-belief-asked-for",
        "MENTION_VIEW",
        "the query asks for the user's view",
        **_CERTAIN,
        asks_view="yes",
    ),
    _row("7-belief", "DENY", "a belief fails closed: doubtful, or not asked for"),
)
_FC_FACTS = _rows_with(
    {"role": ("fact",)},
    _row("8-fact-verified", "CONTEXT", "a verified fact", epistemic="verified"),
    _row(
        "8-fact-unverified",
        "CONTEXT_UNCERTAIN",
        "an unverified fact, and nothing else about it is uncertain",
        **_CERTAIN,
    ),
    _row("8-fact-doubt", "DENY", "an unverified fact fails closed"),
)
_FC_CONTEXT = _rows_with(
    {"role": ("context",)},
    _row("9-context", "CONTEXT", "background, and nothing about it is uncertain", **_CERTAIN),
    _row("9-context-doubt", "CONTEXT_UNCERTAIN", "doubtful background"),
)

FC_TABLE = Table(
    name="FC_TABLE",
    columns=FC_COLUMNS,
    rows=(
        *_FC_EXCLUSIONS,
        *_FC_CONSTRAINTS,
        *_FC_PREFERENCES,
        *_FC_BELIEFS,
        *_FC_FACTS,
        *_FC_CONTEXT,
    ),
)
"""The nine steps of FC, first match wins."""


def _columns(columns: Values, *names: str) -> Values:
    return {name: columns[name] for name in names}


# Doubt does not exclude, but a known mismatch, contradiction or replacement still does: a safety
# constraint of somebody else, or one that ended, would only mislead.
_LIVE_ENTRY: Values = {
    "scope": ("in", "partial", "uncertain"),
    "epistemic": ("verified", "stated", "inferred", "uncertain"),
}

FC_SAFETY = Table(
    name="FC_SAFETY",
    columns=_columns(FC_COLUMNS, "scope", "subject", "epistemic", "temporal"),
    rows=(
        _row(
            "safety",
            "APPLY_CONSTRAINT",
            "a safety constraint applies even where other attributes are doubtful",
            **_LIVE_ENTRY,
            subject="match",
            temporal="current",
        ),
        _row(
            "safety-doubt",
            "CONTEXT",
            "a safety constraint whose person or time is doubtful is still shown",
            **_LIVE_ENTRY,
            subject=("match", "uncertain"),
            temporal=("current", "uncertain"),
        ),
        _row("safety-not-here", "DENY", "certainly does not apply to this answer"),
    ),
)
"""The minimum that an entry about safety gets, whatever its role; ours, switched by `safety`."""

_ADVICE: Values = {"mode": ("recommendation", "planning")}
_LIVE_PREFERENCE: Values = {
    "epistemic": _LIVE_ENTRY["epistemic"],
    "role": ("preference",),
    "subject": ("match",),
    "temporal": ("current",),
    "utility": ("needed", "helpful"),
    "target": ("user",),
    **_ADVICE,
}

FC_PERSONALIZATION = Table(
    name="FC_PERSONALIZATION",
    columns={name: values for name, values in FC_COLUMNS.items() if name != "asks_view"},
    rows=(
        _row(
            "preference-kept",
            "PERSONALIZE",
            "advice respects a current preference even where other attributes are doubtful",
            **_LIVE_PREFERENCE,
            scope=("in", "uncertain"),
        ),
        _row(
            "preference-part-kept",
            "PERSONALIZE",
            "the same, for the part that may be used",
            **_LIVE_PREFERENCE,
            scope="partial",
            allowed="given",
        ),
        _row("no-preference", "DENY", "not a current preference of the user, or not advice"),
    ),
)
"""The minimum that a current preference gets; ours, switched by `personalization_guard`."""

_OF_SAFETY: Values = {"of_safety": ("yes", "no")}
"""Whether a unit is about safety; a column of the floors `FC_OPEN` and `PS_OPEN`."""
_SAFETY_EVEN_SO = (
    "open-safety",
    "CONTEXT",
    "a safety constraint is shown with every answer, unless the store has a later record of it",
)
_NOTHING_AGAINST = (
    "open",
    "CONTEXT_UNCERTAIN",
    "nothing speaks against it, and it was not judged by a model",
)

FC_OPEN = Table(
    name="FC_OPEN",
    columns={**FC_COLUMNS, **_OF_SAFETY},
    rows=(
        _row(*_SAFETY_EVEN_SO, of_safety="yes", subject=("match", "uncertain")),
        _row("open-subject", "DENY", "about another person", subject="mismatch"),
        _row("open-scope", "DENY", "clearly about something else", scope="out"),
        _row("open-superseded", "DENY", "no longer holds", temporal="superseded"),
        _row("open-contradicted", "DENY", "contradicted", epistemic="contradicted"),
        _row(
            "open-preference-on-facts",
            "DENY",
            "a matter of fact does not depend on what the user likes",
            role="preference",
            mode="factual",
            target="world",
        ),
        _row("open-belief", "DENY", "a belief that was not asked for", role="belief"),
        _row(*_NOTHING_AGAINST),
    ),
)
"""The minimum where no model judged: only positive evidence denies. Ours."""


PS_COLUMNS: Values = {
    "kind": get_args(Kind),
    "subject": get_args(Subject),
    "epistemic": get_args(Epistemic),
    "temporality": get_args(Temporal),
    "relevance": get_args(Relevance),
    **_SITUATION,
}
"""Attributes of the unit, and the situation."""

_CONSTRAINT: Values = {"kind": ("safety", "constraint")}
_BYSTANDER: Values = {"subject": ("bystander",)}
_FOR_ANOTHER: Values = {"subject": ("user",), "target": ("third_party",)}
_ON_FACTS: Values = {"mode": ("factual",), "target": ("world",)}
_WITH_BACKGROUND: Values = {"mode": ("recommendation", "planning", "support")}
_KNOWN: Values = {
    "subject": ("user", "third_party", "world"),
    "temporality": ("current",),
    "relevance": ("direct", "indirect"),
}
"""Nothing is uncertain, except perhaps how well it is grounded."""
_STATED: Values = {**_KNOWN, "epistemic": ("verified", "stated")}
_GROUNDED: Values = {**_KNOWN, "epistemic": ("verified", "stated", "inferred")}
_STATED_DIRECT: Values = {**_STATED, "relevance": ("direct",)}
_GROUNDED_DIRECT: Values = {**_GROUNDED, "relevance": ("direct",)}

# First, because nothing below may widen what is certainly not for this answer.
_EXCLUSIONS = (
    _row("bystander", "DENY", "about somebody the answer is not about", subject="bystander"),
    _row("superseded", "DENY", "no longer holds", temporality="superseded"),
    _row("contradicted", "DENY", "contradicted since it was stated", epistemic="contradicted"),
    _row("irrelevant", "DENY", "has no bearing on the query", relevance="none"),
)

# Constraints fail open: one that is missed harms more than one that is shown for nothing.
_CONSTRAINTS = (
    _row(
        "constraint-of-another",
        "CONTEXT",
        "the user's own constraint, and the answer is for another person",
        **_CONSTRAINT,
        **_FOR_ANOTHER,
    ),
    # Not for `safety`: its floor, `PS_SAFETY`, would widen the permission again.
    _row(
        "constraint-aside",
        "CONTEXT",
        "a matter of fact does not depend on a constraint with an indirect bearing on it",
        kind="constraint",
        relevance="indirect",
        **_ON_FACTS,
    ),
    _row(
        "constraint",
        "APPLY_CONSTRAINT",
        "stated, current and to be respected",
        **_CONSTRAINT,
        **_STATED,
    ),
    _row("constraint-doubt", "CONTEXT", "a doubtful constraint fails open", **_CONSTRAINT),
)

# Current preferences fail open as well, but never into a matter of fact.
_PREFERENCES = _rows_with(
    {"kind": ("preference",)},
    # Before the rows that admit: both exclusions hold for certain preferences as well.
    _row(
        "preference-of-another",
        "DENY",
        "the user's taste is not that of the person whom the answer is for",
        **_FOR_ANOTHER,
    ),
    _row(
        "preference-on-facts",
        "DENY",
        "a matter of fact does not depend on what the user likes",
        **_ON_FACTS,
    ),
    _row(
        "preference-advice", "PERSONALIZE", "a current preference, and advice", **_STATED, **_ADVICE
    ),
    _row(
        "preference",
        "PERSONALIZE",
        "a current preference that the query is about",
        **_STATED_DIRECT,
    ),
    _row("preference-doubt", "CONTEXT", "a current preference fails open", temporality="current"),
    _row("preference-old", "CONTEXT_UNCERTAIN", "perhaps no longer a preference"),
)

# Beliefs fail closed: shown without being asked for, they invite agreement.
_BELIEFS = _rows_with(
    {"kind": ("belief",)},
    _row(
        "belief-asked-for",
        "MENTION_VIEW",
        "the query asks for the view",
        **_GROUNDED,
        asks_view="yes",
    ),
    _row(
        "belief-of-user",
        "MENTION_VIEW",
        "a view on the matter, and the answer is about the user",
        **_GROUNDED_DIRECT,
        target="user",
    ),
    _row("belief", "DENY", "a belief fails closed: doubtful, or not asked for"),
)

# Unverified claims fail closed, and never settle a question of fact.
_CLAIMS = _rows_with(
    {"kind": ("claim",)},
    _row("claim-verified", "CONTEXT", "a verified statement", **_KNOWN, epistemic="verified"),
    # A requested view is reported as a view, so it need not be verified.
    _row(
        "claim-asked-for",
        "MENTION_VIEW",
        "unverified, and the query asks for the view",
        **_STATED,
        asks_view="yes",
    ),
    _row(
        "claim-on-facts",
        "DENY",
        "an unverified statement does not settle a matter of fact",
        mode="factual",
        epistemic=("stated", "inferred", "uncertain"),
    ),
    _row("claim", "CONTEXT_UNCERTAIN", "unverified, and directly relevant", **_STATED_DIRECT),
    _row(
        "claim-verified-doubt",
        "CONTEXT_UNCERTAIN",
        "verified, and something else about it is doubtful",
        epistemic="verified",
    ),
    _row("claim-doubt", "DENY", "an unverified statement fails closed"),
)


def _lesser_rows(kind: Kind) -> tuple[TableRow, ...]:
    """The last rows of facts and of experience, which differ in the kind alone."""
    return (
        _row(f"{kind}-inferred", "CONTEXT_UNCERTAIN", "inferred, not stated", **_GROUNDED_DIRECT),
        # What was verified stays useful even where its time or its person is doubtful.
        _row(
            f"{kind}-verified-doubt",
            "CONTEXT_UNCERTAIN",
            "verified, and something else about it is doubtful",
            epistemic="verified",
        ),
        _row(f"{kind}-doubt", "DENY", f"a doubtful {kind} fails closed"),
    )


_FACTS = _rows_with(
    {"kind": ("fact",)},
    _row(
        "fact-of-another",
        "DENY",
        "about the user, not directly relevant, and the answer is for another person",
        **_FOR_ANOTHER,
        relevance=("indirect", "uncertain"),
    ),
    _row("fact", "CONTEXT", "stated, current and directly relevant", **_STATED_DIRECT),
    _row(
        "fact-beside",
        "CONTEXT",
        "stated, current and useful background",
        **_STATED,
        **_WITH_BACKGROUND,
    ),
    *_lesser_rows("fact"),
)

# A past act is not a wish: experience explains and supports, and is never taken for a preference.
_EXPERIENCES = _rows_with(
    {"kind": ("experience",)},
    _row(
        "experience-of-another",
        "DENY",
        "the user's past, not directly relevant, and the answer is for another person",
        **_FOR_ANOTHER,
        relevance=("indirect", "uncertain"),
    ),
    _row(
        "experience-skill",
        "PERSONALIZE",
        "tells how to explain to somebody who has done it",
        **{**_STATED_DIRECT, "subject": ("user",)},
        mode=("factual", "support"),
        target=("user", "world"),
    ),
    _row("experience", "CONTEXT", "directly relevant; a past act is not a wish", **_STATED_DIRECT),
    _row(
        "experience-beside",
        "CONTEXT",
        "useful background; a past act is not a wish",
        **_STATED,
        **_WITH_BACKGROUND,
    ),
    *_lesser_rows("experience"),
)

PS_TABLE = Table(
    name="PS_TABLE",
    columns=PS_COLUMNS,
    rows=(*_EXCLUSIONS, *_CONSTRAINTS, *_PREFERENCES, *_BELIEFS, *_CLAIMS, *_FACTS, *_EXPERIENCES),
)
"""What a unit may be used for, first match wins."""

_LIVE_UNIT: Values = {
    "subject": ("user", "third_party", "world", "uncertain"),
    "epistemic": ("verified", "stated", "inferred", "uncertain"),
    "temporality": ("current", "uncertain"),
    "relevance": ("direct", "indirect", "uncertain"),
}

PS_SAFETY = Table(
    name="PS_SAFETY",
    columns=_columns(PS_COLUMNS, "subject", "epistemic", "temporality", "relevance", "target"),
    rows=(
        # First, because the user's own limits do not bind an answer for somebody else.
        _row(
            "safety-of-another",
            "CONTEXT",
            "the user's safety constraint, and the answer is for another person",
            **(_LIVE_UNIT | _FOR_ANOTHER),
        ),
        _row(
            "safety",
            "APPLY_CONSTRAINT",
            "a safety constraint applies even where other attributes are doubtful",
            **(_LIVE_UNIT | {"subject": _KNOWN["subject"], "temporality": ("current",)}),
        ),
        _row(
            "safety-doubt",
            "CONTEXT",
            "a safety constraint whose person or time is doubtful is still shown",
            **_LIVE_UNIT,
        ),
        _row("safety-not-here", "DENY", "certainly does not apply to this answer"),
    ),
)
"""The minimum that a unit about safety gets; ours, switched by `safety`."""

PS_PERSONALIZATION = Table(
    name="PS_PERSONALIZATION",
    columns={name: values for name, values in PS_COLUMNS.items() if name != "asks_view"},
    rows=(
        _row(
            "preference-kept",
            "PERSONALIZE",
            "advice respects a current preference even where other attributes are doubtful",
            kind="preference",
            **(_LIVE_UNIT | {"subject": ("user",), "temporality": ("current",)}),
            **_ADVICE,
            target="user",
        ),
        _row("no-preference", "DENY", "not a current preference of the user, or not advice"),
    ),
)
"""The minimum that a current preference gets; ours, switched by `personalization_guard`."""

PS_OPEN = Table(
    name="PS_OPEN",
    columns={**PS_COLUMNS, **_OF_SAFETY},
    rows=(
        _row(
            *_SAFETY_EVEN_SO,
            of_safety="yes",
            subject=("user", "third_party", "world", "uncertain"),
        ),
        _row("open-bystander", "DENY", "about somebody the answer is not about", **_BYSTANDER),
        _row("open-irrelevant", "DENY", "clearly about something else", relevance="none"),
        _row("open-superseded", "DENY", "no longer holds", temporality="superseded"),
        _row("open-contradicted", "DENY", "contradicted", epistemic="contradicted"),
        _row(
            "open-preference-of-another",
            "DENY",
            "the user's taste is not that of the person whom the answer is for",
            kind="preference",
            **_FOR_ANOTHER,
        ),
        _row(
            "open-preference-on-facts",
            "DENY",
            "a matter of fact does not depend on what the user likes",
            kind="preference",
            **_ON_FACTS,
        ),
        _row("open-belief", "DENY", "a belief that was not asked for", kind="belief"),
        _row(*_NOTHING_AGAINST),
    ),
)
"""The minimum where no model judged: only positive evidence denies. Ours."""
