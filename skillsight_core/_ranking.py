"""One query against one library: candidates, their channels, their order, the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from skillsight_core._background import Background, Floats
from skillsight_core._evidence import Evidence
from skillsight_core._fusion import Channels, Fusion, Standardised, Values
from skillsight_core._library import Library, Rows
from skillsight_core._result import RankedSkill

_ROUNDING = 1e-5  # more than two ways to multiply unit vectors in float32 ever differ by


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
    """Scored rows, and in ``order`` the positions of those that are ranked, best first."""

    rows: Rows
    channels: Channels
    fused: Standardised
    order: NDArray[np.intp]


@dataclass(frozen=True)
class Ranking:
    """A query, its vector and its words, ready to rank the skills of a library.

    Attributes
    ----------
    vector : ndarray of shape (m,), float32
        Unit vector of the query.
    tokens : sequence of str
        The query's tokens.
    name : int
        Digest of the query as a name.
    """

    library: Library
    background: Background
    options: Options
    vector: Floats
    tokens: Sequence[str]
    name: int

    @cached_property
    def evidence(self) -> Evidence:
        specific = self.options.fusion.specific_only
        return Evidence.of(self.library, self.tokens, beta=self.options.beta, specific=specific)

    @cached_property
    def named(self) -> Rows:
        return self.library.named(self.name)

    @cached_property
    def projected(self) -> Floats:
        return self.background.project(self.vector)

    def similarities(self) -> Floats:
        """Semantic scores of every row, for finding candidates."""
        (scores,) = self.library.similarities(self.projected[None])
        return cast(Floats, scores)

    def candidates(self, similarities: Floats, allowed: NDArray[np.bool_]) -> Rows:
        """Rows of the K best by each channel that finds candidates, ascending."""
        by_meaning, by_words = self.options.semantic, self.options.lexical
        found = []
        if by_words and (self.options.fusion.lexical_candidates or not by_meaning):
            found.append(self.lexical_rows(allowed))
        if by_meaning or not by_words:
            found.append(self.semantic_rows(similarities, allowed))
        return np.flatnonzero(self._flags(*found))

    def semantic_rows(self, similarities: Floats, allowed: NDArray[np.bool_]) -> Rows:
        """Rows of the K best by semantic score.

        A matrix product rounds by position and batch: what is close to the K-th is compared
        exactly, so that a query gets the same candidates alone and among others.
        """
        size = self.options.pool_size
        if np.count_nonzero(allowed) <= size:
            return np.flatnonzero(allowed)
        values = similarities if allowed.all() else np.where(allowed, similarities, -np.inf)
        border = np.partition(values, len(values) - size)[len(values) - size]
        rows = np.flatnonzero(values >= border - _ROUNDING)
        if len(rows) == size:
            return rows
        is_sure = values[rows] > border + _ROUNDING
        sure, close = rows[is_sure], rows[~is_sure]
        exact = _inner(self.library.embeddings(close), self.projected)
        digests = self.library.digests
        first = greatest(exact, size - len(sure), lambda at: digests[close[at]])
        return np.concatenate([sure, close[first]])

    def lexical_rows(self, allowed: NDArray[np.bool_]) -> Rows:
        """Rows of the K best by BM25, those whose name the query is before all."""
        values = self.evidence.leaders
        if len(self.named):
            values = values.copy()
            values[self.named] = np.inf
        rows = np.flatnonzero(values > 0)
        rows = rows[allowed[rows]]
        digests = self.library.digests
        return rows[greatest(values[rows], self.options.pool_size, lambda at: digests[rows[at]])]

    def order(self, rows: Rows) -> Ranked:
        """Score the rows, which are ascending, against each other and put the best first.

        Equal scores are ordered by semantic score, then by row.
        """
        channels = self.channels(rows)
        semantic, lexical = self.options.fusion.combine(channels, len(self.evidence.tokens))
        fused = Standardised(
            semantic if self.options.semantic else np.zeros(len(rows)),
            lexical if self.options.lexical else np.zeros(len(rows)),
        )
        order = np.lexsort((-channels.semantic, -fused.score))  # stable
        return Ranked(rows, channels, fused, order)

    def channels(self, rows: Rows) -> Channels:
        embeddings = self.library.embeddings(rows)
        common = self.evidence.common(rows)
        by_words = self.options.fusion.lexical_candidates  # the other recipe has no use for BM25
        return Channels(
            dense=_inner(embeddings, self.vector),
            semantic=_inner(embeddings, self.projected),
            coverage=self.evidence.coverage(rows, common),
            bm25=self.evidence.bm25(rows, common) if by_words else np.zeros(len(rows)),
            focus=self.library.focus[rows],
            named=self._flags(self.named)[rows],
        )

    def _flags(self, *rows: Rows) -> NDArray[np.bool_]:
        flags = np.zeros(self.library.n_rows, np.bool_)
        for some in rows:
            flags[some] = True
        return flags

    def beyond(self, ranked: Ranked, allowed: NDArray[np.bool_]) -> Ranked:
        """Continue the ranking with the rows that were no candidates, in semantic order.

        They share one score, just below that of the last candidate.
        """
        rows = np.flatnonzero(allowed & ~self._flags(ranked.rows))
        channels = self.channels(rows)
        last = float(ranked.fused.score.min()) if len(ranked.rows) else 0.0
        fused = Standardised(np.full(len(rows), np.nextafter(last, -np.inf)), np.zeros(len(rows)))
        order = np.argsort(-channels.semantic, kind="stable") + len(ranked.rows)
        return Ranked(
            np.concatenate([ranked.rows, rows]),
            Channels._make(map(np.concatenate, zip(ranked.channels, channels, strict=True))),
            Standardised._make(map(np.concatenate, zip(ranked.fused, fused, strict=True))),
            np.concatenate([ranked.order, order]),
        )

    def shortened(self, ranked: Ranked) -> Ranked:
        """The ranking without what has too little evidence or repeats the text of a better one."""
        order = ranked.order
        if self.options.min_evidence > 0.0:
            order = order[ranked.channels.coverage[order] >= self.options.min_evidence]
        if self.options.unique_texts:
            _, first = np.unique(self.library.digests[ranked.rows[order]], return_index=True)
            order = order[np.sort(first)]
        return ranked._replace(order=order)

    def results(self, ranked: Ranked, k: int) -> list[RankedSkill]:
        """Describe the first k."""
        return [self.result(ranked, place) for place in range(min(k, len(ranked.order)))]

    def result(self, ranked: Ranked, place: int) -> RankedSkill:
        """Describe the one at this place, from 0."""
        at = int(ranked.order[place])
        row = int(ranked.rows[at])
        has, tokens = self.evidence.matched(row), self.evidence.tokens
        semantic_z, lexical_z = float(ranked.fused.semantic[at]), float(ranked.fused.lexical[at])
        return RankedSkill(
            id=self.library.id_at(row),
            rank=place + 1,
            score=semantic_z + max(lexical_z, 0.0),  # `fused.score` would add up all rows
            semantic=float(ranked.channels.semantic[at]),
            lexical=float(ranked.channels.coverage[at]),
            semantic_z=semantic_z,
            lexical_z=lexical_z,
            dense=float(ranked.channels.dense[at]),
            matched_tokens=tuple(t for t, m in zip(tokens, has, strict=True) if m),
            unmatched_tokens=tuple(t for t, m in zip(tokens, has, strict=True) if not m),
        )


def greatest(
    values: NDArray[np.floating], size: int, ties: Callable[[Rows], NDArray[np.integer]]
) -> Rows:
    """Positions of the greatest values, in any order; of equal ones those with the least ``ties``.

    Candidates that tie are told apart by what they are (their digests), not by where they stand:
    a library that was read in another order has the same ones.
    """
    if size >= len(values):
        return np.arange(len(values))
    border = np.partition(values, len(values) - size)[len(values) - size] if size else np.inf
    places = np.flatnonzero(values >= border)
    if len(places) == size:
        return places
    return places[np.lexsort((ties(places), -values[places]))[:size]]


def _inner(embeddings: Floats, vector: Floats) -> Values:
    if len(embeddings) == 0:
        return np.zeros(0)
    # Not a matrix product: this adds up every row in one order, so equal rows get equal scores.
    return cast(Values, np.vecdot(embeddings, vector).astype(np.float64))
