"""The alignment network: some 170,000 weights over frozen word vectors, run in numpy.

At this size numpy is as fast as an inference runtime, and there is no second session to load. The
same layers are trained in `memguard.bench.verifier.network`.
"""

import math
from collections.abc import Mapping

import numpy as np

from memguard.local.embedder import Matrix
from memguard.local.verifier.features import PairFeatures
from memguard.local.verifier.product import product

CLIP = 5.0
"""The standardised numbers of the whole pair are clipped to [-CLIP, CLIP]."""

# GELU by the tanh approximation, as in training: the exact one would move every score a little
# (Hendrycks and Gimpel, https://arxiv.org/abs/1606.08415).
_GELU = math.sqrt(2.0 / math.pi)


class Head:
    """An ensemble of networks that differ in their random start; their logits are averaged.

    Args:
        weights: Arrays by parameter name, as in `layers.Network`; their first axis is the network.
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
    """One network: weights and the forward pass."""

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
    inner: Matrix = np.tanh(_GELU * (rows + 0.044715 * rows**3)).astype(np.float32)
    return (0.5 * rows * (1.0 + inner)).astype(np.float32)
