"""Failures: records of errors that stopped a part of a run.

A run continues after an error in one of its parts, and raises it at the end. The record is passed
through graph state together with the exception itself, so that the run raises it with its class,
cause and traceback.
"""

import operator

from pydantic import Field, PrivateAttr

from memguard.errors import ErrorCode, GuardError, JudgeError, MemguardError, error_classes
from memguard.schema.base import Frozen

_CODES = frozenset(code.value for code in ErrorCode)


class Failure(Frozen):
    """A record of an error that stopped a part of a run."""

    code: str
    """The error's code; `docs/errors.md` has a heading for it."""
    message: str
    """What happened and what to do."""
    step: str
    """`prepare`, `extract`, `screen`, `gate`, `commit` or `review`; `write` if all of it failed."""
    about: str = ""
    """The id of the candidate, or the turns, that it concerns."""
    error_class: str = Field(default="", exclude_if=operator.not_)
    """Class name of the error; empty on older receipts, and if no error was raised."""
    # Private, so that it never reaches a receipt or a checkpoint.
    _exception: MemguardError | None = PrivateAttr(default=None)

    @property
    def line(self) -> str:
        """The failure in one line."""
        return f"{self.code}: {self.message}"

    @property
    def exception(self) -> MemguardError | None:
        """The error itself, within the process in which it was raised; `None` elsewhere."""
        return self._exception

    def carry(self, error: MemguardError) -> None:
        """Attach the error; it is not part of the value and is never written to disk."""
        self._exception = error

    # pydantic compares private attributes too, and the same failure may have two exceptions.
    def __eq__(self, other: object) -> bool:
        """Whether the other is a failure with the same fields."""
        return isinstance(other, Failure) and dict(self) == dict(other)

    def __hash__(self) -> int:
        """Hash of the fields."""
        return hash(tuple(dict(self).values()))


def failure_of(error: MemguardError, *, step: str, about: str = "") -> Failure:
    """Record an error that stopped a part of a run.

    Args:
        error: The error, as it was caught.
        step: The step that it stopped; see `Failure.step`.
        about: The id of the candidate, or the turns, that it concerns.
    """
    failure = Failure(
        code=error.code,
        message=error.message,
        step=step,
        about=about,
        error_class=type(error).__name__,
    )
    failure.carry(error)
    return failure


def error_of(failure: Failure) -> MemguardError:
    """The error that a failure records.

    Within the process that recorded it, this is the same exception, with its cause and traceback.
    A failure from a checkpoint or a receipt gives a new exception of its `error_class`, or a
    `GuardError` if that class is empty or not loaded.
    """
    if failure.exception is not None:
        return failure.exception
    if failure.code not in _CODES:
        # A pass of the writer without a usable answer records the reason why, not an error code.
        return JudgeError(failure.message, code=ErrorCode.JUDGE_INCONCLUSIVE)
    error_class = error_classes().get(failure.error_class, GuardError)
    return error_class(failure.message, code=ErrorCode(failure.code))
