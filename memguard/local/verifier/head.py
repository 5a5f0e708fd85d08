"""The weights of the support verifier: how they are loaded, and the network that they belong to.

`load_assets` reads three files and checks their digests. The network has some 170,000 weights over
frozen word vectors and runs in numpy: at this size that is as fast as an inference runtime, and
there is no second session to load. The same layers are trained in `benchmarks.verifier.network`.
"""

import hashlib
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from memguard.errors import ConfigurationError, ErrorCode
from memguard.local.encoder import Matrix
from memguard.local.verifier.alignment import product
from memguard.local.verifier.features import PairFeatures

WEIGHTS_FILE = "verifier.npz"
IDF_FILE = "verifier_idf.json"
CALIBRATION_FILE = "verifier_calibration.json"
PINNED: dict[str, str] = {
    WEIGHTS_FILE: "659c65ed747dada9ee92c0d04b0724da3916e3ef1cabba7d2abe8c71b25893fc",
    IDF_FILE: "e4d4200e0ec695f76bfd2c129404d7b3ca554445f033b405de29df64f7432748",
    CALIBRATION_FILE: "a9e7e83b1eb65c303f884cbd4631b185c478d8c4910065fbc13d3b1e1ec51036",
}
"""Digest of every file; the training script prints the lines to put here."""
CLIP = 5.0
"""The standardised numbers of the whole pair are clipped to [-CLIP, CLIP]."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Turns a logit into a probability by Platt scaling, and limits the rulings."""

    slope: float
    """Slope of the scaling."""
    offset: float
    """Offset of the scaling."""
    tau: float
    """Threshold of support, for a yes or no."""
    low: float
    """A score below this is unsupported."""
    high: float
    """A score of at least this is supported."""

    def score(self, logit: float, *, lacks_detail: bool) -> float:
        """The calibrated score of a logit.

        Args:
            logit: Log-odds of support, from `Head.logit`.
            lacks_detail: Whether a number, date or name of the candidate is in no turn. It is then
                doubtful at best, whatever surrounds it. Measured on the training memories: of the
                supported ones 1 % have such a number and 3 % such a name, most of them misspelt.
        """
        score = float(1.0 / (1.0 + np.exp(-(self.slope * logit + self.offset))))
        return min(score, self.low) if lacks_detail else score


@dataclass(frozen=True, kw_only=True, eq=False)
class Assets:
    """Everything the verifier needs in addition to the embedder."""

    head: "Head"
    """The network."""
    idf: Mapping[str, float]
    """Inverse document frequency by stem."""
    default_idf: float
    """The same for a stem that is not in that table."""
    calibration: Calibration
    """The scale of the scores, and their thresholds."""
    version: str
    """First digits of the weights' digest."""


def load_assets(folder: Path | None = None, *, pinned: Mapping[str, str] = PINNED) -> Assets:
    """Read and check the three files.

    Args:
        folder: The folder of the files; by default the packaged ones.
        pinned: The SHA-256 digest of each file, by name.

    Raises:
        ConfigurationError: If a file is missing, truncated or altered.
    """
    files = {name: _read(name, folder, digest) for name, digest in pinned.items()}
    with np.load(io.BytesIO(files[WEIGHTS_FILE]), allow_pickle=False) as arrays:
        head = Head({name: arrays[name] for name in arrays.files})
    idf = json.loads(files[IDF_FILE])
    return Assets(
        head=head,
        idf=idf["stems"],
        default_idf=idf["default"],
        calibration=Calibration(**json.loads(files[CALIBRATION_FILE])),
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


class Head:
    """An ensemble of networks that differ in their random start; their logits are averaged.

    Args:
        weights: Arrays by their names in `layers.AlignmentNetwork`; the first axis is the network.
    """

    def __init__(self, weights: Mapping[str, Matrix]) -> None:
        count = len(next(iter(weights.values())))
        self._networks = [
            _Network({name: array[index] for name, array in weights.items()})
            for index in range(count)
        ]

    def logit(self, features: PairFeatures) -> float:
        """Log-odds of support, before calibration."""
        return float(np.mean([network.logit(features) for network in self._networks]))


class _Network:
    def __init__(self, weights: Mapping[str, Matrix]) -> None:
        self._weights = {
            name: np.asarray(array, dtype=np.float32) for name, array in weights.items()
        }

    def logit(self, features: PairFeatures) -> float:
        fact = self._words("fact", features.fact, features.fact_aligned, features.fact_scalars)
        fact = self._layer_norm("fact_norm", fact + self._mix(fact))
        context = self._words(
            "context", features.context, features.context_aligned, features.context_scalars
        )
        context = self._layer_norm("context_norm", context)
        # Attention in addition to maximum and mean: one wrong word among ten must still show.
        heat = (fact @ self._weights["attend.weight"].T)[:, 0]
        share = np.exp(heat - heat.max())
        whole = (features.whole - self._weights["mean"]) / self._weights["scale"]
        pooled = np.concatenate(
            [
                (share / share.sum()) @ fact,
                fact.max(axis=0),
                fact.mean(axis=0),
                context.max(axis=0),
                np.clip(whole, -CLIP, CLIP),
            ]
        )
        hidden = _gelu(self._linear("join", pooled[None]))
        return float(self._linear("out", hidden)[0, 0])

    def _words(self, stream: str, vectors: Matrix, aligned: Matrix, scalars: Matrix) -> Matrix:
        a, b = self._linear("project", vectors), self._linear("project", aligned)
        joined = np.concatenate([a, b, np.abs(a - b), a * b, scalars], axis=1)
        hidden = self._linear(f"{stream}_two", _gelu(self._linear(f"{stream}_one", joined)))
        return hidden + self._weights[f"{stream}_place"][: len(hidden)]

    def _mix(self, fact: Matrix) -> Matrix:
        """Combine every word with the word before and the word after it."""
        edge = np.zeros_like(fact[:1])
        before = np.concatenate([edge, fact[:-1]])
        after = np.concatenate([fact[1:], edge])
        return _gelu(self._linear("mix", np.concatenate([before, fact, after], axis=1)))

    def _linear(self, name: str, rows: Matrix) -> Matrix:
        return product(rows, self._weights[f"{name}.weight"].T) + self._weights[f"{name}.bias"]

    def _layer_norm(self, name: str, rows: Matrix) -> Matrix:
        centred = rows - rows.mean(axis=1, keepdims=True)
        # 1e-5 as in torch's LayerNorm, which trained the weights.
        spread = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        return centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(rows: Matrix) -> Matrix:
    # GELU by the tanh approximation, as in training: the exact one would move every score a little
    # (Hendrycks and Gimpel, https://arxiv.org/abs/1606.08415).
    inner: Matrix = np.tanh(math.sqrt(2.0 / math.pi) * (rows + 0.044715 * rows**3)).astype(
        np.float32
    )
    return (0.5 * rows * (1.0 + inner)).astype(np.float32)
