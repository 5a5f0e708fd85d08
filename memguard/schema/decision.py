"""What policy ruled."""

from typing import Literal

from memguard.schema.base import Frozen, Text

Outcome = Literal["admit", "quarantine", "reject"]
"""The three rulings on a candidate.

* `admit`: store it.
* `quarantine`: doubtful; keep it aside, to be released or discarded.
* `reject`: do not store it; the receipt keeps its text.
"""

OnInconclusive = Literal["quarantine", "reject", "admit", "raise"]
"""What policy makes of a candidate that could not be judged."""

ReasonCode = Literal[
    "supported",
    "low_support",
    "inconclusive",
    "duplicate",
    "blank_text",
    "text_too_long",
    "no_user_words",
    "no_source",
    "no_gate",
    "positive_effect",
    "negative_effect",
    "zero_effect",
    "tie_break",
    "human_approved",
]
"""Why policy ruled so.

* `supported`, `low_support`: the support score against its threshold.
* `inconclusive`: too few usable verdicts.
* `duplicate`: the same text is stored already; no new evidence, no model call.
* `blank_text`, `text_too_long`: the candidate cannot be judged as it is; no model call.
* `no_user_words`: the conversation holds nothing a user said; no model call.
* `no_source`: there is no text to check the candidate against; no model call.
* `no_gate`: the guard has no gate, so everything is admitted.
* `positive_effect`, `negative_effect`: what the memory did to later answers, over three probes.
* `zero_effect`: it did neither, and the spec says what then; `tie_break`: a judge said so.
* `human_approved`: a person worded the memory in a review; no model call.
"""


class AdmissionDecision(Frozen):
    """A ruling, with its reason."""

    outcome: Outcome
    """The ruling."""
    reason: ReasonCode
    """Why, as a code to count by."""
    explanation: Text
    """Why, in one sentence for a person."""
    method: Text = ""
    """The method that ruled, for example `consistency_gate`; empty for the guard's own rules."""


INCONCLUSIVE_OUTCOMES: dict[OnInconclusive, Outcome] = {
    "quarantine": "quarantine",
    "reject": "reject",
    "admit": "admit",
    # The method raises; until the error is seen, nothing may be stored.
    "raise": "quarantine",
}
"""What an inconclusive candidate becomes, by setting."""


InconclusiveReason = Literal[
    "parse_failure", "off_menu", "refusal", "timeout", "provider_error", "truncated", "too_close"
]
"""Why an answer could not be used.

* `parse_failure`: the answer holds no value of the asked kind.
* `off_menu`: a value, but outside the offered set or range.
* `refusal`: the model declined, or the provider filtered the request or the answer.
* `timeout`: no answer in time, on every attempt.
* `provider_error`: the provider failed, on every attempt.
* `truncated`: the answer was cut off before the value.
* `too_close`: the local judge's score lies where it is as often wrong as right.
"""


class Inconclusive(Frozen):
    """No usable verdict. Never read as a label, and never as zero."""

    reason: InconclusiveReason
    """Why."""
    detail: Text = ""
    """The answer or the error, shortened; holds no key."""


class SupportSample(Frozen):
    """One judge's estimate of how well the source supports a candidate."""

    score: float
    """In [0, 1]; 1 is full support."""
    reason: Text = ""
    """The judge's words."""
    turn_ids: tuple[str, ...] = ()
    """Turns the judge named as evidence; only ids that it was shown."""
