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
from skillsight_core._fusion import Channels, Fusion, Standardised
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
    """Rows in the order of the ranking, with their channels."""

    rows: Rows
    channels: Channels
    fused: Standardised

    def take(self, which: NDArray[np.intp]) -> Ranked:
        return Ranked(
            self.rows[which],
            Channels._make(channel[which] for channel in self.channels),
            Standardised._make(channel[which] for channel in self.fused),
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
        options = self.options
        semantic = self.semantic_rows(similarities, allowed)
        if not options.lexical or not (options.fusion.lexical_candidates or not options.semantic):
            return np.sort(semantic)
        lexical = self.lexical_rows(allowed)
        chosen = np.zeros(self.library.n_rows, np.bool_)
        chosen[lexical] = True
        if options.semantic:
            chosen[semantic] = True
        return np.flatnonzero(chosen)

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
        is_sure = values[rows] > border + _ROUNDING
        sure, close = rows[is_sure], rows[~is_sure]
        exact = _inner(self.library.embeddings(close), self.projected)
        digests = self.library.digests
        first = best(exact, size - len(sure), lambda at: digests[close[at]])
        return np.concatenate([sure, close[first]])

    def lexical_rows(self, allowed: NDArray[np.bool_]) -> Rows:
        """Rows of the K best by BM25, best first; those whose name the query is before all."""
        values = self.evidence.leaders()
        values[self.named] = np.inf
        rows = np.flatnonzero((values > 0) & allowed)
        digests = self.library.digests
        return rows[best(values[rows], self.options.pool_size, lambda at: digests[rows[at]])]

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
        repeats = self.evidence.repeats(rows)
        by_words = self.options.fusion.lexical_candidates  # the other recipe has no use for BM25
        return Channels(
            dense=_inner(embeddings, self.vector),
            semantic=_inner(embeddings, self.projected),
            coverage=self.evidence.coverage(repeats),
            bm25=self.evidence.bm25(repeats, rows) if by_words else np.zeros(len(rows)),
            focus=self.library.focus[rows],
            named=np.isin(rows, self.named),
        )

    def beyond(self, ranked: Ranked, allowed: NDArray[np.bool_]) -> Ranked:
        """Continue the ranking with the rows that were no candidates, in semantic order.

        They share one score, just below that of the last candidate.
        """
        rest = allowed.copy()
        rest[ranked.rows] = False
        rows = np.flatnonzero(rest)
        channels = self.channels(rows)
        last = float(ranked.fused.score[-1]) if len(ranked.rows) else 0.0
        fused = Standardised(np.full(len(rows), np.nextafter(last, -np.inf)), np.zeros(len(rows)))
        order = np.lexsort((rows, -channels.semantic))
        parts = (ranked, Ranked(rows, channels, fused).take(order))
        return Ranked(
            np.concatenate([part.rows for part in parts]),
            Channels(*map(np.concatenate, zip(*(part.channels for part in parts), strict=True))),
            Standardised(*map(np.concatenate, zip(*(part.fused for part in parts), strict=True))),
        )

    def shortened(self, ranked: Ranked) -> Ranked:
        """The ranking without what has too little evidence or repeats the text of a better one."""
        keep = ranked.channels.coverage >= self.options.min_evidence
        if self.options.unique_texts:
            _, first = np.unique(self.library.digests[ranked.rows], return_index=True)
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


def best(
    values: NDArray[np.floating],
    size: int,
    ties: Callable[[Rows], NDArray[np.unsignedinteger]] | None = None,
) -> Rows:
    """Positions of the greatest values, best first; equal ones by their ``ties``, then by position.

    Candidates that tie are told apart by what they are (their digests), not by where they stand:
    a library that was read in another order has the same ones.
    """
    places = np.arange(len(values))
    if size < len(values):
        border = np.partition(values, len(values) - size)[len(values) - size] if size else np.inf
        places = np.flatnonzero(values >= border)
    second = places if ties is None else ties(places)
    return places[np.lexsort((second, -values[places]))[:size]]


def _inner(embeddings: Floats, vector: Floats) -> NDArray[np.float64]:
    if len(embeddings) == 0:
        return np.zeros(0)
    # Not a matrix product: this adds up every row in one order, so equal rows get equal scores.
    products = np.einsum("ij,j->i", embeddings, vector)
    return np.asarray(products, dtype=np.float64)
