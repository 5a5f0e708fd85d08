"""Custom stream events: where a run is, for progress bars and Studio."""

from collections.abc import Sequence
from typing import Literal

from langgraph.config import get_stream_writer
from pydantic import JsonValue

from memguard.errors import ErrorCode, MemguardError
from memguard.schema.failures import Failure, error_of
from memguard.schema.receipt import Receipt
from memguard.schema.usage import Usage
from memguard.write.report import WriteReport
from memguard.write.state import WriteState

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


_QUIET = frozenset({ErrorCode.BUDGET_EXHAUSTED})
"""Codes of stops that the caller asked for."""


def build_report(state: WriteState, *, usage: Usage, notes: Sequence[str]) -> WriteReport:
    """What became of every candidate of the run."""
    extractions, results = state.extracted, state.ruled
    failures = [failure for extraction in extractions for failure in extraction.failures]
    failures += [result.failure for result in results if result.failure is not None]
    extraction_notes = [note for extraction in extractions for note in extraction.notes]
    return WriteReport(
        run_id=state.run_id,
        namespace=state.namespace,
        receipts=receipts_of(state),
        reviews=state.reviews,
        resumed=state.resumed,
        unjudged=tuple(result.unjudged for result in results if result.unjudged is not None),
        unread=tuple(turn_id for extraction in extractions for turn_id in extraction.unread),
        failures=tuple(dict.fromkeys(failures)),
        usage=usage,
        notes=tuple(dict.fromkeys([*notes, *state.notes, *extraction_notes])),
    )


def receipts_of(state: WriteState) -> tuple[Receipt, ...]:
    """The decisions of the run, in order."""
    return tuple(result.receipt for result in state.ruled if result.receipt is not None)


def first_error(failures: Sequence[Failure]) -> MemguardError | None:
    """The failure that stopped the run, as the error it was; `None` when nothing did.

    A pass without a usable answer stops nothing: its turns stay unread and are read again.
    """
    codes = {code.value for code in ErrorCode} - _QUIET
    for failure in failures:
        if failure.code in codes:
            return error_of(failure)
    return None
