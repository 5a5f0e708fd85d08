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
    WEIGHTS_FILE: "659c65ed747dada9ee92c0d04b0724da3916e3ef1cabba7d2abe8c71b25893fc",
    IDF_FILE: "e4d4200e0ec695f76bfd2c129404d7b3ca554445f033b405de29df64f7432748",
    CALIBRATION_FILE: "a9e7e83b1eb65c303f884cbd4631b185c478d8c4910065fbc13d3b1e1ec51036",
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

    def score(self, logit: float, *, lacks_detail: bool) -> float:
        """The calibrated score of a logit.

        Args:
            logit: What the network gave.
            lacks_detail: Whether a number, date or name of the candidate is in no turn. It is then
                doubtful at best, whatever surrounds it. Measured on the training memories: of the
                supported ones 1 % have such a number and 3 % such a name, most of them misspelt.
        """
        score = float(1.0 / (1.0 + np.exp(-(self.slope * logit + self.offset))))
        return min(score, self.low) if lacks_detail else score


@dataclass(frozen=True, kw_only=True, eq=False)
class Assets:
    """Everything the verifier needs in addition to the embedder."""

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
    file = folder / name if folder else resources.files("memguard.local").joinpath("data", name)
    try:
        data = file.read_bytes()
    except OSError as error:
        msg = (
            f"The support verifier's file {str(file)!r} cannot be read: {error!r}. "
            "Install langgraph-memguard again"
        )
        raise ConfigurationError(msg, code=ErrorCode.FILE_UNREADABLE) from error
    actual = hashlib.sha256(data).hexdigest()
    if actual != expected:
        msg = (
            f"{str(file)!r} is truncated or altered and was refused: expected sha256 {expected}, "
            f"found {actual}. Install langgraph-memguard again"
        )
        raise ConfigurationError(msg, code=ErrorCode.FILE_UNREADABLE)
    return data
