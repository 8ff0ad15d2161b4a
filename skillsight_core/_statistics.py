"""What a library's words weigh: document frequencies, IDF, and the border of the generic ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


def inverse_document_frequency(df: NDArray[np.integer], n_skills: int) -> NDArray[np.float64]:
    """IDF of each token: ``idf(t) = ln((N + 1) / (df(t) + 1)) + 1``."""
    return np.log((n_skills + 1) / (df + 1.0)) + 1.0


def otsu_threshold(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Split weighted values in two classes so that the variance between them is greatest.

    For each border between neighbouring values the variance between the classes is
    ``w0 * w1 * (mu0 - mu1)**2`` with the weights and means of the two sides (Otsu 1979). No
    histogram is drawn: every distinct value is its own bin.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Finite values in any order.
    weights : ndarray of shape (n,)
        Positive weights.

    Returns
    -------
    float
        The smallest value of the upper class: the lower class is ``values < threshold``. Of equal
        borders the lowest is taken. With fewer than two distinct values nothing lies below.
    """
    if len(values) == 0:
        return -np.inf
    levels, inverse = np.unique(values, return_inverse=True)
    if len(levels) == 1:
        return float(levels[0])
    mass = np.bincount(inverse, weights=weights)
    w0 = np.cumsum(mass)[:-1]
    w1 = mass.sum() - w0
    m0 = np.cumsum(mass * levels)[:-1]
    m1 = (mass * levels).sum() - m0
    between = w0 * w1 * (m0 / w0 - m1 / w1) ** 2
    return float(levels[np.argmax(between) + 1])


@dataclass(frozen=True)
class Statistics:
    """Document frequencies of a library at one moment, and what follows from them.

    Attributes
    ----------
    df : ndarray of shape (V,), int32
        Number of skills that contain each token of the vocabulary; 0 once all of them are gone.
    n_skills : int
        N, the number of skills.
    total_length : int
        Number of tokens in all skills together, repetitions included.
    """

    df: NDArray[np.int32]
    n_skills: int
    total_length: int

    @property
    def mean_length(self) -> float:
        """Mean number of tokens of a skill; 1 for a library without words."""
        return max(self.total_length / max(self.n_skills, 1), 1.0)

    @cached_property
    def threshold(self) -> float:
        """Otsu's threshold over token occurrences: each token's IDF weighted by its df.

        Weighting every vocabulary entry alike would put the border among content words, since
        most entries occur once.
        """
        counts = np.bincount(self.df)  # how many tokens share each df; IDF depends on df alone
        df = np.flatnonzero(counts[1:]) + 1 if len(counts) > 1 else np.empty(0, np.intp)
        return otsu_threshold(
            inverse_document_frequency(df, self.n_skills), (counts[df] * df).astype(float)
        )

    def idf(self, df: NDArray[np.integer]) -> NDArray[np.float64]:
        """IDF of tokens with the document frequencies ``df`` (0 for a token never seen)."""
        return inverse_document_frequency(df, self.n_skills)

    def weight(self, df: NDArray[np.integer], beta: float) -> NDArray[np.float64]:
        """Weight of tokens as evidence: ``w(t) = idf(t) * (1 - df(t) / N)**beta``."""
        return self.idf(df) * (1.0 - df / max(self.n_skills, 1)) ** beta

    def is_generic(self, df: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Which tokens are generic: in the library, and with an IDF below the threshold."""
        return (df > 0) & (self.idf(df) < self.threshold)
