"""Matrix products that stay on the calling thread.

OpenBLAS, numpy's usual engine, hands any product of some 260,000 multiplications or more to threads
that spin for one another. Measured on 2 cores beside busy processes: one pass of the network 70 ms
of CPU time in whole products, 2 ms in pieces below that size, with the same result.
"""

import numpy as np

from memguard.local.embedder import Matrix

_LARGEST = 200_000


def product(left: Matrix, right: Matrix) -> Matrix:
    """`left @ right`, in pieces of a few rows of `left`.

    Args:
        left: Rows.
        right: Columns; also cut when a single row would be too much.
    """
    wide = max(1, _LARGEST // max(left.shape[-1], 1))
    if right.shape[1] > wide:
        parts = [product(left, right[:, at : at + wide]) for at in range(0, right.shape[1], wide)]
        return np.concatenate(parts, axis=1)
    rows = max(1, _LARGEST // max(right.size, 1))
    if len(left) <= rows:
        return left @ right
    return np.concatenate([left[at : at + rows] @ right for at in range(0, len(left), rows)])
