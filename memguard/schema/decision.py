"""Decisions on candidates, and what judges returned: a score, or an inconclusive result."""

from typing import Literal

from memguard.schema.base import Frozen, Text

Outcome = Literal["admit", "quarantine", "reject"]
"""The decision on a candidate.

* `admit`: store it.
* `quarantine`: do not store it yet; a person releases or discards it.
* `reject`: do not store it; its text stays on the receipt.
"""

OnInconclusive = Literal["quarantine", "reject", "admit", "raise"]
"""What happens to a candidate that could not be judged."""

# On every receipt: a code may be added, but an existing one must not be renamed.
ReasonCode = Literal[
    "supported",
    "low_support",
    "inconclusive",
    "duplicate",
    "blank_text",
    "text_too_long",
    "secret",
    "personal_data",
    "instruction",
    "no_user_words",
    "bare_answer",
    "no_source",
    "no_gate",
    "positive_effect",
    "negative_effect",
    "zero_effect",
    "tie_break",
    "reconciled",
    "conflict",
    "human_approved",
    "human_deleted",
    "redacted",
    "undone",
]
"""The reason of a decision.

* `supported`, `low_support`: the support score against its threshold.
* `inconclusive`: too few usable verdicts.
* `duplicate`: the same text is stored already; no new evidence, no model call.
* `blank_text`, `text_too_long`: the candidate cannot be judged; no model call.
* `secret`, `personal_data`: the candidate contains such; it is in quarantine without a model call.
* `instruction`: it instructs the assistant; it is in quarantine without a model call.
* `no_user_words`: it rests on what the assistant, a tool or a document said; no model call.
* `bare_answer`: it rests on an answer such as "yes" without the question; no model call.
* `no_source`: there is no text to check the candidate against; no model call.
* `no_gate`: the guard has no gate, so everything is admitted.
* `positive_effect`, `negative_effect`: the memory's effect on later answers, over three probes.
* `zero_effect`: it had no effect, and the setting for this case decided.
* `tie_break`: it had no effect, and a judge decided.
* `reconciled`: it was compared with the memories near it, and is stored.
* `conflict`: it contradicts a stored memory, nothing tells which holds, and a person decides.
* `human_approved`: a person phrased the memory in a review; no model call.
* `human_deleted`: a person took a stored memory out of memory; no model call.
* `redacted`: `scrub` replaced a stored record by one without its secrets; no model call.
* `undone`: a person took back an earlier decision, which the receipt names; no model call.
"""


class AdmissionDecision(Frozen):
    """A decision, with its reason."""

    outcome: Outcome
    """The decision."""
    reason: ReasonCode
    """The reason as a code, for counting."""
    explanation: Text
    """The reason in one sentence, for a person."""
    method: Text = ""
    """The method that decided, for example `consistency_gate`; empty for the guard's own rules."""


INCONCLUSIVE_OUTCOMES: dict[OnInconclusive, Outcome] = {
    "quarantine": "quarantine",
    "reject": "reject",
    "admit": "admit",
    # The method raises as well; until a person has seen the error, nothing may be stored.
    "raise": "quarantine",
}
"""The outcome of an inconclusive candidate, by setting."""

# Each way in which an answer can fail has its own reason, and none is read as a verdict.
InconclusiveReason = Literal[
    "parse_failure",
    "off_menu",
    "refusal",
    "timeout",
    "provider_error",
    "truncated",
    "too_close",
    "doubtful",
]
"""Why an answer could not be used.

* `parse_failure`: the answer has no value of the requested kind.
* `off_menu`: the value is outside the offered set or range.
* `refusal`: the model declined, or the provider filtered the request or the answer.
* `timeout`: no answer in time, on every attempt.
* `provider_error`: the provider failed, on every attempt.
* `truncated`: the answer ended before the value.
* `too_close`: the local judge's score is in a range where it is wrong as often as right.
* `doubtful`: said word for word, but it does not stand alone, may not last or was taken back.
"""


class Inconclusive(Frozen):
    """No usable verdict. It is neither a label nor a score of zero."""

    reason: InconclusiveReason
    """Why."""
    detail: Text = ""
    """The answer or the error, shortened; never contains an API key."""


class SupportSample(Frozen):
    """One judge's estimate of how well the source supports a candidate."""

    score: float
    """In [0, 1]; 1 is full support."""
    reason: Text = ""
    """The judge's explanation."""
    turn_ids: tuple[str, ...] = ()
    """The turns that the judge cited as evidence; only ids that its prompt contained."""
