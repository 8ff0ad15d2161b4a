"""Ranking by other people's formulas, from the same texts and vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skillsight_core._background import Floats
from skillsight_core._errors import require
from skillsight_core._tokenizer import tokenize


class Bm25:
    """BM25 of bm25s with its usual parameters (Lucene's variant, k1 = 1.5, b = 0.75).

    Texts are taken whole, tokenised as SkillSight does, and a word that a query repeats counts
    once, which does better on long tasks: a difference to SkillSight's lexical evidence is one of
    weighting alone.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        library = require("bm25s", extra="eval", purpose="BM25")
        self._n = len(texts)
        self._index = library.BM25()
        self._index.index([tokenize(text) for text in texts], show_progress=False)

    def scores(self, query: str) -> NDArray[np.float64]:
        """Score of every document, (n,); 0 where no word of the query is."""
        tokens = list(dict.fromkeys(tokenize(query)))
        if not tokens:
            return np.zeros(self._n)
        return np.asarray(self._index.get_scores(tokens), dtype=np.float64)


def reciprocal_rank_fusion(
    dense: NDArray[np.floating], lexical: NDArray[np.floating], k: int = 60
) -> NDArray[np.float64]:
    """``sum over rankings of 1 / (k + rank)`` (Cormack, Clarke and Buettcher, SIGIR 2009).

    Parameters
    ----------
    dense, lexical : ndarray of shape (n,)
        Scores of every document in two rankings; a document that ``lexical`` scores 0 is not in
        that ranking.
    """
    found = lexical > 0
    fused: NDArray[np.float64] = 1.0 / (k + _ranks(dense))
    fused[found] += 1.0 / (k + _ranks(lexical)[found])
    return fused


def _ranks(scores: NDArray[np.floating]) -> NDArray[np.intp]:
    """1 for the best; of equal scores the first is better."""
    ranks = np.empty(len(scores), np.intp)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return ranks


class AllButTheTop:
    """Vectors without their mean and their r first principal components.

    Mu and Viswanath, ICLR 2018, with their rule ``r = round(m / 100)``; scaled back to unit length
    for the cosine.

    Parameters
    ----------
    embeddings : ndarray of shape (n, m)
        The documents' vectors, from which mean and components are learned.
    """

    def __init__(self, embeddings: Floats) -> None:
        self._mean = embeddings.mean(axis=0)
        centred = embeddings - self._mean
        _, axes = np.linalg.eigh(centred.T @ centred)  # ascending
        r = round(embeddings.shape[1] / 100)
        self._top = axes[:, axes.shape[1] - r :]

    def __call__(self, vectors: Floats) -> Floats:
        """Transform vectors of shape (b, m)."""
        centred = vectors - self._mean
        rest = centred - centred @ self._top @ self._top.T
        norms = np.linalg.norm(rest, axis=1, keepdims=True)
        return np.asarray(rest / np.where(norms > 0, norms, 1.0), dtype=np.float32)
