"""Measuring a judge on labelled pairs before it is trusted with a store."""

from memguard.calibration.pairs import LabelledMemory, load_pairs
from memguard.calibration.record import CalibrationRecord, find_records, keep_record
from memguard.calibration.run import Measured, measure_judge

__all__ = [
    "CalibrationRecord",
    "LabelledMemory",
    "Measured",
    "find_records",
    "keep_record",
    "load_pairs",
    "measure_judge",
]
