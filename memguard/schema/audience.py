"""Who will read an answer, and what about a memory may not be read by everybody."""

from typing import Literal

Audience = Literal["private", "group"]
"""Who reads the answer.

* `private`: the person who asks, alone.
* `group`: others as well, as in a channel of a chat.
"""

SensitiveTopic = Literal["health", "family", "money", "job_search"]
"""A topic of which a memory is not for a group.

* `health`: illness, body and mind, medication, pregnancy, addiction.
* `family`: relatives, partners, children, and what happens among them.
* `money`: income, debts, savings, and what a person can pay.
* `job_search`: looking for work, applications, giving notice, being dismissed.
"""


def is_private(audience: Audience) -> bool:
    """Whether only the person who asks reads the answer."""
    return audience == "private"
