"""The postprocessor: calibrates the order of the nodes that a query engine retrieved."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle

from skillsight_core import SkillSight
from skillsight_core._steps import arun, run
from skillsight_core._validation import check_count
from skillsight_llamaindex._encoder import check_same_model, query_embedding
from skillsight_llamaindex._fitting import fit_index, fit_nodes
from skillsight_llamaindex._scoring import by_id, described, rank, warn_of_small_pool

_dispatcher = get_dispatcher(__name__)


class SkillSightPostprocessor(BaseNodePostprocessor):
    """Ranks retrieved nodes by calibrated similarity and lexical evidence; keeps the best.

    The pool is what the engine retrieved by plain similarity: let it be large, for instance
    ``index.as_query_engine(similarity_top_k=300, node_postprocessors=[...])``. Where the retriever
    is yours to choose, `SkillSightRetriever` finds a better pool and embeds the query once.

    Parameters
    ----------
    calibrator : SkillSight
        Fitted, with node ids as ids.
    top_n : int, default 3
        How many nodes to keep, at least 0.
    embed_model : BaseEmbedding, optional
        Embeds queries that come without an embedding, and nodes that the calibrator does not
        know; queries fall back to ``Settings.embed_model``.
    unique_documents : bool, default False
        Whether nodes with one ``ref_doc_id`` share one place, taken by the best of them.
    callback_manager : CallbackManager, optional
        Of LlamaIndex.

    Raises
    ------
    ValueError
        top_n is negative, or the model is not the one of the calibrator.

    Warns
    -----
    SkillSightWarning
        Once, when a pool is smaller than the calibration's; and when nodes are not in the library.

    Notes
    -----
    The result is new nodes. ``score`` is `skillsight_core.RankedSkill.score`: higher is better, it
    may be negative and compares within one query only, so a ``SimilarityPostprocessor`` belongs
    before this one, or its cutoff is in standard deviations. ``metadata["skillsight"]`` has the
    decomposition and ``metadata["retrieval_score"]`` the score that came in; language and embedding
    models do not see either.

    ``to_dict`` has the settings, not the library: ``from_dict(data, calibrator=...,
    embed_model=...)`` takes that from `skillsight_core.SkillSight.load`.
    """

    top_n: int = Field(default=3, description="How many nodes to keep.")
    unique_documents: bool = Field(
        default=False, description="Whether nodes of one document share one place."
    )
    embed_model: BaseEmbedding | None = Field(
        default=None, exclude=True, description="Embeds queries that come without an embedding."
    )
    _calibrator: SkillSight = PrivateAttr()
    _warned: bool = PrivateAttr(default=False)

    def __init__(
        self,
        calibrator: SkillSight,
        *,
        top_n: int = 3,
        embed_model: BaseEmbedding | None = None,
        unique_documents: bool = False,
        **kwargs: Any,
    ) -> None:
        of = type(self).__name__
        check_count(top_n, "top_n", at_least=0, of=of)
        check_calibrator(calibrator, of=of)
        check_same_model(calibrator, embed_model, of=of)
        kwargs |= {"top_n": top_n, "embed_model": embed_model, "unique_documents": unique_documents}
        super().__init__(**kwargs)
        self._calibrator = calibrator

    @classmethod
    def from_index(
        cls,
        index: VectorStoreIndex,
        *,
        top_n: int = 3,
        nodes: Sequence[BaseNode] | None = None,
        embed_model: BaseEmbedding | None = None,
        unique_documents: bool = False,
        **options: Any,
    ) -> Self:
        """Learn an index; ``nodes``, ``embed_model`` and ``options`` are as in `fit_index`."""
        calibrator = fit_index(index, nodes=nodes, embed_model=embed_model, **options)
        model = embed_model or index._embed_model
        return cls(calibrator, top_n=top_n, embed_model=model, unique_documents=unique_documents)

    @classmethod
    def from_nodes(
        cls,
        nodes: Iterable[BaseNode],
        *,
        embed_model: BaseEmbedding | None = None,
        top_n: int = 3,
        unique_documents: bool = False,
        **options: Any,
    ) -> Self:
        """Learn from nodes; ``nodes``, ``embed_model`` and ``options`` are as in `fit_nodes`."""
        calibrator = fit_nodes(nodes, embed_model=embed_model, **options)
        return cls(
            calibrator, top_n=top_n, embed_model=embed_model, unique_documents=unique_documents
        )

    @classmethod
    def class_name(cls) -> str:
        """Name in LlamaIndex's serialisation."""
        return "SkillSightPostprocessor"

    @property
    def calibrator(self) -> SkillSight:
        """The fitted calibrator."""
        return self._calibrator

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        bundle = _needed(query_bundle)
        with self._reported(nodes, bundle) as results:
            if nodes:
                embedding = run(query_embedding(bundle, self.embed_model))
                results += self._ranked(nodes, bundle, embedding)
        return results

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        bundle = _needed(query_bundle)
        with self._reported(nodes, bundle) as results:
            if nodes:
                embedding = await arun(query_embedding(bundle, self.embed_model))
                results += await asyncio.to_thread(self._ranked, nodes, bundle, embedding)
        return results

    def _ranked(
        self, nodes: list[NodeWithScore], bundle: QueryBundle, embedding: list[float]
    ) -> list[NodeWithScore]:
        if not self._warned:
            self._warned = warn_of_small_pool(self._calibrator, len(nodes), of=type(self).__name__)
        unique = self.unique_documents
        k = None if unique else self.top_n
        pool = by_id(nodes)
        ranked = rank(self._calibrator, bundle, embedding, pool, k=k, embed_model=self.embed_model)
        return described(pool, ranked, self.top_n, unique_documents=unique)

    @contextmanager
    def _reported(
        self, nodes: list[NodeWithScore], bundle: QueryBundle
    ) -> Iterator[list[NodeWithScore]]:
        """Tell LlamaIndex's observers about a reranking; its results go into the list."""
        results: list[NodeWithScore] = []
        name = "SkillSight"
        _dispatcher.event(
            ReRankStartEvent(query=bundle, nodes=nodes, top_n=self.top_n, model_name=name)
        )
        payload: dict[str, Any] = {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: name,
            EventPayload.QUERY_STR: bundle.query_str,
            EventPayload.TOP_K: self.top_n,
        }
        with self.callback_manager.event(CBEventType.RERANKING, payload=payload) as event:
            yield results
            event.on_end(payload={EventPayload.NODES: results})
        _dispatcher.event(ReRankEndEvent(nodes=results))


def check_calibrator(calibrator: object, *, of: str) -> None:
    if not isinstance(calibrator, SkillSight):
        raise TypeError(f"{of}: calibrator must be a SkillSight, got {type(calibrator).__name__}")


def _needed(bundle: QueryBundle | None) -> QueryBundle:
    if bundle is None:
        raise ValueError(
            "SkillSightPostprocessor: a query must be given, as query_bundle or query_str, got none"
        )
    return bundle
