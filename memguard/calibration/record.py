"""What was measured, kept beside the store: `calibration.json`."""

import json
import os
from pathlib import Path

from pydantic import Field

from memguard.errors import ErrorCode, StoreConfigurationError
from memguard.schema.base import Frozen
from memguard.schema.memory import Moment

RECORD_FILE = "calibration.json"


class CalibrationRecord(Frozen):
    """One judge's last measurement."""

    model: str
    """Its name, as on receipts."""
    variant: str
    """`soft` or `logprob`."""
    k: int
    """Samples per memory."""
    prompt: str
    """Digest of the judge's prompt; empty for the local judge."""
    at: Moment
    """When it was measured."""
    memories: int
    """How many labelled memories were judged."""
    inconclusive: int
    """How many of them gave no score."""
    auc: float
    """The area under the curve."""
    auc_low: float
    """Lower end of its interval."""
    auc_high: float
    """Upper end of its interval."""
    tau: float
    """The threshold that was in force."""
    suggested_tau: float | None
    """The threshold suggested, if there is one."""
    target: float
    """The contamination aimed at."""


class _File(Frozen):
    version: int = 1
    records: tuple[CalibrationRecord, ...] = Field(default=())


def find_records(folder: Path, *, model: str) -> tuple[CalibrationRecord, ...]:
    """The measurements of one model, the latest last.

    Raises:
        StoreConfigurationError: If the file is there and cannot be read.
    """
    found = [one for one in _read(folder / RECORD_FILE).records if one.model == model]
    return tuple(sorted(found, key=lambda one: str(one.at)))


def keep_record(folder: Path, record: CalibrationRecord) -> Path:
    """Write a measurement; one of the same model and variant is replaced.

    Raises:
        StoreConfigurationError: If the file cannot be read or written.
    """
    path = folder / RECORD_FILE
    others = tuple(
        one
        for one in _read(path).records
        if (one.model, one.variant) != (record.model, record.variant)
    )
    body = _File(records=(*others, record)).model_dump_json(indent=1)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: a reader never sees half a file.
        draft = path.with_name(f".{RECORD_FILE}.{os.getpid()}")
        draft.write_text(body + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        msg = f"{str(path)!r} cannot be written ({error.strerror}); name another --store"
        raise StoreConfigurationError(msg, code=ErrorCode.STORE_PATH) from error
    return path


def _read(path: Path) -> _File:
    try:
        return _File.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return _File()
    except OSError as error:
        problem = f"{error.strerror}); check its rights, or name another --store"
    except ValueError as error:  # no JSON, or another shape
        problem = f"{str(error).splitlines()[0]}); delete it and calibrate again"
    msg = f"{str(path)!r} cannot be read ({problem}"
    raise StoreConfigurationError(msg, code=ErrorCode.STORE_PATH)
