"""The shared background of a library as a subspace, and its removal from the query."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def effective_rank(singular_values: NDArray[np.floating]) -> int:
    """Spectral effective rank: ``ceil(exp(H))``, H the entropy of ``sigma_i**2 / sum sigma**2``.

    From ``sigma_i`` instead of its square the rank grows to a large part of the space and the
    projection takes the meaning away with the background.
    """
    power = np.square(np.asarray(singular_values, dtype=np.float64))
    if power.sum() == 0.0:
        return 0
    share = power[power > 0] / power.sum()
    entropy = float(-(share * np.log(share)).sum())
    return int(np.ceil(np.exp(entropy) - 1e-9))  # exp(log 1) is not to round up to 2


@dataclass(frozen=True)
class Background:
    """An orthonormal basis B of the background.

    Attributes
    ----------
    basis : ndarray of shape (m, r), float32
        Orthonormal columns; r = 0 where nothing is removed.
    singular_values : ndarray of shape (min(rows, m),), float64
        Spectrum of the stacked directions, descending.
    """

    basis: Floats
    singular_values: NDArray[np.float64]

    @classmethod
    def none(cls, n_features: int) -> Background:
        """A background that takes nothing away."""
        return cls(np.zeros((n_features, 0), np.float32), np.zeros(0))

    @classmethod
    def span(cls, directions: NDArray[np.floating], rank: int | None = None) -> Background:
        """The leading right singular vectors of the stacked directions G.

        Parameters
        ----------
        directions : ndarray of shape (rows, m)
            G; each row is scaled to unit length first (otherwise tokens that share documents with
            few others dominate by norm), rows of length zero are left out.
        rank : int, optional
            Number of vectors; None for `effective_rank`. Never more than G has.
        """
        rows = np.asarray(directions, dtype=np.float64)
        norms = np.linalg.norm(rows, axis=1)
        rows = rows[norms > 0] / norms[norms > 0, None]
        # The Gram matrix has the same right singular vectors and stays m x m for any vocabulary.
        power, vectors = np.linalg.eigh(rows.T @ rows)
        power, vectors = np.clip(power[::-1], 0.0, None), vectors[:, ::-1]
        sigma = np.sqrt(power[: min(rows.shape)])
        wanted = effective_rank(sigma) if rank is None else rank
        present = int((sigma > 1e-7 * max(sigma.max(initial=0.0), 1e-300)).sum())
        basis = np.ascontiguousarray(vectors[:, : min(wanted, present)], dtype=np.float32)
        return cls(basis, sigma)

    @cached_property
    def _wide(self) -> NDArray[np.float64]:
        return self.basis.astype(np.float64)

    def project(self, vectors: Floats) -> Floats:
        """Take the background out: ``v - B B^T v``, for (m,) or (n, m), in float32.

        P = I - B B^T is symmetric and idempotent, so ``(P q) . (P d) = (P q) . d``: projecting
        the query alone gives the score of both projected, and no index is ever rebuilt.
        """
        if self.basis.shape[1] == 0:
            return vectors.astype(np.float32)
        wide = vectors.astype(np.float64)
        return (wide - (wide @ self._wide) @ self._wide.T).astype(np.float32)

    def energy(self, vectors: Floats) -> NDArray[np.float64]:
        """Share of each row of (n, m) that lies in the background: ``||B^T v||^2 / ||v||^2``."""
        if self.basis.shape[1] == 0:
            return np.zeros(len(vectors))
        wide = vectors.astype(np.float64)
        inside = np.square(wide @ self._wide).sum(axis=1)
        share: NDArray[np.float64] = np.clip(inside / np.square(wide).sum(axis=1), 0.0, 1.0)
        return share
