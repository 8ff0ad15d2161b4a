"""Whether a difference between two methods is more than chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_ROUNDS, _AT_ONCE = 10, 1_000  # 10,000 exchanges, as many at a time as fit in memory easily


def paired_randomisation(values: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """p-value of the paired randomisation test of two methods on the same queries.

    Under the null hypothesis each query's two values may be exchanged: the sign of their
    difference is a coin. The p-value is the share of random exchanges whose mean difference is at
    least as far from 0 as the one observed, two-sided, the observed one counted in (Smucker, Allan
    and Carterette, CIKM 2007): ``(1 + extreme) / (1 + 10000)``. Deterministic.

    Parameters
    ----------
    values, others : ndarray of shape (queries,)
        One measure of the two methods.

    Returns
    -------
    float
        In (0, 1]; 1 where the methods never differ.
    """
    differences = values - others
    differences = differences[differences != 0.0]  # an exchange of equals changes nothing
    observed = abs(differences.sum()) - 1e-9  # sums of the same numbers differ by rounding
    random = np.random.default_rng(0)
    extreme = 0
    for _ in range(_ROUNDS):
        heads = random.integers(0, 2, (_AT_ONCE, len(differences)), dtype=np.int8)
        sums = 2.0 * (heads @ differences) - differences.sum()
        extreme += int((np.abs(sums) >= observed).sum())
    return (1 + extreme) / (1 + _ROUNDS * _AT_ONCE)
