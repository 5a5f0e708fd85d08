"""The trained head: features of a query and a memory in, a score from 0 to 1 out."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from memguard.errors import ConfigurationError, ErrorCode
from memguard.local.encoder import Matrix
from memguard.local.relevance.features import RELEVANCE_FEATURES

WEIGHTS_FILE = "relevance.json"
DIGEST = "3715fc0c7f84c790a43cc18cf39e3a4f85f17d17fc3457bf3577a6711de74816"
"""SHA-256 of the file; `python -m benchmarks.relevance.train` prints it."""
CLEARLY_OTHER = 0.25
"""Below this score a memory is clearly of another topic."""
DIRECT = 0.6
"""From this score on, a memory is what the query asks about."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearHead:
    """A logistic regression, scaled so that its thresholds are `CLEARLY_OTHER` and `DIRECT`."""

    columns: tuple[str, ...]
    """Names of its F features."""
    weights: Matrix
    """Shape (F,)."""
    bias: float
    """Added to the weighted features; the sum is a logit."""
    other: float
    """The logit that stands for `CLEARLY_OTHER`."""
    direct: float
    """The logit that stands for `DIRECT`."""

    def score(self, features: Matrix) -> Matrix:
        """Scores of N rows of features, shape (N, F), as shape (N,)."""
        logits = features @ self.weights + self.bias
        low, high = _logit(CLEARLY_OTHER), _logit(DIRECT)
        slope = (high - low) / (self.direct - self.other)
        scaled = np.clip(low + slope * (logits - self.other), -30.0, 30.0)
        return (1.0 / (1.0 + np.exp(-scaled))).astype(np.float32)


def _logit(share: float) -> float:
    return float(np.log(share / (1.0 - share)))


@lru_cache(maxsize=1)
def load_heads() -> Mapping[str, LinearHead]:
    """The packaged heads by name.

    Raises:
        ConfigurationError: If the file is missing, altered, or made for other features.
    """
    file = resources.files("memguard.local").joinpath("data", WEIGHTS_FILE)
    try:
        data = file.read_bytes()
    except OSError as error:
        msg = f"The relevance file {str(file)!r} cannot be read: {error!r}. Install memguard again"
        raise ConfigurationError(msg, code=ErrorCode.FILE_UNREADABLE) from error
    if hashlib.sha256(data).hexdigest() != DIGEST:
        msg = f"The relevance file {str(file)!r} was altered. Install memguard again"
        raise ConfigurationError(msg, code=ErrorCode.FILE_UNREADABLE)
    heads = {name: read_head(values) for name, values in json.loads(data)["heads"].items()}
    if heads["words"].columns != RELEVANCE_FEATURES:
        msg = f"The relevance file {str(file)!r} is for other features. Install memguard again"
        raise ConfigurationError(msg, code=ErrorCode.FILE_UNREADABLE)
    return heads


def read_head(values: Mapping[str, Any]) -> LinearHead:
    """A head from its JSON."""
    weights: Mapping[str, float] = values["weights"]
    columns: Sequence[str] = list(weights)
    return LinearHead(
        columns=tuple(columns),
        weights=np.array([weights[name] for name in columns], dtype=np.float32),
        bias=float(values["bias"]),
        other=float(values["other"]),
        direct=float(values["direct"]),
    )
