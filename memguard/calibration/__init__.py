"""Measures a judge on labelled memories before it guards a store."""

from memguard.calibration.pairs import LabelledMemory, load_pairs
from memguard.calibration.run import (
    CalibrationRecord,
    JudgeMeasurement,
    find_records,
    keep_record,
    measure_judge,
)

__all__ = [
    "CalibrationRecord",
    "JudgeMeasurement",
    "LabelledMemory",
    "find_records",
    "keep_record",
    "load_pairs",
    "measure_judge",
]
