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
from memguard.local.relevance.foreign import FOREIGN_FEATURES

WEIGHTS_FILE = "relevance.json"
DIGEST = "b0b5daa08a44813cf68bffff820c8531e1df940da32556d69608ab62e1aff220"
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
    """The logit that stands for `CLEARLY_OTHER` in a read of few memories."""
    never_other: float
    """A memory with this logit is not clearly of another topic, however many others there are."""
    direct: float
    """The logit that stands for `DIRECT`."""

    def score(self, features: Matrix) -> Matrix:
        """Scores of N rows of features, shape (N, F), as shape (N,).

        Recall from many memories returns near ones only, most of which are not meant. So with
        `MANY` memories or more, one below the middle of its read is of another topic unless its
        logit is at least `never_other`.
        """
        logits = features @ self.weights + self.bias
        other = self.other
        if len(logits) >= MANY:
            other = float(np.clip(np.median(logits), self.other, self.never_other))
        low, high = _logit(CLEARLY_OTHER), _logit(DIRECT)
        slope = (high - low) / (self.direct - other)
        # Outside the two thresholds as steep as between them.
        scaled = np.clip(low + slope * (logits - other), -30.0, 30.0)
        return (1.0 / (1.0 + np.exp(-scaled))).astype(np.float32)


MANY = 8
"""From this number of memories on, a read compares them with one another."""


def _logit(share: float) -> float:
    return float(np.log(share / (1.0 - share)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Heads:
    """What was trained."""

    words: LinearHead
    """For English, on `RELEVANCE_FEATURES`."""
    foreign: LinearHead
    """For a query or a memory that is not English, on `FOREIGN_FEATURES`."""
    centre: Matrix
    """Mean vector of texts by the multilingual encoder, shape (384,)."""


@lru_cache(maxsize=1)
def load_heads() -> Heads:
    """The packaged heads.

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
        msg = f"The relevance file {str(file)!r} was altered and refused. Install memguard again"
        raise ConfigurationError(msg, code=ErrorCode.FILE_UNREADABLE)
    values = json.loads(data)
    return Heads(
        words=read_head(values["words"], columns=RELEVANCE_FEATURES),
        foreign=read_head(values["foreign"], columns=FOREIGN_FEATURES),
        centre=np.array(values["centre"], dtype=np.float32),
    )


def read_head(values: Mapping[str, Any], *, columns: Sequence[str]) -> LinearHead:
    """A head from its JSON; `columns` are the features it must be for."""
    weights: Mapping[str, float] = values["weights"]
    if tuple(weights) != tuple(columns):
        msg = f"The relevance head is for {list(weights)}, not {list(columns)}. Train it again"
        raise ConfigurationError(msg, code=ErrorCode.FILE_UNREADABLE)
    return LinearHead(
        columns=tuple(columns),
        weights=np.array([weights[name] for name in columns], dtype=np.float32),
        bias=float(values["bias"]),
        other=float(values["other"]),
        never_other=float(values["never_other"]),
        direct=float(values["direct"]),
    )
