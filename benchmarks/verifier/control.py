"""The claim-only control: a network that sees a claim but never its context.

Changed claims come from a generator, so that some can be recognised by their wording alone ("a best
of hats"). A judge that reads the context must do better than this control.
"""

from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.verifier.encode import Example
from memguard.local.encoder import Matrix

CONTROL_FILE = "control.npz"
_HIDDEN = 48


def control_inputs(vectors: Sequence[Matrix]) -> Matrix:
    """Mean and maximum of each claim's word vectors, shape (claims, 768)."""
    rows = [np.concatenate([matrix.mean(axis=0), matrix.max(axis=0)]) for matrix in vectors]
    return np.stack(rows).astype(np.float32)


def train_control(
    examples: Sequence[Example], weights: NDArray[np.float64], *, epochs: int = 6, seed: int = 20
) -> dict[str, Matrix]:
    """Train the control on the same claims as the verifier.

    Args:
        examples: The claims.
        weights: Weight of each claim in the loss.
        epochs: Passes over the claims.
        seed: Seed of torch.

    Returns:
        Weights and biases of the two layers, as `control_scores` reads them.
    """
    # torch is needed for training alone and is not a dependency.
    import torch  # pyright: ignore[reportMissingImports]  # needed for training alone
    from torch import nn  # pyright: ignore[reportMissingImports]

    torch.manual_seed(seed)
    inputs = torch.from_numpy(control_inputs([example.features.fact for example in examples]))
    labels = torch.tensor([float(example.claim.supported) for example in examples])
    share = torch.from_numpy(weights.astype(np.float32))
    network: Any = nn.Sequential(
        nn.Linear(inputs.shape[1], _HIDDEN), nn.ReLU(), nn.Dropout(0.2), nn.Linear(_HIDDEN, 1)
    )
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=0.02)
    loss = nn.BCEWithLogitsLoss(reduction="none")
    for _ in range(epochs):
        for rows in torch.randperm(len(labels)).split(256):
            value = (loss(network(inputs[rows])[:, 0], labels[rows]) * share[rows]).mean()
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
    named = network.state_dict()
    names = {"0.weight": "w1", "0.bias": "b1", "3.weight": "w2", "3.bias": "b2"}
    return {names[key]: value.numpy().copy() for key, value in named.items()}


def control_scores(vectors: Sequence[Matrix]) -> list[float]:
    """Logits of claims by the stored control; larger means more likely to be correct.

    Args:
        vectors: Word vectors of each claim.
    """
    file = resources.files("benchmarks.verifier").joinpath("data", CONTROL_FILE)
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
        w1, b1, w2, b2 = (stored[name] for name in ("w1", "b1", "w2", "b2"))
    hidden = np.maximum(control_inputs(vectors) @ w1.T + b1, 0.0)
    return [float(logit) for logit in (hidden @ w2.T + b2)[:, 0]]
