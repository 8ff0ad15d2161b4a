"""Lexical evidence: which of the query's words a skill contains, and what they weigh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skillsight_core._library import Library, Postings, Rows

# BM25's usual constants: how fast repetitions saturate, how much length counts.
_K1, _B = 1.5, 0.75


@dataclass(frozen=True)
class Evidence:
    """The words of one query, weighed and looked up in a library.

    Attributes
    ----------
    tokens : tuple of str
        Distinct words of the query that count, in its order.
    df : ndarray of shape (t,), int32
        Their document frequencies; 0 for words that no skill contains.
    weights : ndarray of shape (t,), float64
        ``w(t) = idf(t) * (1 - df(t) / N)**beta``.
    postings : Postings
        Every occurrence of them in the library.
    """

    library: Library
    tokens: tuple[str, ...]
    df: NDArray[np.int32]
    weights: NDArray[np.float64]
    postings: Postings

    @classmethod
    def of(
        cls, library: Library, tokens: Sequence[str], *, beta: float, specific: bool
    ) -> Evidence:
        r"""Look up the distinct tokens of a query.

        Parameters
        ----------
        tokens : sequence of str
            Tokens of the query, repetitions allowed.
        beta : float
            Exponent of the weight.
        specific : bool
            Leave generic tokens out: ``T_q_sp = T(q) \\ T_g``. Words that the library never uses
            stay, with df = 0.
        """
        distinct = list(dict.fromkeys(tokens))
        numbers = library.numbers(distinct)
        df = library.df(numbers)
        if specific:
            kept = np.flatnonzero(~library.statistics.is_generic(df))
            distinct, numbers, df = [distinct[i] for i in kept], numbers[kept], df[kept]
        weights = library.statistics.weight(df, beta)
        return cls(library, tuple(distinct), df, weights, library.postings(numbers))

    def coverage(self) -> NDArray[np.float64]:
        """Weighted share of the query's words in each row, (rows,) in [0, 1].

        ``s_lex(q, d) = sum_t w(t) [t in d] / sum_t w(t)``; 0 where there is no word to cover.
        """
        total = self.weights.sum()
        if total == 0.0:
            return np.zeros(self.library.n_rows)
        covered: NDArray[np.float64] = self._sum(self.weights[self.postings.slots]) / total
        return covered

    def bm25(self) -> NDArray[np.float64]:
        """BM25 of the query's words in each row, (rows,), at least 0.

        ``sum_t ln(1 + (N - df + 0.5) / (df + 0.5)) * tf (k1 + 1) / (tf + k1 (1 - b + b l))`` with
        ``l = |d| / mean |d|`` (Robertson and Zaragoza 2009, with Lucene's idf).
        """
        statistics = self.library.statistics
        n, df, tf = statistics.n_skills, self.df, self.postings.repeats.astype(np.float64)
        idf = np.log1p((n - df + 0.5) / (df + 0.5))
        length = self.library.lengths[self.postings.rows] / statistics.mean_length
        gain = tf * (_K1 + 1.0) / (tf + _K1 * (1.0 - _B + _B * length))
        return self._sum(idf[self.postings.slots] * gain)

    def matched(self, rows: Rows) -> NDArray[np.bool_]:
        """Which of the tokens each of the given rows contains, (len(rows), t)."""
        found = np.zeros((len(rows), len(self.tokens)), np.bool_)
        position = np.full(self.library.n_rows, -1, np.intp)
        position[rows] = np.arange(len(rows))
        at = position[self.postings.rows]
        found[at[at >= 0], self.postings.slots[at >= 0]] = True
        return found

    def _sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        rows, n_rows = self.postings.rows, self.library.n_rows
        return np.bincount(rows, weights=values, minlength=n_rows).astype(np.float64, copy=False)
