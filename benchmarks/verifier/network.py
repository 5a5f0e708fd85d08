"""The alignment network in torch, for training only; `memguard.local.verifier.head` runs it.

torch is imported when training begins; memguard does not depend on it.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false
# torch is not installed where memguard is checked: it is needed for this script alone.

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.verifier.encode import Example
from memguard.local.encoder import Matrix

Log = Callable[[str], None]
Score = Callable[[Sequence[Example]], Matrix]
"""Computes logits of examples."""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Hyperparameters of training."""

    seed: int = 20
    """Seed of torch and of the order of examples."""
    epochs: int = 4
    """Passes over the data."""
    batch: int = 64
    """Groups in one step, of about three claims each."""
    rate: float = 1.5e-3
    """Maximum learning rate of AdamW."""
    decay: float = 0.05
    """Weight decay of AdamW."""
    warm_up: float = 0.06
    """Share of steps in which the learning rate rises."""
    dropout: float = 0.25
    """Share of hidden values that are dropped in a step."""
    smoothing: float = 0.02
    """Label smoothing: how far labels are from 0 and 1."""
    pairwise: float = 0.5
    """Weight of the loss that ranks a claim above its changed versions."""


def train_network(
    examples: Sequence[Example],
    weights: NDArray[np.float64],
    *,
    settings: TrainingSettings,
    log: Log,
    after: Callable[[Score], None],
) -> dict[str, Matrix]:
    """Train a network.

    Args:
        examples: The claims; those of one group must be adjacent.
        weights: Weight of each claim in the loss.
        settings: Hyperparameters.
        log: Called with a line of text after each epoch.
        after: Called after each epoch with a function that scores examples.

    Returns:
        The weights by parameter name.
    """
    import torch

    from benchmarks.verifier.layers import AlignmentNetwork

    torch.manual_seed(settings.seed)
    # One thread, so that sums are added in the same order on every machine.
    torch.set_num_threads(1)
    whole = np.stack([example.features.whole for example in examples])
    network = AlignmentNetwork(whole.shape[1], dropout=settings.dropout)
    network.standardise(torch.from_numpy(whole))
    groups, draw = _by_group(examples), np.random.default_rng(settings.seed)
    optimiser, schedule = _optimiser(network, math.ceil(len(groups) / settings.batch), settings)
    for epoch in range(settings.epochs):
        losses = [
            _step(network, optimiser, schedule, _loss(network, examples, batch, weights, settings))
            for batch in _steps(groups, draw, settings.batch)
        ]
        log(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}")
        after(lambda scored: _logits(network, scored))
    return {name: value.numpy().copy() for name, value in network.state_dict().items()}


def _optimiser(network: Any, steps: int, settings: TrainingSettings) -> tuple[Any, Any]:
    """AdamW with a learning rate that rises linearly, then falls to 0 along half a cosine."""
    import torch

    def rate(step: int) -> float:
        return _rate(step, steps * settings.epochs, settings.warm_up)

    optimiser = torch.optim.AdamW(
        network.parameters(), lr=settings.rate, weight_decay=settings.decay
    )
    return optimiser, torch.optim.lr_scheduler.LambdaLR(optimiser, rate)


def _step(network: Any, optimiser: Any, schedule: Any, loss: Any) -> float:
    import torch

    optimiser.zero_grad()
    loss.backward()
    # A single odd group must not throw the weights far off.
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimiser.step()
    schedule.step()
    return float(loss.detach())


def _steps(
    groups: Sequence[list[int]], draw: np.random.Generator, size: int
) -> Iterator[list[list[int]]]:
    order = draw.permutation(len(groups))
    for start in range(0, len(order), size):
        yield [groups[int(index)] for index in order[start : start + size]]


def _rate(step: int, steps: int, warm_up: float) -> float:
    rise = max(1, int(steps * warm_up))
    if step < rise:
        return (step + 1) / rise
    return 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, steps - rise)))


def _by_group(examples: Sequence[Example]) -> list[list[int]]:
    groups: list[list[int]] = []
    for index, example in enumerate(examples):
        # By identity: two groups may be equal, and are still different examples.
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
    settings: TrainingSettings,
) -> Any:
    import torch
    from torch.nn import functional

    rows = [row for group in groups for row in group]
    logits = network(_batch([examples[row] for row in rows]))
    labels = torch.tensor([float(examples[row].claim.supported) for row in rows])
    smooth = labels * (1 - 2 * settings.smoothing) + settings.smoothing
    entropy = functional.binary_cross_entropy_with_logits(logits, smooth, reduction="none")
    # Weighted mean: a step with many claims of a small source does not count more.
    share = torch.tensor([weights[row] for row in rows], dtype=torch.float32)
    loss = (entropy * share).sum() / share.sum()
    # Every correct claim with every changed one of its group: the same context, one detail apart.
    start, correct, changed = 0, [], []
    for group in groups:
        members = range(start, start + len(group))
        start += len(group)
        for right, wrong in itertools.product(members, members):
            if labels[right] > 0 and labels[wrong] == 0:
                correct.append(right)
                changed.append(wrong)
    if correct:
        margins = logits[changed] - logits[correct]
        loss = loss + settings.pairwise * functional.softplus(margins).mean()
    return loss


def _batch(examples: Sequence[Example]) -> dict[str, Any]:
    import torch

    batch = {"whole": torch.from_numpy(np.stack([example.features.whole for example in examples]))}
    for stream in ("fact", "context"):
        size = max(len(getattr(example.features, stream)) for example in examples)
        mask = np.zeros((len(examples), size), dtype=np.float32)
        for name in (stream, f"{stream}_aligned", f"{stream}_scalars"):
            first = getattr(examples[0].features, name)
            rows = np.zeros((len(examples), size, first.shape[1]), dtype=np.float32)
            # Padded with zeros to the longest of the batch; the mask tells the layers which are
            # real.
            for index, example in enumerate(examples):
                matrix = getattr(example.features, name)
                rows[index, : len(matrix)] = matrix
                mask[index, : len(matrix)] = 1.0
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
