"""What a unit may be used for in one answer, and the channels that say the same of whole entries.

The six permissions are those of Permission-Semantic Admission (arXiv 2610.11188, section 3.2: five
permitted uses and deny); the names of `PERSONALIZE` and `CONTEXT_UNCERTAIN` are ours. The channels
of Factor-Compiled Admission match them one to one.
"""

from typing import Literal

Permission = Literal[
    "APPLY_CONSTRAINT", "PERSONALIZE", "MENTION_VIEW", "CONTEXT", "CONTEXT_UNCERTAIN", "DENY"
]
"""What a unit may be used for.

* `APPLY_CONSTRAINT`: the answer must keep to it.
* `PERSONALIZE`: it may shape what is offered and how it is put.
* `MENTION_VIEW`: it may be named as the user's own view, never adopted as true.
* `CONTEXT`: background that may inform the answer; neither a wish nor a rule.
* `CONTEXT_UNCERTAIN`: background that may be wrong or out of date.
* `DENY`: it stays out of the prompt.
"""

Channel = Literal[
    "CONSTRAINTS", "PERSONALIZATION", "USER_VIEWS", "SUPPORTING", "UNCERTAIN", "EXCLUDED"
]
"""Where an entry of Factor-Compiled Admission goes; `EXCLUDED` is nowhere."""

CHANNEL_OF: dict[Permission, Channel] = {
    "APPLY_CONSTRAINT": "CONSTRAINTS",
    "PERSONALIZE": "PERSONALIZATION",
    "MENTION_VIEW": "USER_VIEWS",
    "CONTEXT": "SUPPORTING",
    "CONTEXT_UNCERTAIN": "UNCERTAIN",
    "DENY": "EXCLUDED",
}
"""The channel of each permission."""

PERMISSION_OF: dict[Channel, Permission] = {
    channel: permission for permission, channel in CHANNEL_OF.items()
}
"""The permission of each channel."""

SECTIONS: tuple[Permission, ...] = (
    "APPLY_CONSTRAINT",
    "PERSONALIZE",
    "MENTION_VIEW",
    "CONTEXT",
    "CONTEXT_UNCERTAIN",
)
"""The sections of a rendering, in their fixed order."""

WIDTH: dict[Permission, int] = {
    "DENY": 0,
    "CONTEXT_UNCERTAIN": 1,
    "MENTION_VIEW": 2,
    "CONTEXT": 3,
    "PERSONALIZE": 4,
    "APPLY_CONSTRAINT": 5,
}
"""How far a permission lets a unit reach into the answer; more is wider. Ours."""
