"""The report of a run. Pure."""

from collections.abc import Sequence

from memguard.errors import ErrorCode, MemguardError
from memguard.guard.failures import Failure, error_of
from memguard.guard.state import WriteState
from memguard.schema.receipt import Receipt
from memguard.schema.usage import Usage
from memguard.schema.write import WriteReport

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
