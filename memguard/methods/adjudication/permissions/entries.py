"""The tables of Factor-Compiled Admission (FC), which looks whole entries up by nine steps.

The paper (arXiv 2610.11188, section 3.2) gives the order of the steps and their asymmetry:
constraints and current preferences fail open, beliefs and unverified facts fail closed.
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
from memguard.methods.adjudication.tables import Table
from memguard.schema.units import Epistemic, FactorRole, Scope, SubjectMatch, Temporal, Utility

FC_COLUMNS: Values = {
    "scope": get_args(Scope),
    "subject": get_args(SubjectMatch),
    "role": get_args(FactorRole),
    "epistemic": get_args(Epistemic),
    "temporal": get_args(Temporal),
    "utility": get_args(Utility),
    "allowed": ("given", "empty"),
    **SITUATION,
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
    row("1-subject", "DENY", "about another person", subject="mismatch"),
    row("2-scope", "DENY", "meant for other situations", scope="out"),
    row(
        "2-nothing-allowed",
        "DENY",
        "only a part may be used, and no part was named",
        scope="partial",
        allowed="empty",
    ),
)
# In a question about the past, what no longer holds is what is asked for. After the exclusions of
# another person and of other situations, and before those by time.
_FC_PAST = rows_with(
    {
        **IN_THE_PAST,
        "subject": ("match",),
        "scope": ("in", "partial"),
        "temporal": ("superseded", "uncertain"),
        "utility": ("needed",),
    },
    row(
        "past",
        "CONTEXT",
        "once so, and the request is about the past",
        role=("constraint", "fact", "context"),
        epistemic=("verified", "stated"),
    ),
    row(
        "past-preference",
        "CONTEXT",
        "once liked or disliked, and the request is about the past",
        role="preference",
        epistemic=("verified", "stated"),
        target="user",
    ),
    row(
        "past-doubt",
        "CONTEXT_UNCERTAIN",
        "perhaps once so, and the request is about the past",
        role=("fact", "context"),
        epistemic=("inferred", "uncertain"),
    ),
    row(
        "past-view",
        "MENTION_VIEW",
        "a view that the user once had, and the request asks for it",
        role="belief",
        epistemic=("verified", "stated", "inferred"),
        asks_view="yes",
    ),
)
_FC_PAST_CONSTRAINT = row(
    "past-constraint-doubt",
    "CONTEXT",
    "a doubtful constraint of the past, and the request is about the past",
    **IN_THE_PAST,
    role="constraint",
    scope=("in", "partial", "uncertain"),
    subject=("match", "uncertain"),
    epistemic=("verified", "stated", "inferred", "uncertain"),
    temporal=("superseded", "uncertain"),
    utility="needed",
)
_FC_ENDED = (
    row("3-superseded", "DENY", "no longer holds", temporal="superseded"),
    row("3-contradicted", "DENY", "contradicted", epistemic="contradicted"),
    # Not for constraints: whether one helps this answer does not matter, because it limits it.
    row(
        "4-no-use",
        "DENY",
        "adds nothing to this answer",
        utility="none",
        role=("preference", "belief", "fact", "context"),
    ),
)
_FC_CONSTRAINTS = rows_with(
    {"role": ("constraint",)},
    row(
        "5-constraint",
        "APPLY_CONSTRAINT",
        "a constraint, and nothing about it is uncertain",
        **_CERTAIN,
    ),
    row(
        "5-constraint-doubt", "CONTEXT", "a doubtful constraint fails open: it is shown as context"
    ),
)
_FC_PREFERENCES = rows_with(
    {"role": ("preference",)},
    # Before the two rows that admit: this one holds for certain preferences as well.
    row(
        "6-preference-on-facts",
        "DENY",
        "a matter of fact does not depend on what the user likes",
        mode="factual",
        target="world",
    ),
    row(
        "6-preference",
        "PERSONALIZE",
        "a current preference, and nothing about it is uncertain",
        **_CERTAIN,
    ),
    row(
        "6-preference-doubt", "CONTEXT", "a doubtful preference fails open: it is shown as context"
    ),
)
_FC_BELIEFS = rows_with(
    {"role": ("belief",)},
    row(
        "7-belief-of-user",
        "MENTION_VIEW",
        "a view of the user, and the answer is about the user",
        **_CERTAIN,
        target="user",
    ),
    row(
        "7-belief-asked-for",
        "MENTION_VIEW",
        "the query asks for the user's view",
        **_CERTAIN,
        asks_view="yes",
    ),
    row("7-belief", "DENY", "a belief fails closed: doubtful, or not asked for"),
)
_FC_FACTS = rows_with(
    {"role": ("fact",)},
    row("8-fact-verified", "CONTEXT", "a verified fact", epistemic="verified"),
    row(
        "look-up-fact",
        "CONTEXT",
        "the request looks up what the user told, and this was stated and is current",
        **{**_CERTAIN, "epistemic": ("stated",)},
        **LOOK_UP,
        utility="needed",
    ),
    row(
        "look-up-fact-doubt",
        "CONTEXT_UNCERTAIN",
        "the request looks it up, and something about it is doubtful",
        **LOOK_UP,
        utility="needed",
    ),
    row(
        "8-fact-unverified",
        "CONTEXT_UNCERTAIN",
        "an unverified fact, and nothing else about it is uncertain",
        **_CERTAIN,
    ),
    row("8-fact-doubt", "DENY", "an unverified fact fails closed"),
)
_FC_CONTEXT = rows_with(
    {"role": ("context",)},
    row("9-context", "CONTEXT", "background, and nothing about it is uncertain", **_CERTAIN),
    row("9-context-doubt", "CONTEXT_UNCERTAIN", "doubtful background"),
)

FC_TABLE = Table(
    name="FC_TABLE",
    columns=FC_COLUMNS,
    rows=(
        *_FC_EXCLUSIONS,
        *_FC_PAST,
        _FC_PAST_CONSTRAINT,
        *_FC_ENDED,
        *_FC_CONSTRAINTS,
        *_FC_PREFERENCES,
        *_FC_BELIEFS,
        *_FC_FACTS,
        *_FC_CONTEXT,
    ),
)
"""The nine steps of FC, and rows for look-ups, first match wins."""

# Doubt does not exclude, but a known mismatch, contradiction or replacement still does: a safety
# constraint of somebody else, or one that ended, would only mislead.
_LIVE_ENTRY: Values = {
    "scope": ("in", "partial", "uncertain"),
    "epistemic": ("verified", "stated", "inferred", "uncertain"),
}

FC_SAFETY = Table(
    name="FC_SAFETY",
    columns=columns_of(FC_COLUMNS, "scope", "subject", "epistemic", "temporal"),
    rows=(
        row(
            "safety",
            "APPLY_CONSTRAINT",
            "a safety constraint applies even where other attributes are doubtful",
            **_LIVE_ENTRY,
            subject="match",
            temporal="current",
        ),
        row(
            "safety-doubt",
            "CONTEXT",
            "a safety constraint whose person or time is doubtful is still shown",
            **_LIVE_ENTRY,
            subject=("match", "uncertain"),
            temporal=("current", "uncertain"),
        ),
        row("safety-not-here", "DENY", "certainly does not apply to this answer"),
    ),
)
"""The minimum that an entry about safety gets, whatever its role; ours, switched by `safety`."""

_LIVE_PREFERENCE: Values = {
    "epistemic": _LIVE_ENTRY["epistemic"],
    "role": ("preference",),
    "subject": ("match",),
    "temporal": ("current",),
    "utility": ("needed", "helpful"),
    "target": ("user",),
    **ADVICE,
}

FC_PERSONALIZATION = Table(
    name="FC_PERSONALIZATION",
    columns={name: FC_COLUMNS[name] for name in FC_COLUMNS if name not in {"asks_view", "lookup"}},
    rows=(
        row(
            "preference-kept",
            "PERSONALIZE",
            "advice respects a current preference even where other attributes are doubtful",
            **_LIVE_PREFERENCE,
            scope=("in", "uncertain"),
        ),
        row(
            "preference-part-kept",
            "PERSONALIZE",
            "the same, for the part that may be used",
            **_LIVE_PREFERENCE,
            scope="partial",
            allowed="given",
        ),
        row("no-preference", "DENY", "not a current preference of the user, or not advice"),
    ),
)
"""The minimum that a current preference gets; ours, switched by `personalization_guard`."""

FC_OPEN = Table(
    name="FC_OPEN",
    columns={**FC_COLUMNS, **OF_SAFETY},
    rows=(
        row(*SAFETY_EVEN_SO, of_safety="yes", subject=("match", "uncertain")),
        row("open-subject", "DENY", "about another person", subject="mismatch"),
        row("open-scope", "DENY", "clearly about something else", scope="out"),
        row(
            "open-past",
            "CONTEXT_UNCERTAIN",
            "no longer holds, and the request is about the past",
            **IN_THE_PAST,
            temporal="superseded",
            epistemic=("verified", "stated", "inferred", "uncertain"),
            role=("constraint", "preference", "fact", "context"),
        ),
        row("open-superseded", "DENY", "no longer holds", temporal="superseded"),
        row("open-contradicted", "DENY", "contradicted", epistemic="contradicted"),
        row(
            "open-preference-on-facts",
            "DENY",
            "a matter of fact does not depend on what the user likes",
            role="preference",
            mode="factual",
            target="world",
            lookup="none",
        ),
        row("open-belief", "DENY", "a belief that was not asked for", role="belief"),
        row(*NOTHING_AGAINST),
    ),
)
"""The minimum where no model judged: only positive evidence denies. Ours."""
