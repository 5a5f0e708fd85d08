"""The alignment network in torch, for training only; `memguard.local.verifier.head` runs it.

torch is imported when training begins and is no dependency of memguard.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false
# torch is not installed where memguard is checked: it is needed for this script alone.

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memguard.bench.verifier.encode import Example
from memguard.local.embedder import Matrix
from memguard.local.verifier.features import CONTEXT_SCALARS, FACT_SCALARS, MAX_CONTEXT, MAX_FACT
from memguard.local.verifier.head import CLIP

_WIDTH, _PROJECTED, _DIMS = 96, 64, 384
Log = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How the network is trained."""

    seed: int = 20
    """Where chance starts from."""
    epochs: int = 4
    """Passes over the data."""
    batch: int = 64
    """Groups in one step, about three pairs each."""
    rate: float = 1.5e-3
    """Highest learning rate of AdamW."""
    decay: float = 0.02
    """Weight decay of AdamW."""
    warm_up: float = 0.06
    """Share of steps in which the rate rises."""
    dropout: float = 0.15
    """Share of hidden values left out in a step."""
    smoothing: float = 0.02
    """How far labels are moved from 0 and 1."""
    pairwise: float = 0.5
    """Weight of telling a claim from its changed twin."""


def build_network(globals_: int, *, dropout: float) -> Any:
    """The layers, with the names that `Head` reads them by."""
    import torch
    from torch import nn

    def stream(scalars: int) -> tuple[Any, Any]:
        return nn.Linear(4 * _PROJECTED + scalars, _WIDTH), nn.Linear(_WIDTH, _WIDTH)

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project = nn.Linear(_DIMS, _PROJECTED)
            self.fact_one, self.fact_two = stream(FACT_SCALARS)
            self.context_one, self.context_two = stream(CONTEXT_SCALARS)
            self.fact_place = nn.Parameter(torch.zeros(MAX_FACT, _WIDTH))
            self.context_place = nn.Parameter(torch.zeros(MAX_CONTEXT, _WIDTH))
            self.mix = nn.Linear(3 * _WIDTH, _WIDTH)
            self.fact_norm, self.context_norm = nn.LayerNorm(_WIDTH), nn.LayerNorm(_WIDTH)
            self.attend = nn.Linear(_WIDTH, 1, bias=False)
            self.join = nn.Linear(4 * _WIDTH + globals_, _WIDTH)
            self.out = nn.Linear(_WIDTH, 1)
            self.gelu = nn.GELU(approximate="tanh")
            self.drop = nn.Dropout(dropout)
            self.register_buffer("mean", torch.zeros(globals_))
            self.register_buffer("scale", torch.ones(globals_))

        def words(self, stream: str, batch: dict[str, Any]) -> Any:
            one, two, place = (
                getattr(self, f"{stream}_{part}") for part in ("one", "two", "place")
            )
            own, scalars = batch[stream], batch[f"{stream}_scalars"]
            left, right = self.project(own), self.project(batch[f"{stream}_aligned"])
            parts = [left, right, (left - right).abs(), left * right, scalars]
            hidden = two(self.drop(self.gelu(one(torch.cat(parts, dim=-1)))))
            return hidden + place[: own.shape[1]]

        def forward(self, batch: dict[str, Any]) -> Any:
            fact_mask, context_mask = batch["fact_mask"], batch["context_mask"]
            fact = self.words("fact", batch)
            fact = fact * fact_mask[..., None]
            edge = torch.zeros_like(fact[:, :1])
            beside = [torch.cat([edge, fact[:, :-1]], 1), fact, torch.cat([fact[:, 1:], edge], 1)]
            fact = self.fact_norm(fact + self.drop(self.gelu(self.mix(torch.cat(beside, -1)))))
            context = self.context_norm(self.words("context", batch))
            heat = self.attend(fact)[..., 0].masked_fill(fact_mask == 0, -1e9)
            share = torch.softmax(heat, dim=1)
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

    return Network()


def train_network(
    examples: Sequence[Example],
    weights: NDArray[np.float64],
    *,
    settings: Settings,
    log: Log,
    after: Callable[[Callable[[Sequence[Example]], Matrix]], None] | None = None,
) -> dict[str, Matrix]:
    """Train, and give the weights back by name.

    Args:
        examples: Claims of a group next to one another.
        weights: How much each counts.
        settings: How to train.
        log: Told of progress.
        after: Called after each epoch with a function from examples to logits.
    """
    import torch

    torch.manual_seed(settings.seed)
    torch.set_num_threads(1)
    whole = np.stack([each.features.whole for each in examples])
    network = build_network(whole.shape[1], dropout=settings.dropout)
    network.mean.copy_(torch.from_numpy(whole.mean(axis=0)))
    network.scale.copy_(torch.from_numpy(whole.std(axis=0) + 1e-3))
    groups = _by_group(examples)
    steps = settings.epochs * math.ceil(len(groups) / settings.batch)
    optimiser = torch.optim.AdamW(
        network.parameters(), lr=settings.rate, weight_decay=settings.decay
    )

    def rate(step: int) -> float:
        return _rate(step, steps, settings.warm_up)

    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rate)
    draw = np.random.default_rng(settings.seed)
    for epoch in range(settings.epochs):
        losses: list[float] = []
        network.train()
        order = draw.permutation(len(groups))
        for start in range(0, len(order), settings.batch):
            chosen = [groups[int(index)] for index in order[start : start + settings.batch]]
            loss = _loss(network, examples, chosen, weights, settings)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            losses.append(float(loss.detach()))
        log(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}")
        if after is not None:
            after(lambda some: _logits(network, some))
    return {name: value.numpy().copy() for name, value in network.state_dict().items()}


def _rate(step: int, steps: int, warm_up: float) -> float:
    rise = max(1, int(steps * warm_up))
    if step < rise:
        return (step + 1) / rise
    return 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, steps - rise)))


def _by_group(examples: Sequence[Example]) -> list[list[int]]:
    groups: list[list[int]] = []
    for index, example in enumerate(examples):
        if index and examples[index - 1].group is example.group:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def _loss(
    network: Any,
    examples: Sequence[Example],
    groups: Sequence[Sequence[int]],
    weights: NDArray[np.float64],
    settings: Settings,
) -> Any:
    import torch
    from torch.nn import functional

    rows = [row for group in groups for row in group]
    logits = network(_batch([examples[row] for row in rows]))
    labels = torch.tensor([float(examples[row].claim.supported) for row in rows])
    smooth = labels * (1 - 2 * settings.smoothing) + settings.smoothing
    each = functional.binary_cross_entropy_with_logits(logits, smooth, reduction="none")
    share = torch.tensor([weights[row] for row in rows], dtype=torch.float32)
    loss = (each * share).sum() / share.sum()
    start, rises, falls = 0, [], []
    for group in groups:
        places = range(start, start + len(group))
        start += len(group)
        for right in (place for place in places if labels[place] > 0):
            for left in (place for place in places if labels[place] == 0):
                rises.append(right)
                falls.append(left)
    if rises:
        loss = loss + settings.pairwise * functional.softplus(logits[falls] - logits[rises]).mean()
    return loss


def _batch(examples: Sequence[Example]) -> dict[str, Any]:
    import torch

    batch = {"whole": torch.from_numpy(np.stack([each.features.whole for each in examples]))}
    for stream in ("fact", "context"):
        size = max(len(getattr(each.features, stream)) for each in examples)
        mask = np.zeros((len(examples), size), dtype=np.float32)
        for name in (stream, f"{stream}_aligned", f"{stream}_scalars"):
            first = getattr(examples[0].features, name)
            rows = np.zeros((len(examples), size, first.shape[1]), dtype=np.float32)
            for index, each in enumerate(examples):
                own = getattr(each.features, name)
                rows[index, : len(own)] = own
                mask[index, : len(own)] = 1.0
            batch[name] = torch.from_numpy(rows)
        batch[f"{stream}_mask"] = torch.from_numpy(mask)
    return batch


def _logits(network: Any, examples: Sequence[Example]) -> Matrix:
    import torch

    network.eval()
    with torch.no_grad():
        parts = [
            network(_batch(examples[start : start + 256])).numpy()
            for start in range(0, len(examples), 256)
        ]
    network.train()
    return np.concatenate(parts)
