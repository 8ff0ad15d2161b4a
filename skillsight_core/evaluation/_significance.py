"""Whether a difference between two methods is more than chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

_RESAMPLES = 9_999


def paired_randomisation(values: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """p-value of the paired randomisation test of two methods on the same queries.

    Under the null hypothesis each query's two values may be exchanged: the sign of their
    difference is a coin. The p-value is the share of 9,999 such exchanges (all of them where there
    are fewer) whose mean difference is at least as far from 0 as the one observed, two-sided, the
    observed one counted in (Smucker, Allan and Carterette, CIKM 2007). Deterministic.

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
    if len(differences) == 0:
        return 1.0
    test = stats.permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=_RESAMPLES,
        batch=1_000,
        rng=np.random.default_rng(0),
    )
    return float(test.pvalue)
