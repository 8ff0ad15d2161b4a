"""Retrieval against labels: by cosine alone, and as the estimator ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skillsight_core._diagnosis._model import GoldRates, Labelled, Ranked
from skillsight_core._library import Library, Rows
from skillsight_core._ranking import Ranking

_BLOCK = 64  # queries whose similarities are computed at once
_DEPTHS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)
_RECALLS = (0.5, 0.75, 0.9, 0.95)
_TOP = 3  # skills of a ranking whose words are looked at

Counts = NDArray[np.int64]  # (2, 2): generic or other token, by not gold or gold skill


def measure(library: Library, rankings: Sequence[Ranking], gold: Sequence[Rows]) -> Labelled:
    """Compare both rankings with the labels.

    Parameters
    ----------
    library : Library
        Compact and not empty.
    rankings : sequence of q Ranking
        One for each labelled query.
    gold : sequence of q arrays
        Rows of its gold skills, at least one each.
    """
    everything = np.arange(library.n_rows)
    before, after = _Tally(library.n_rows), _Tally(library.n_rows)
    anywhere = np.zeros((2, 2), np.int64)
    for start in range(0, len(rankings), _BLOCK):
        block = rankings[start : start + _BLOCK]
        vectors = np.stack([ranking.vector for ranking in block])
        dense = library.similarities(vectors)
        semantic = library.similarities(block[0].background.project(vectors))
        for i, ranking in enumerate(block):
            right = gold[start + i]
            before.add(ranking, np.lexsort((everything, -dense[i])), right)
            after.add(ranking, _whole_order(ranking, semantic[i]), right)
            anywhere += _common_words(ranking, everything, right)
    return Labelled(
        n_queries=len(rankings),
        depths=tuple(before.depths),
        recalls=_RECALLS,
        anywhere=_rates(anywhere),
        before=before.result(),
        after=after.result(),
    )


class _Tally:
    """Adds up one kind of ranking over the queries."""

    def __init__(self, n_skills: int) -> None:
        self.depths = [depth for depth in _DEPTHS if depth < n_skills] + [n_skills]
        self._n_skills = n_skills
        self._n_queries = 0
        self._hard_negatives = 0.0
        self._found = np.zeros(n_skills + 1)  # share of a query's gold at each rank, from 1
        self._common = np.zeros((2, 2), np.int64)

    def add(self, ranking: Ranking, order: Rows, gold: Rows) -> None:
        ranks = np.flatnonzero(np.isin(order, gold)) + 1
        self._n_queries += 1
        self._hard_negatives += (int(ranks[0]) - 1) / max(self._n_skills - len(ranks), 1)
        self._found[ranks] += 1.0 / len(ranks)
        self._common += _common_words(ranking, order[:_TOP], gold)

    def result(self) -> Ranked:
        recall = np.cumsum(self._found) / self._n_queries
        return Ranked(
            hard_negatives=self._hard_negatives / self._n_queries,
            recall=tuple(recall[self.depths].tolist()),
            # Sums of thirds may fall short of the recall by rounding.
            depth_for=tuple(int(np.argmax(recall >= wanted - 1e-9)) for wanted in _RECALLS),
            gold_rates=_rates(self._common),
        )


def _whole_order(ranking: Ranking, similarities: NDArray[np.float32]) -> Rows:
    """All rows as `SkillSight.rank` orders them: the candidates, then the rest by meaning."""
    alive = ranking.library.alive
    ranked = ranking.order(ranking.candidates(similarities, alive))
    rest = np.setdiff1d(np.arange(len(alive)), ranked.rows, assume_unique=True)
    rest = rest[np.lexsort((rest, -similarities[rest]))]
    return np.concatenate([ranked.rows[ranked.order], rest])


def _common_words(ranking: Ranking, rows: Rows, gold: Rows) -> Counts:
    """Triples of the query, a row and a distinct word that both have, by kind of word and row."""
    library = ranking.library
    numbers = library.numbers(list(dict.fromkeys(ranking.tokens)))
    numbers = numbers[numbers >= 0]
    generic = library.statistics.is_generic(library.df(numbers))
    found = library.postings(numbers)
    considered = np.isin(found.rows, rows)
    is_other = ~generic[found.slots[considered]]
    is_gold = np.isin(found.rows[considered], gold)
    return np.bincount(2 * is_other + is_gold, minlength=4).reshape(2, 2)


def _rates(counts: Counts) -> GoldRates:
    return GoldRates(*(float(row[1] / row.sum()) if row.sum() else None for row in counts))
