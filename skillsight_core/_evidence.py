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
        return cls(library, tuple(distinct), numbers, df, library.statistics.weight(df, beta))

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

    def repeats(self, rows: Rows) -> Repeats:
        """How often each row contains each token, (t, len(rows))."""
        found = np.zeros((len(self.tokens), len(rows)), np.uint16)
        found[self.is_common] = self.library.repeats(self.numbers[self.is_common], rows)
        place = np.full(self.library.n_rows, -1, np.int32)
        place[rows] = np.arange(len(rows))
        at = place[self.postings.rows]
        here = at >= 0
        found[self.postings.slots[here], at[here]] = self.postings.repeats[here]
        return found

    def coverage(self, repeats: Repeats) -> Values:
        """Weighted share of the query's words in each row, in [0, 1].

        ``s_lex(q, d) = sum_t w(t) [t in d] / sum_t w(t)``; 0 where there is no word to cover.
        """
        # The last column has every word. Not a matrix product: all columns are added up in one
        # order, so equal rows are equal, none is above the last, and full coverage is exactly 1.
        present = np.column_stack([repeats > 0, np.ones(len(self.tokens), np.bool_)])
        covered = (self.weights[:, None] * present).sum(axis=0)
        total = covered[-1]
        return cast(Values, covered[:-1] / total if total > 0.0 else np.zeros(repeats.shape[1]))

    def bm25(self, repeats: Repeats, rows: Rows) -> Values:
        """BM25 of the query's words in each row, at least 0.

        ``sum_t ln(1 + (N - df + 0.5) / (df + 0.5)) * tf (k1 + 1) / (tf + k1 (1 - b + b l))`` with
        ``l = |d| / mean |d|`` (Robertson and Zaragoza 2009, with Lucene's idf).
        """
        gain = self._gain(repeats.astype(np.float64), rows)
        return cast(Values, (self.idf[:, None] * gain).sum(axis=0))

    def leaders(self) -> Values:
        """BM25 of every row of the library by the words that are not common.

        Common words have most of the postings and say the least; left out here, they count for
        whoever is a candidate.
        """
        rows, slots, repeats = self.postings
        gain = self.idf[slots] * self._gain(repeats.astype(np.float64), rows)
        scores = np.bincount(rows, weights=gain, minlength=self.library.n_rows)
        return scores.astype(np.float64, copy=False)

    def matched(self, rows: Rows) -> NDArray[np.bool_]:
        """Which of the tokens each row contains, (len(rows), t); for a few rows."""
        found = np.zeros((len(rows), len(self.tokens)), np.bool_)
        for place, row in enumerate(rows.tolist()):
            tokens = self.library.tokens_of(row)
            if len(tokens):
                at = np.searchsorted(tokens, self.numbers)
                found[place] = tokens[np.minimum(at, len(tokens) - 1)] == self.numbers
        return found

    @cached_property
    def idf(self) -> Values:
        """BM25's own IDF of the tokens, which is never negative."""
        n_skills = self.library.statistics.n_skills
        return np.log1p((n_skills - self.df + 0.5) / (self.df + 0.5))

    def _gain(self, repeats: Values, rows: Rows | Ints) -> Values:
        norm = _K1 * (1.0 - _B + _B * self.library.relative_lengths[rows])
        return repeats * (_K1 + 1.0) / (repeats + norm)
