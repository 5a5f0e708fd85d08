"""What a judge said, and the case where it said nothing usable."""

from typing import Literal

from memguard.schema.base import Frozen, Text

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
