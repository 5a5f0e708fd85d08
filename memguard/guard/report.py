"""What a run says of itself. Pure."""

from collections.abc import Sequence

from memguard.errors import ErrorCode, MemguardError
from memguard.guard.failures import error_of
from memguard.guard.state import WriteState
from memguard.schema.usage import Usage
from memguard.schema.write import Failure, WriteReport

_QUIET = frozenset({ErrorCode.BUDGET_EXHAUSTED})
"""Stops that were asked for."""


def build_report(state: WriteState, *, usage: Usage, notes: Sequence[str]) -> WriteReport:
    """Put together what became of every candidate of the run."""
    extracted, ruled = state.extracted, state.ruled
    failures = [failure for each in extracted for failure in each.failures]
    failures += [each.failure for each in ruled if each.failure is not None]
    found = [note for each in extracted for note in each.notes]
    return WriteReport(
        run_id=state.run_id,
        namespace=state.namespace,
        receipts=tuple(each.receipt for each in ruled if each.receipt is not None),
        reviews=state.reviews,
        resumed=state.resumed,
        unjudged=tuple(each.unjudged for each in ruled if each.unjudged is not None),
        unread=tuple(turn_id for each in extracted for turn_id in each.unread),
        failures=tuple(dict.fromkeys(failures)),
        usage=usage,
        notes=tuple(dict.fromkeys([*notes, *state.notes, *found])),
    )


def first_error(failures: Sequence[Failure]) -> MemguardError | None:
    """The failure that stopped the run, as the error it was; `None` when nothing did.

    A pass without a usable answer stops nothing: its turns stay unread and are read again.
    """
    codes = {code.value for code in ErrorCode} - _QUIET
    for failure in failures:
        if failure.code in codes:
            return error_of(failure)
    return None
