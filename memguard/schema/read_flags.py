"""Flags of a read: what a reader of its receipt must know about its limits."""

from typing import Literal

# On every report: a flag may be added, but an existing one must not be renamed.
Flag = Literal[
    "recall_failed",
    "recall_late",
    "local_adjudicator",
    "adjudication_failed",
    "adjudication_late",
    "adjudication_partial",
    "situation_unknown",
    "budget_spent",
    "decomposition_failed",
    "decomposition_refused",
    "evidence_cut",
    "limits_exceeded",
    "instruction_withheld",
    "audience_withheld",
    "prompt_shortened",
]
"""What a reader of a report must know about its limits.

* `recall_failed`, `recall_late`: memories could not be read, or not in time; the read has none.
* `local_adjudicator`: rules judged, not a language model.
* `adjudication_failed`, `adjudication_late`: no unit was judged. Possible safety constraints and
  preferences are context, all other units are denied.
* `adjudication_partial`: some units were not judged and are treated in the same way.
* `situation_unknown`: it is unclear what the query asks for; each unit has the narrowest
  permission over all situations.
* `budget_spent`: the run's budget ended the adjudication.
* `decomposition_failed`: some memories were judged whole, because they could not be decomposed.
* `decomposition_refused`: some memories were judged whole, because their pieces did not say what
  the memory says, in a second answer either, or because they are too long.
* `evidence_cut`: the adjudicator saw only a part of the evidence.
* `limits_exceeded`: constraints alone exceed `max_units` or `max_tokens`.
* `instruction_withheld`: a memory instructs the assistant; look at where it came from.
* `audience_withheld`: memories were left out because others will read the answer.
* `prompt_shortened`: the adjudicator saw only a part of the query, of the dialogue or of a long
  memory, so that its prompt keeps to `prompt_chars`.
"""

# Without the flags of a read that judged everything, though with rules or with less evidence.
DEGRADED: frozenset[Flag] = frozenset(
    {
        "recall_failed",
        "recall_late",
        "adjudication_failed",
        "adjudication_late",
        "adjudication_partial",
        "situation_unknown",
        "budget_spent",
    }
)
"""Flags under which constraints could not be checked completely."""
