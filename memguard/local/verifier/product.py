"""Matrix products that stay on the calling thread.

OpenBLAS, numpy's usual backend, hands any product of about 260,000 multiplications or more to
threads that spin while they wait for one another. Measured on 2 busy cores, one pass of the network
took 70 ms of CPU time in whole products, and 2 ms in pieces below that size, with the same result.
"""

import numpy as np

from memguard.local.embedder import Matrix

# Multiplications in one piece: safely below the size at which OpenBLAS starts its threads.
_MAX_MULTIPLICATIONS = 200_000


def product(a: Matrix, b: Matrix) -> Matrix:
    """`a @ b`, computed a few rows of `a` at a time.

    Args:
        a: Shape (M, K).
        b: Shape (K, N); its columns are split as well when one row of `a` would be too much.
    """
    width = max(1, _MAX_MULTIPLICATIONS // max(a.shape[-1], 1))
    if b.shape[1] > width:
        parts = [product(a, b[:, i : i + width]) for i in range(0, b.shape[1], width)]
        return np.concatenate(parts, axis=1)
    rows = max(1, _MAX_MULTIPLICATIONS // max(b.size, 1))
    if len(a) <= rows:
        return a @ b
    return np.concatenate([a[i : i + rows] @ b for i in range(0, len(a), rows)])
