"""The layers of the alignment network in torch, imported only for training."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false
# torch is not installed where memguard is checked: it is needed for training alone.

from typing import Any

import torch
from torch import nn

from memguard.local.verifier.features import CONTEXT_SCALARS, FACT_SCALARS, MAX_CONTEXT, MAX_FACT
from memguard.local.verifier.head import CLIP

_WIDTH, _PROJECTED, _DIMS = 96, 64, 384


class AlignmentNetwork(nn.Module):
    """The layers, with the parameter names that `memguard.local.verifier.head` reads.

    Args:
        globals_: How many numbers describe the pair as a whole.
        dropout: Share of hidden values that are dropped in a step.
    """

    def __init__(self, globals_: int, *, dropout: float) -> None:
        super().__init__()
        self.project = nn.Linear(_DIMS, _PROJECTED)
        self.fact_one, self.fact_two = _stream(FACT_SCALARS)
        self.context_one, self.context_two = _stream(CONTEXT_SCALARS)
        self.fact_place = nn.Parameter(torch.zeros(MAX_FACT, _WIDTH))
        self.context_place = nn.Parameter(torch.zeros(MAX_CONTEXT, _WIDTH))
        self.mix = nn.Linear(3 * _WIDTH, _WIDTH)
        self.fact_norm, self.context_norm = nn.LayerNorm(_WIDTH), nn.LayerNorm(_WIDTH)
        self.attend = nn.Linear(_WIDTH, 1, bias=False)
        # Attention, maximum and mean of the claim; maximum of the context; then the whole pair.
        self.join = nn.Linear(4 * _WIDTH + globals_, _WIDTH)
        self.out = nn.Linear(_WIDTH, 1)
        self.gelu = nn.GELU(approximate="tanh")
        self.drop, self.drop_vectors = nn.Dropout(dropout), nn.Dropout(dropout / 2)
        self.register_buffer("mean", torch.zeros(globals_))
        self.register_buffer("scale", torch.ones(globals_))

    def standardise(self, whole: Any) -> None:
        """Set mean and standard deviation of the numbers of whole pairs.

        Args:
            whole: Shape (pairs, globals_).
        """
        self.mean.copy_(whole.mean(dim=0))
        self.scale.copy_(whole.std(dim=0) + 1e-3)

    def words(self, stream: str, batch: dict[str, Any]) -> Any:
        """Hidden values of a stream's words, from vectors, aligned vectors and scalars."""
        one, two = getattr(self, f"{stream}_one"), getattr(self, f"{stream}_two")
        positions = getattr(self, f"{stream}_place")
        vectors, scalars = batch[stream], batch[f"{stream}_scalars"]
        a, b = self.project(vectors), self.project(batch[f"{stream}_aligned"])
        # Dropout for vectors only: what a word means must not outweigh where it was found.
        parts = torch.cat([a, b, (a - b).abs(), a * b], dim=-1)
        joined = torch.cat([self.drop_vectors(parts), scalars], dim=-1)
        hidden = two(self.drop(self.gelu(one(joined))))
        return hidden + positions[: vectors.shape[1]]

    def forward(self, batch: dict[str, Any]) -> Any:
        """One logit per pair, shape (pairs,)."""
        fact_mask, context_mask = batch["fact_mask"], batch["context_mask"]
        fact = self.words("fact", batch)
        # Padding is zero, as the edges are in `head`, which reads one claim without padding.
        fact = fact * fact_mask[..., None]
        edge = torch.zeros_like(fact[:, :1])
        neighbours = [torch.cat([edge, fact[:, :-1]], 1), fact, torch.cat([fact[:, 1:], edge], 1)]
        fact = self.fact_norm(fact + self.drop(self.gelu(self.mix(torch.cat(neighbours, -1)))))
        context = self.context_norm(self.words("context", batch))
        heat = self.attend(fact)[..., 0].masked_fill(fact_mask == 0, -1e9)
        share = torch.softmax(heat, dim=1)
        # Padding must not win a maximum.
        low = (1 - fact_mask[..., None]) * -1e9
        pooled = [
            (share[..., None] * fact).sum(1),
            (fact + low).amax(1),
            (fact * fact_mask[..., None]).sum(1) / fact_mask.sum(1, keepdim=True),
            (context + (1 - context_mask[..., None]) * -1e9).amax(1),
            ((batch["whole"] - self.mean) / self.scale).clamp(-CLIP, CLIP),
        ]
        hidden = self.gelu(self.join(self.drop(torch.cat(pooled, -1))))
        return self.out(self.drop(hidden))[:, 0]


def _stream(scalars: int) -> tuple[Any, Any]:
    return nn.Linear(4 * _PROJECTED + scalars, _WIDTH), nn.Linear(_WIDTH, _WIDTH)
