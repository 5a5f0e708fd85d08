"""The verifier's own files: read once, checked byte for byte, refused when altered."""

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from memguard.errors import ConfigurationError, ErrorCode
from memguard.local.verifier.head import Head

WEIGHTS_FILE = "verifier.npz"
IDF_FILE = "verifier_idf.json"
CALIBRATION_FILE = "verifier_calibration.json"

PINNED: dict[str, str] = {
    WEIGHTS_FILE: "792018f28fddc511f83d05a77a9cb456f5ed55f59c5f159285a4bd4450afea4e",
    IDF_FILE: "30fd3b2e563268921bd3bad526005dbfa5a43029ff5062c7faaf5e093aef0bc6",
    CALIBRATION_FILE: "b008f025b5f58e56168fdac528062c797f82a3817da21cf1a07911496da7507b",
}
"""Digest of every file; the training script prints the lines to put here."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """From a logit to a probability, and from that to a ruling."""

    slope: float
    """Platt's slope."""
    offset: float
    """Platt's offset."""
    tau: float
    """The threshold."""
    low: float
    """Below: unsupported."""
    high: float
    """From here: supported."""

    def probability(self, logit: float) -> float:
        """The calibrated score of a logit."""
        return float(1.0 / (1.0 + np.exp(-(self.slope * logit + self.offset))))


@dataclass(frozen=True, kw_only=True, eq=False)
class Assets:
    """Everything the verifier needs beside the embedder."""

    head: Head
    """The network."""
    idf: Mapping[str, float]
    """Rarity by stem."""
    default_idf: float
    """Rarity of a stem outside that table."""
    calibration: Calibration
    """Scale and threshold."""
    version: str
    """First digits of the weights' digest."""


def load_assets(folder: Path | None = None, *, pinned: Mapping[str, str] = PINNED) -> Assets:
    """Read and check the three files.

    Args:
        folder: Where they are; the package's own when not given.
        pinned: The digest each must have.

    Raises:
        ConfigurationError: A file is missing, truncated or altered.
    """
    files = {name: _read(name, folder, digest) for name, digest in pinned.items()}
    with np.load(io.BytesIO(files[WEIGHTS_FILE]), allow_pickle=False) as arrays:
        head = Head({name: arrays[name] for name in arrays.files})
    idf = json.loads(files[IDF_FILE])
    scale = json.loads(files[CALIBRATION_FILE])
    return Assets(
        head=head,
        idf=idf["stems"],
        default_idf=idf["default"],
        calibration=Calibration(**scale),
        version=f"align-{pinned[WEIGHTS_FILE][:8]}",
    )


def _read(name: str, folder: Path | None, expected: str) -> bytes:
    place = folder / name if folder else resources.files("memguard.local").joinpath("data", name)
    try:
        data = place.read_bytes()
    except OSError as error:
        msg = (
            f"The support verifier's file {str(place)!r} cannot be read: {error!r}. "
            "Install langgraph-memguard again"
        )
        raise ConfigurationError(msg, code=ErrorCode.FILE_UNREADABLE) from error
    found = hashlib.sha256(data).hexdigest()
    if found != expected:
        msg = (
            f"{str(place)!r} is truncated or altered and was refused: expected sha256 {expected}, "
            f"found {found}. Install langgraph-memguard again"
        )
        raise ConfigurationError(msg, code=ErrorCode.FILE_UNREADABLE)
    return data
