"""Custom stream events: where a run is, for progress bars and Studio."""

from typing import Literal

from langgraph.config import get_stream_writer
from pydantic import JsonValue

Step = Literal["planned", "extracted", "screened", "gated", "held", "reviewed", "reported"]
"""What has just happened.

* `planned`: how many turns will be read, in how many passes.
* `extracted`: one pass was read; how many candidates came out.
* `screened`: how many candidates go to the gates, how many are decided already.
* `gated`: one candidate was decided, and durably so.
* `held`: how many candidates wait for a person, and whether the run can ask one.
* `reviewed`: a person ruled on one of them, and it was done.
* `reported`: the run is over.
"""


def emit(step: Step, **details: JsonValue) -> None:
    """Send `{"memguard": "write", "step": ..., ...}` to whoever streams custom events."""
    get_stream_writer()({"memguard": "write", "step": step, **details})
