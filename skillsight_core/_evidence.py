"""Lexical evidence: which of the query's words a skill contains, and what they weigh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from skillsight_core._library import Ints, Library, Postings, Rows

# BM25's usual constants: how fast repetitions saturate, how much length counts.
_K1, _B = 1.5, 0.75
_COMMON, _MANY = 1 / 8, 1000  # what more skills contain, by share and number, is a common word

Values = NDArray[np.float64]
Repeats = NDArray[np.uint16]


@dataclass(frozen=True)
class Evidence:
    """The words of one query, weighed and looked up in a library.

    Attributes
    ----------
    tokens : tuple of str
        Distinct words of the query that count, in its order.
    numbers : ndarray of shape (t,), int32
        Their numbers in the library's vocabulary.
    df : ndarray of shape (t,), int32
        Their document frequencies; 0 for words that no skill contains.
    weights : ndarray of shape (t,), float64
        ``w(t) = idf(t) * (1 - df(t) / N)**beta``.
    """

    library: Library
    tokens: tuple[str, ...]
    numbers: Ints
    df: Ints
    weights: Values

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
            Leave generic tokens out: ``T_q_sp = T(q) \ T_g``. Words that the library never uses
            stay, with df = 0.
        """
        distinct = list(dict.fromkeys(tokens))
        numbers = library.numbers(distinct)
        df = library.df(numbers)
        if specific:
            kept = np.flatnonzero(~library.statistics.is_generic(df))
            distinct, numbers, df = [distinct[i] for i in kept], numbers[kept], df[kept]
        # In steps of 2**-32, so that sums are exact in any order: rows with the same words have
        # the same coverage, none has more than those with all of them, and theirs is exactly 1.
        weights = np.rint(library.statistics.weight(df, beta) * 2.0**32) / 2.0**32
        return cls(library, tuple(distinct), numbers, df, weights)

    @cached_property
    def is_common(self) -> NDArray[np.bool_]:
        """Which tokens are in more than an eighth of the skills, and in more than 1,000."""
        return self.df > max(_MANY, _COMMON * self.library.statistics.n_skills)

    @cached_property
    def postings(self) -> Postings:
        """Every occurrence of the tokens that are not common; slots count all tokens."""
        telling = np.flatnonzero(~self.is_common)
        rows, slots, repeats = self.library.postings(self.numbers[telling])
        return Postings(rows, telling[slots], repeats)

    def common(self, rows: Rows) -> Repeats:
        """How often each row contains each of the common tokens, (common, len(rows))."""
        return self.library.repeats(self.numbers[self.is_common], rows)

    def coverage(self, rows: Rows, common: Repeats) -> Values:
        """Weighted share of the query's words in each row, in [0, 1].

        ``s_lex(q, d) = sum_t w(t) [t in d] / sum_t w(t)``; 0 where there is no word to cover.
        """
        total = self.weights.sum()
        if total == 0.0:
            return np.zeros(len(rows))
        covered = self._added_up(self.weights[self.postings.slots])[rows]
        covered += (self.weights[self.is_common, None] * (common > 0)).sum(axis=0)
        return cast(Values, covered / total)

    def bm25(self, rows: Rows, common: Repeats) -> Values:
        """BM25 of the query's words in each row, at least 0.

        ``sum_t ln(1 + (N - df + 0.5) / (df + 0.5)) * tf (k1 + 1) / (tf + k1 (1 - b + b l))`` with
        ``l = |d| / mean |d|`` (Robertson and Zaragoza 2009, with Lucene's idf).
        """
        from_common = self.idf[self.is_common, None] * self._gain(common, rows)
        return cast(Values, self.leaders[rows] + from_common.sum(axis=0))

    @cached_property
    def leaders(self) -> Values:
        """BM25 of every row of the library by the words that are not common.

        Common words have most of the postings and say the least; left out here, they count for
        whoever is a candidate.
        """
        rows, slots, repeats = self.postings
        return self._added_up(self.idf[slots] * self._gain(repeats, rows))

    def matched(self, row: int) -> list[bool]:
        """Which of the tokens a row contains."""
        present = set(self.library.tokens_of(row).tolist())
        return [number in present for number in self.numbers.tolist()]

    @cached_property
    def idf(self) -> Values:
        """BM25's own IDF of the tokens, which is never negative."""
        n_skills = self.library.statistics.n_skills
        return np.log1p((n_skills - self.df + 0.5) / (self.df + 0.5))

    def _gain(self, repeats: Repeats, rows: Rows | Ints) -> Values:
        norms = _K1 * (1.0 - _B) + _K1 * _B * self.library.relative_lengths[rows]
        tf = repeats.astype(np.float64)
        return tf * (_K1 + 1.0) / (tf + norms)

    def _added_up(self, values: Values) -> Values:
        """Sum over the postings of each row of the library, one value given for each posting."""
        rows = self.postings.rows
        sums = np.bincount(rows, values, self.library.n_rows)
        return sums.astype(np.float64, copy=False)  # integers where there is no posting at all
