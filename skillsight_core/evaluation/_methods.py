"""Methods as functions: SkillSight's configurations and the baselines, on one setting."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skillsight_core._background import Floats
from skillsight_core._encoders import Encoder
from skillsight_core._estimator import SkillSight
from skillsight_core._fusion import z_scores
from skillsight_core._ranking import greatest
from skillsight_core._validation import check_embeddings
from skillsight_core.evaluation._baselines import AllButTheTop, Bm25, reciprocal_rank_fusion
from skillsight_core.evaluation._benchmark import Benchmark

Ranking = list[tuple[str, float]]
"""Ids and scores, best first."""

Rank = Callable[[slice], list[Ranking]]
"""Ranks some of the queries: what the clock measures."""

Method = Callable[["Setting"], Rank]
"""Does what is done once for a library, before the first query."""


class Setting:
    """What the methods rank, and what they share; each part is made when it is first needed."""

    def __init__(
        self,
        benchmark: Benchmark,
        encoder: Callable[[], Encoder],
        embeddings: ArrayLike | None,
        query_embeddings: ArrayLike | None,
        query_prompt: str | None,
        depth: int,
    ) -> None:
        self.benchmark = benchmark
        self.queries = list(benchmark.queries.values())
        self.query_prompt = query_prompt
        self.depth = min(depth, len(benchmark.ids))
        self._make_encoder = encoder
        self._given = (embeddings, query_embeddings)

    @cached_property
    def encoder(self) -> Encoder:
        return self._make_encoder()

    @cached_property
    def embeddings(self) -> Floats:
        """Unit vectors of the documents, (n, m)."""
        given = self._given[0]
        if given is None:
            given = self.encoder.encode(list(self.benchmark.texts))
        return check_embeddings(given, self.benchmark.ids, None, of="evaluate")

    @cached_property
    def query_embeddings(self) -> Floats:
        """Unit vectors of the queries, (q, m)."""
        given = self._given[1]
        if given is None:
            prompt = self.query_prompt or ""
            given = self.encoder.encode([prompt + query for query in self.queries])
        names = list(self.benchmark.queries)
        return check_embeddings(given, names, self.embeddings.shape[1], of="evaluate, queries")

    @cached_property
    def library(self) -> SkillSight:
        """The library as it was read; variants are made of it without reading it again."""
        plain = SkillSight(background="none")
        return plain.fit(self.benchmark.texts, self.embeddings, self.benchmark.ids)

    def variant(self, parameters: Mapping[str, Any]) -> SkillSight:
        """The library under another configuration."""
        SkillSight(**parameters)._check_parameters("evaluate")
        return copy.copy(self.library).set_params(**parameters).refresh()

    @cached_property
    def bm25(self) -> Bm25:
        return Bm25(self.benchmark.texts)

    def best(self, scores: NDArray[np.floating]) -> Ranking:
        """The documents with the best of n scores, ``depth`` of them; -inf is not found at all."""
        rows = greatest(scores, self.depth, lambda places: places)
        rows = rows[np.lexsort((rows, -scores[rows]))]
        found = rows[scores[rows] > -np.inf]
        return [(self.benchmark.ids[row], float(scores[row])) for row in found.tolist()]


# -- SkillSight ----------------------------------------------------------------------------------

_PAPER = SkillSight.paper().get_params()

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "dense": {**_PAPER, "background": "none", "lexical": False},
    "sbc": {**_PAPER, "lexical": False},
    "lec": {**_PAPER, "semantic": False},
    "dense+lec": {**_PAPER, "background": "none"},
    "paper": _PAPER,
    "default": SkillSight().get_params(),
}


def skillsight(parameters: Mapping[str, Any]) -> Method:
    def method(setting: Setting) -> Rank:
        fitted = setting.variant(parameters)
        vectors = setting.query_embeddings

        def rank(part: slice) -> list[Ranking]:
            ranked = fitted.rank_batch(setting.queries[part], vectors[part], k=setting.depth)
            return [[(hit.id, hit.score) for hit in hits] for hits in ranked]

        return rank

    return method


# -- baselines -----------------------------------------------------------------------------------


def _bm25(setting: Setting) -> Rank:
    index = setting.bm25

    def one(query: str) -> Ranking:
        scores = index.scores(query)
        return setting.best(np.where(scores > 0, scores, -np.inf))

    return lambda part: [one(query) for query in setting.queries[part]]


def _by_products(documents: Floats, queries: Floats, setting: Setting) -> Rank:
    return lambda part: [setting.best(scores) for scores in queries[part] @ documents.T]


def _abtt(setting: Setting) -> Rank:
    transform = AllButTheTop(setting.embeddings)
    return _by_products(transform(setting.embeddings), transform(setting.query_embeddings), setting)


def _rrf(setting: Setting) -> Rank:
    documents, vectors, index = setting.embeddings, setting.query_embeddings, setting.bm25

    def rank(part: slice) -> list[Ranking]:
        pairs = zip(setting.queries[part], vectors[part] @ documents.T, strict=True)
        return [
            setting.best(reciprocal_rank_fusion(dense, index.scores(query)))
            for query, dense in pairs
        ]

    return rank


def _bm25_sbc(setting: Setting) -> Rank:
    """The published fusion over the published candidates, BM25 in the place of s_lex."""
    documents, index = setting.embeddings, setting.bm25
    fitted = setting.variant(CONFIGURATIONS["sbc"])
    projected = fitted.project(setting.query_embeddings)

    def one(query: str, semantic: NDArray[np.floating]) -> Ranking:
        rows = greatest(semantic, fitted.pool_size, lambda places: places)
        lexical = np.maximum(z_scores(index.scores(query)[rows]), 0.0)
        scores = np.full(len(semantic), -np.inf)
        scores[rows] = z_scores(semantic[rows].astype(np.float64)) + lexical
        return setting.best(scores)

    return lambda part: [
        one(query, semantic)
        for query, semantic in zip(
            setting.queries[part], projected[part] @ documents.T, strict=True
        )
    ]


METHODS: dict[str, Method] = {
    **{name: skillsight(parameters) for name, parameters in CONFIGURATIONS.items()},
    "bm25": _bm25,
    "rrf": _rrf,
    "abtt": _abtt,
    "bm25+sbc": _bm25_sbc,
}
