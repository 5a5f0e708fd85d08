"""Stores the results of measurements next to the store, in `calibration.json`."""

import json
import os
from pathlib import Path

from pydantic import Field

from memguard.errors import ErrorCode, StoreConfigurationError
from memguard.schema.base import Frozen
from memguard.schema.memory import Moment

RECORD_FILE = "calibration.json"


class CalibrationRecord(Frozen):
    """The latest measurement of one judge."""

    model: str
    """The judge's name, as on receipts."""
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
    """How many of them have no score."""
    auc: float
    """The area under the curve."""
    auc_low: float
    """Lower end of the AUC's 95 % interval."""
    auc_high: float
    """Upper end of the AUC's 95 % interval."""
    tau: float
    """The threshold in force."""
    suggested_tau: float | None
    """The suggested threshold; `None` if no threshold meets the target."""
    target: float
    """The contamination aimed at."""


class _RecordsFile(Frozen):
    version: int = 1
    records: tuple[CalibrationRecord, ...] = Field(default=())


def find_records(folder: Path, *, model: str) -> tuple[CalibrationRecord, ...]:
    """The measurements of one model, the latest last.

    Raises:
        StoreConfigurationError: If the file exists and cannot be read.
    """
    records = [record for record in _read(folder / RECORD_FILE).records if record.model == model]
    return tuple(sorted(records, key=lambda record: str(record.at)))


def keep_record(folder: Path, record: CalibrationRecord) -> Path:
    """Store a measurement, replacing an earlier one of the same model and variant.

    Returns:
        The path of the file.

    Raises:
        StoreConfigurationError: If the file cannot be read or written.
    """
    path = folder / RECORD_FILE
    others = tuple(
        other
        for other in _read(path).records
        if (other.model, other.variant) != (record.model, record.variant)
    )
    body = _RecordsFile(records=(*others, record)).model_dump_json(indent=1)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Written to another file first, so that a reader never sees half a file.
        draft = path.with_name(f".{RECORD_FILE}.{os.getpid()}")
        draft.write_text(body + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        msg = f"{str(path)!r} cannot be written ({error.strerror}); name another --store"
        raise StoreConfigurationError(msg, code=ErrorCode.STORE_PATH) from error
    return path


def _read(path: Path) -> _RecordsFile:
    try:
        return _RecordsFile.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return _RecordsFile()
    except OSError as error:
        problem = f"{error.strerror}); check its rights, or name another --store"
    except ValueError as error:  # no JSON, or another shape
        problem = f"{str(error).splitlines()[0]}); delete it and calibrate again"
    msg = f"{str(path)!r} cannot be read ({problem}"
    raise StoreConfigurationError(msg, code=ErrorCode.STORE_PATH)
