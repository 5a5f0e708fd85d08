"""The tables of Permission-Semantic Admission (PS), which looks single units up.

The paper (arXiv 2610.11188, section 3.2) names kind, subject, epistemic status and temporality,
six permissions, and the same asymmetry for units and for whole entries. Relevance as an attribute,
the values and the rows are ours. They give the paper's example its three branches: a past purchase
tells how to explain a purchase, is background to an investment, and has no bearing on a résumé.
"""

from typing import get_args

from memguard.methods.adjudication.permissions.building import (
    ADVICE,
    IN_THE_PAST,
    LOOK_UP,
    NOTHING_AGAINST,
    OF_SAFETY,
    SAFETY_EVEN_SO,
    SITUATION,
    Values,
    columns_of,
    row,
    rows_with,
)
from memguard.methods.adjudication.tables import Table, TableRow
from memguard.schema.units import Epistemic, Kind, Relevance, Subject, Temporal

PS_COLUMNS: Values = {
    "kind": get_args(Kind),
    "subject": get_args(Subject),
    "epistemic": get_args(Epistemic),
    "temporality": get_args(Temporal),
    "relevance": get_args(Relevance),
    **SITUATION,
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

# In a question about the past, what no longer holds is what is asked for: before the exclusions,
# which would deny it for its time. The rows repeat the conditions of the other exclusions.
_PAST = rows_with(
    {
        **IN_THE_PAST,
        "temporality": ("superseded", "uncertain"),
        "relevance": ("direct",),
    },
    row(
        "past",
        "CONTEXT",
        "once so, and the request is about the past",
        kind=("safety", "constraint", "fact", "experience"),
        subject=_KNOWN["subject"],
        epistemic=("verified", "stated"),
    ),
    # A claim about the world that the user is asked about as a view is reported as one.
    row(
        "past-claim",
        "CONTEXT",
        "once told, and the request is about the past",
        kind="claim",
        subject=_KNOWN["subject"],
        epistemic=("verified", "stated"),
        asks_view="no",
    ),
    row(
        "past-preference",
        "CONTEXT",
        "once liked or disliked, and the request is about the past",
        kind="preference",
        subject=_KNOWN["subject"],
        epistemic=("verified", "stated"),
        target="user",
    ),
    row(
        "past-view",
        "MENTION_VIEW",
        "a view that the user once had, and the request asks for it",
        kind="belief",
        subject=_KNOWN["subject"],
        epistemic=("verified", "stated", "inferred"),
        asks_view="yes",
    ),
    row(
        "past-claim-view",
        "MENTION_VIEW",
        "once told, and the request asks for what the user said of it",
        kind="claim",
        subject=_KNOWN["subject"],
        epistemic=("verified", "stated"),
        asks_view="yes",
    ),
    row(
        "past-doubt",
        "CONTEXT_UNCERTAIN",
        "perhaps once so, and the request is about the past",
        kind=("claim", "fact", "experience"),
        subject=(*_KNOWN["subject"], "uncertain"),
        epistemic=("verified", "stated", "inferred", "uncertain"),
    ),
)

_PAST_CONSTRAINT = row(
    "past-constraint-doubt",
    "CONTEXT",
    "a doubtful constraint of the past, and the request is about the past",
    **IN_THE_PAST,
    **_CONSTRAINT,
    subject=(*_KNOWN["subject"], "uncertain"),
    epistemic=("verified", "stated", "inferred", "uncertain"),
    temporality=("superseded", "uncertain"),
    relevance="direct",
)

# Here, because nothing below may widen what is certainly not for this answer.
_EXCLUSIONS = (
    row("bystander", "DENY", "about somebody the answer is not about", subject="bystander"),
    row("superseded", "DENY", "no longer holds", temporality="superseded"),
    row("contradicted", "DENY", "contradicted since it was stated", epistemic="contradicted"),
    row("irrelevant", "DENY", "has no bearing on the query", relevance="none"),
)

# Constraints fail open: one that is missed harms more than one that is shown for nothing.
_CONSTRAINTS = (
    row(
        "constraint-of-another",
        "CONTEXT",
        "the user's own constraint, and the answer is for another person",
        **_CONSTRAINT,
        **_FOR_ANOTHER,
    ),
    # Not for `safety`: its floor, `PS_SAFETY`, would widen the permission again.
    row(
        "constraint-aside",
        "CONTEXT",
        "a matter of fact does not depend on a constraint with an indirect bearing on it",
        kind="constraint",
        relevance="indirect",
        **_ON_FACTS,
    ),
    row(
        "constraint",
        "APPLY_CONSTRAINT",
        "stated, current and to be respected",
        **_CONSTRAINT,
        **_STATED,
    ),
    row("constraint-doubt", "CONTEXT", "a doubtful constraint fails open", **_CONSTRAINT),
)

# What the request looks up only the user could have told, so nothing else would answer it. Beliefs
# have no rows here: where a view is asked for, they have rows of their own.
_LOOK_UPS = rows_with(
    {**LOOK_UP, "relevance": ("direct",)},
    row(
        "look-up",
        "CONTEXT",
        "the request looks up what the user told, and this was stated and is current",
        kind=("fact", "experience"),
        **_STATED_DIRECT,
    ),
    row(
        "look-up-claim",
        "CONTEXT",
        "the request looks up what the user told about the world, and this was stated",
        kind="claim",
        asks_view="no",
        **_STATED_DIRECT,
    ),
    row(
        "look-up-view",
        "MENTION_VIEW",
        "unverified, and the request asks for what the user said of it",
        kind="claim",
        asks_view="yes",
        **{**_STATED_DIRECT, "epistemic": ("stated",)},
    ),
    row(
        "look-up-verified",
        "CONTEXT",
        "a verified statement",
        kind="claim",
        **{**_STATED_DIRECT, "epistemic": ("verified",)},
    ),
    row(
        "look-up-doubt",
        "CONTEXT_UNCERTAIN",
        "the request looks it up, and something about it is doubtful",
        kind=("claim", "fact", "experience"),
    ),
)
# Current preferences fail open as well, but never into a matter of fact.
_PREFERENCES = rows_with(
    {"kind": ("preference",)},
    # Before the rows that admit: both exclusions hold for certain preferences as well.
    row(
        "preference-of-another",
        "DENY",
        "the user's taste is not that of the person whom the answer is for",
        **_FOR_ANOTHER,
    ),
    row(
        "preference-on-facts",
        "DENY",
        "a matter of fact does not depend on what the user likes",
        **_ON_FACTS,
    ),
    row(
        "preference-advice", "PERSONALIZE", "a current preference, and advice", **_STATED, **ADVICE
    ),
    row(
        "preference",
        "PERSONALIZE",
        "a current preference that the query is about",
        **_STATED_DIRECT,
    ),
    row("preference-doubt", "CONTEXT", "a current preference fails open", temporality="current"),
    row("preference-old", "CONTEXT_UNCERTAIN", "perhaps no longer a preference"),
)

# Beliefs fail closed: shown without being asked for, they invite agreement.
_BELIEFS = rows_with(
    {"kind": ("belief",)},
    row(
        "belief-asked-for",
        "MENTION_VIEW",
        "the query asks for the view",
        **_GROUNDED,
        asks_view="yes",
    ),
    row(
        "belief-of-user",
        "MENTION_VIEW",
        "a view on the matter, and the answer is about the user",
        **_GROUNDED_DIRECT,
        target="user",
    ),
    row("belief", "DENY", "a belief fails closed: doubtful, or not asked for"),
)

# Unverified claims fail closed, and never settle a question of fact.
_CLAIMS = rows_with(
    {"kind": ("claim",)},
    row("claim-verified", "CONTEXT", "a verified statement", **_KNOWN, epistemic="verified"),
    # A requested view is reported as a view, so it need not be verified.
    row(
        "claim-asked-for",
        "MENTION_VIEW",
        "unverified, and the query asks for the view",
        **_STATED,
        asks_view="yes",
    ),
    row(
        "claim-on-facts",
        "DENY",
        "an unverified statement does not settle a matter of fact",
        mode="factual",
        epistemic=("stated", "inferred", "uncertain"),
    ),
    row("claim", "CONTEXT_UNCERTAIN", "unverified, and directly relevant", **_STATED_DIRECT),
    row(
        "claim-verified-doubt",
        "CONTEXT_UNCERTAIN",
        "verified, and something else about it is doubtful",
        epistemic="verified",
    ),
    row("claim-doubt", "DENY", "an unverified statement fails closed"),
)


def _lesser_rows(kind: Kind) -> tuple[TableRow, ...]:
    """The last rows of facts and of experience, which differ in the kind alone."""
    return (
        row(f"{kind}-inferred", "CONTEXT_UNCERTAIN", "inferred, not stated", **_GROUNDED_DIRECT),
        # What was verified stays useful even where its time or its person is doubtful.
        row(
            f"{kind}-verified-doubt",
            "CONTEXT_UNCERTAIN",
            "verified, and something else about it is doubtful",
            epistemic="verified",
        ),
        row(f"{kind}-doubt", "DENY", f"a doubtful {kind} fails closed"),
    )


_FACTS = rows_with(
    {"kind": ("fact",)},
    row(
        "fact-of-another",
        "DENY",
        "about the user, not directly relevant, and the answer is for another person",
        **_FOR_ANOTHER,
        relevance=("indirect", "uncertain"),
    ),
    row("fact", "CONTEXT", "stated, current and directly relevant", **_STATED_DIRECT),
    row(
        "fact-beside",
        "CONTEXT",
        "stated, current and useful background",
        **_STATED,
        **_WITH_BACKGROUND,
    ),
    *_lesser_rows("fact"),
)

# A past act is not a wish: experience explains and supports, and is never taken for a preference.
_EXPERIENCES = rows_with(
    {"kind": ("experience",)},
    row(
        "experience-of-another",
        "DENY",
        "the user's past, not directly relevant, and the answer is for another person",
        **_FOR_ANOTHER,
        relevance=("indirect", "uncertain"),
    ),
    row(
        "experience-skill",
        "PERSONALIZE",
        "tells how to explain to somebody who has done it",
        **{**_STATED_DIRECT, "subject": ("user",)},
        mode=("factual", "support"),
        target=("user", "world"),
    ),
    row("experience", "CONTEXT", "directly relevant; a past act is not a wish", **_STATED_DIRECT),
    row(
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
    rows=(
        *_PAST,
        _PAST_CONSTRAINT,
        *_EXCLUSIONS,
        *_CONSTRAINTS,
        *_LOOK_UPS,
        *_PREFERENCES,
        *_BELIEFS,
        *_CLAIMS,
        *_FACTS,
        *_EXPERIENCES,
    ),
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
    columns=columns_of(PS_COLUMNS, "subject", "epistemic", "temporality", "relevance", "target"),
    rows=(
        # First, because the user's own limits do not bind an answer for somebody else.
        row(
            "safety-of-another",
            "CONTEXT",
            "the user's safety constraint, and the answer is for another person",
            **(_LIVE_UNIT | _FOR_ANOTHER),
        ),
        row(
            "safety",
            "APPLY_CONSTRAINT",
            "a safety constraint applies even where other attributes are doubtful",
            **(_LIVE_UNIT | {"subject": _KNOWN["subject"], "temporality": ("current",)}),
        ),
        row(
            "safety-doubt",
            "CONTEXT",
            "a safety constraint whose person or time is doubtful is still shown",
            **_LIVE_UNIT,
        ),
        row("safety-not-here", "DENY", "certainly does not apply to this answer"),
    ),
)
"""The minimum that a unit about safety gets; ours, switched by `safety`."""

PS_PERSONALIZATION = Table(
    name="PS_PERSONALIZATION",
    columns={name: PS_COLUMNS[name] for name in PS_COLUMNS if name not in {"asks_view", "lookup"}},
    rows=(
        row(
            "preference-kept",
            "PERSONALIZE",
            "advice respects a current preference even where other attributes are doubtful",
            kind="preference",
            **(_LIVE_UNIT | {"subject": ("user",), "temporality": ("current",)}),
            **ADVICE,
            target="user",
        ),
        row("no-preference", "DENY", "not a current preference of the user, or not advice"),
    ),
)
"""The minimum that a current preference gets; ours, switched by `personalization_guard`."""

PS_OPEN = Table(
    name="PS_OPEN",
    columns={**PS_COLUMNS, **OF_SAFETY},
    rows=(
        row(
            *SAFETY_EVEN_SO,
            of_safety="yes",
            subject=("user", "third_party", "world", "uncertain"),
        ),
        row("open-bystander", "DENY", "about somebody the answer is not about", **_BYSTANDER),
        row("open-irrelevant", "DENY", "clearly about something else", relevance="none"),
        row(
            "open-past",
            "CONTEXT_UNCERTAIN",
            "no longer holds, and the request is about the past",
            **IN_THE_PAST,
            temporality="superseded",
            epistemic=("verified", "stated", "inferred", "uncertain"),
            kind=("safety", "constraint", "claim", "fact", "experience"),
        ),
        row(
            "open-past-preference",
            "CONTEXT_UNCERTAIN",
            "once liked or disliked, and the request is about the past",
            **IN_THE_PAST,
            temporality="superseded",
            epistemic=("verified", "stated", "inferred", "uncertain"),
            kind="preference",
            target=("user", "world"),
        ),
        row("open-superseded", "DENY", "no longer holds", temporality="superseded"),
        row("open-contradicted", "DENY", "contradicted", epistemic="contradicted"),
        row(
            "open-preference-of-another",
            "DENY",
            "the user's taste is not that of the person whom the answer is for",
            kind="preference",
            lookup="none",
            **_FOR_ANOTHER,
        ),
        row(
            "open-preference-on-facts",
            "DENY",
            "a matter of fact does not depend on what the user likes",
            kind="preference",
            lookup="none",
            **_ON_FACTS,
        ),
        row("open-belief", "DENY", "a belief that was not asked for", kind="belief"),
        row(*NOTHING_AGAINST),
    ),
)
"""The minimum where no model judged: only positive evidence denies. Ours."""
