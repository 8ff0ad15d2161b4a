"""One query against one library: candidates, their channels, their order, the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from skillsight_core._background import Background, Floats
from skillsight_core._evidence import Evidence
from skillsight_core._fusion import Channels, Fusion, Standardised
from skillsight_core._library import Library, Rows
from skillsight_core._result import RankedSkill


@dataclass(frozen=True)
class Options:
    """What of the estimator's parameters a query needs."""

    fusion: Fusion
    pool_size: int
    beta: float
    semantic: bool
    lexical: bool
    min_evidence: float
    unique_texts: bool


class Ranked(NamedTuple):
    """Rows in the order of the ranking, with their channels."""

    rows: Rows
    channels: Channels
    fused: Standardised

    def take(self, which: NDArray[np.intp]) -> Ranked:
        return Ranked(
            self.rows[which],
            Channels(*(channel[which] for channel in self.channels)),
            Standardised(*(channel[which] for channel in self.fused)),
        )


@dataclass(frozen=True)
class Ranking:
    """A query, its vector and its words, ready to rank the skills of a library.

    Attributes
    ----------
    vector : ndarray of shape (m,), float32
        Unit vector of the query.
    tokens : sequence of str
        The query's tokens.
    """

    library: Library
    background: Background
    options: Options
    vector: Floats
    tokens: Sequence[str]

    @cached_property
    def evidence(self) -> Evidence:
        specific = self.options.fusion.specific_only
        return Evidence.of(self.library, self.tokens, beta=self.options.beta, specific=specific)

    @cached_property
    def coverage(self) -> NDArray[np.float64]:
        return self.evidence.coverage()

    @cached_property
    def bm25(self) -> NDArray[np.float64]:
        return self.evidence.bm25()

    def similarities(self) -> Floats:
        """Semantic scores of every row, for finding candidates."""
        (scores,) = self.library.similarities(self.background.project(self.vector)[None])
        return cast(Floats, scores)

    def candidates(self, similarities: Floats, allowed: NDArray[np.bool_]) -> Rows:
        """Rows of the K best by each channel that finds candidates, ascending."""
        options = self.options
        size = options.pool_size
        semantic = best(np.where(allowed, similarities, -np.inf), size)
        if not options.lexical or not (options.fusion.lexical_candidates or not options.semantic):
            return np.sort(semantic)
        lexical = self.lexical_rows(allowed)
        return np.union1d(semantic, lexical) if options.semantic else np.sort(lexical)

    def lexical_rows(self, allowed: NDArray[np.bool_]) -> Rows:
        """Rows of the K best by BM25, best first; only such as contain a word of the query."""
        found = allowed & (self.coverage > 0)
        return best(np.where(found, self.bm25, -np.inf), self.options.pool_size)

    def order(self, rows: Rows) -> Ranked:
        """Score the rows against each other and put the best first.

        Equal scores are ordered by semantic score, then by row.
        """
        channels = self.channels(rows)
        semantic, lexical = self.options.fusion.combine(channels)
        fused = Standardised(
            semantic if self.options.semantic else np.zeros(len(rows)),
            lexical if self.options.lexical else np.zeros(len(rows)),
        )
        order = np.lexsort((rows, -channels.semantic, -fused.score))
        return Ranked(rows, channels, fused).take(order)

    def channels(self, rows: Rows) -> Channels:
        embeddings = self.library.embeddings(rows)
        projected = self.background.project(self.vector)
        return Channels(
            _inner(embeddings, self.vector),
            _inner(embeddings, projected),
            self.coverage[rows],
            self.bm25[rows] if self.options.fusion.lexical_candidates else np.zeros(len(rows)),
        )

    def beyond(self, ranked: Ranked, similarities: Floats, allowed: NDArray[np.bool_]) -> Ranked:
        """Continue the ranking with the rows that were no candidates, in semantic order.

        They share one score, just below the last candidate's.
        """
        rest = allowed.copy()
        rest[ranked.rows] = False
        rows = np.flatnonzero(rest)
        rows = rows[np.lexsort((rows, -similarities[rows]))]
        last = float(ranked.fused.score[-1]) if len(ranked.rows) else 0.0
        fused = Standardised(np.full(len(rows), np.nextafter(last, -np.inf)), np.zeros(len(rows)))
        parts = (ranked, Ranked(rows, self.channels(rows), fused))
        return Ranked(
            np.concatenate([part.rows for part in parts]),
            Channels(*map(np.concatenate, zip(*(part.channels for part in parts), strict=True))),
            Standardised(*map(np.concatenate, zip(*(part.fused for part in parts), strict=True))),
        )

    def shortened(self, ranked: Ranked) -> Ranked:
        """The ranking without what has too little evidence or repeats the text of a better one."""
        keep = ranked.channels.coverage >= self.options.min_evidence
        if self.options.unique_texts:
            digests = self.library.gather(ranked.rows, "digests")
            _, first = np.unique(digests, return_index=True)
            keep &= np.isin(np.arange(len(ranked.rows)), first)
        return ranked if keep.all() else ranked.take(np.flatnonzero(keep))

    def results(self, ranked: Ranked, k: int, first_rank: int = 1) -> list[RankedSkill]:
        """Describe the first k."""
        top = ranked.take(np.arange(min(k, len(ranked.rows))))
        matched = self.evidence.matched(top.rows)
        tokens = self.evidence.tokens
        return [
            RankedSkill(
                id=self.library.id_at(int(row)),
                rank=first_rank + i,
                score=float(top.fused.score[i]),
                semantic=float(top.channels.semantic[i]),
                lexical=float(top.channels.coverage[i]),
                semantic_z=float(top.fused.semantic[i]),
                lexical_z=float(top.fused.lexical[i]),
                dense=float(top.channels.dense[i]),
                matched_tokens=tuple(t for t, m in zip(tokens, matched[i], strict=True) if m),
                unmatched_tokens=tuple(t for t, m in zip(tokens, matched[i], strict=True) if not m),
            )
            for i, row in enumerate(top.rows)
        ]


def best(values: NDArray[np.floating], size: int) -> Rows:
    """Positions of the greatest values, best first, of equal ones the first; never of -inf."""
    if size < len(values):
        border = np.partition(values, len(values) - size)[len(values) - size]
        above = np.flatnonzero(values > border)
        equal = np.flatnonzero(values == border)[: size - len(above)]
        rows = np.concatenate([above, equal])
    else:
        rows = np.arange(len(values))
    rows = rows[values[rows] > -np.inf]
    ordered: Rows = rows[np.lexsort((rows, -values[rows]))]
    return ordered


def _inner(embeddings: Floats, vector: Floats) -> NDArray[np.float64]:
    if len(embeddings) == 0:
        return np.zeros(0)
    # Not a matrix product: this sums every row alike, so equal rows get equal scores.
    products: NDArray[np.float64] = embeddings.astype(np.float64) * vector.astype(np.float64)
    return cast("NDArray[np.float64]", products.sum(axis=1))
