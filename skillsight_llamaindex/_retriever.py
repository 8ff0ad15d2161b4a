"""The retriever: one projected search of an index, the words' own candidates, one fusion."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle

from skillsight_core import SkillSight
from skillsight_core._steps import Ask, Steps, arun, run
from skillsight_core._validation import check_count
from skillsight_llamaindex._encoder import check_same_model, query_embedding
from skillsight_llamaindex._fitting import fit_index
from skillsight_llamaindex._postprocessor import check_calibrator
from skillsight_llamaindex._scoring import by_id, described, rank, warn_of_small_pool
from skillsight_llamaindex._stores import Adapter, adapter_of, defining_class

_NOTHING = 1e-6  # length of a unit query of which the projection left only rounding


class SkillSightRetriever(BaseRetriever):
    """Retriever that searches another one with the calibrated query and ranks what it finds.

    The query is embedded once, its background is taken out, and the wrapped retriever is called
    once with ``QueryBundle(query_str, embedding=projected)``. The candidates that only the words
    of the query bring are read by id, in one request under the same filters, from a
    SimpleVectorStore, Chroma, Qdrant or Faiss; other stores and retrievers contribute what they
    find. Where the store searches exactly, the result is that of `skillsight_core.SkillSight.rank`.

    Parameters
    ----------
    retriever : BaseRetriever or VectorStoreIndex
        What to search. Of a vector index retriever everything counts but its
        ``similarity_top_k``: the pool has ``calibrator.pool_size`` nodes, whatever k is. An index
        is read anew at each call, so that nodes inserted later are found.
    calibrator : SkillSight
        Fitted, with node ids as ids; see `fit_index`.
    k : int, default 3
        How many nodes to return, at least 0; never more than the pool.
    embed_model : BaseEmbedding, optional
        Embeds the query; the index's own by default, and ``Settings.embed_model`` for other
        retrievers. The embedding that a query bundle brings is used as it is.
    unique_documents : bool, default False
        Whether nodes with one ``ref_doc_id`` share one place, taken by the best of them.
    search_kwargs : mapping, optional
        With an index: arguments of its ``as_retriever``, for instance ``filters``.
    callback_manager : CallbackManager, optional
        That of what is wrapped by default.
    **kwargs
        Further arguments of LlamaIndex's BaseRetriever.

    Raises
    ------
    ValueError
        k is negative, the model is not the one of the calibrator, or there are search_kwargs
        without an index.

    Warns
    -----
    SkillSightWarning
        Once, when a wrapped retriever that is not one of a vector index returns fewer nodes than
        the calibration's pool; and when nodes are not in the calibrator's library.

    Notes
    -----
    Results are as those of `SkillSightPostprocessor`. An approximate index loses some of the
    pool, more of it for projected queries than for plain ones: give it a search width (Chroma's
    ``ef_search``, Qdrant's ``hnsw_ef``) well above ``calibrator.pool_size``.
    """

    def __init__(
        self,
        retriever: BaseRetriever | VectorStoreIndex,
        calibrator: SkillSight,
        *,
        k: int = 3,
        embed_model: BaseEmbedding | None = None,
        unique_documents: bool = False,
        search_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        of = type(self).__name__
        if not isinstance(retriever, BaseRetriever | VectorStoreIndex):
            raise TypeError(
                f"{of}: retriever must be a BaseRetriever or a VectorStoreIndex, "
                f"got {type(retriever).__name__}"
            )
        check_calibrator(calibrator, of=of)
        if search_kwargs and isinstance(retriever, BaseRetriever):
            raise ValueError(
                f"{of}: search_kwargs must be empty where retriever is no index, "
                f"got {sorted(search_kwargs)}"
            )
        if isinstance(retriever, VectorStoreIndex | VectorIndexRetriever):
            embed_model = embed_model or retriever._embed_model
        check_same_model(calibrator, embed_model, of=of)
        self.k = check_count(k, "k", at_least=0, of=of)
        self.calibrator = calibrator
        self.unique_documents = unique_documents
        self._source = retriever
        self._embed_model = embed_model
        self._search_kwargs = dict(search_kwargs or {})
        self._warned = False
        if isinstance(retriever, VectorStoreIndex):
            kwargs.setdefault("callback_manager", retriever._callback_manager)
        else:
            kwargs.setdefault("callback_manager", getattr(retriever, "callback_manager", None))
        super().__init__(**kwargs)

    @classmethod
    def from_index(
        cls,
        index: VectorStoreIndex,
        *,
        k: int = 3,
        nodes: Sequence[BaseNode] | None = None,
        embed_model: BaseEmbedding | None = None,
        unique_documents: bool = False,
        search_kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Learn an index and search it.

        ``nodes``, ``embed_model`` and ``options`` are as in `fit_index`.
        """
        return cls(
            index,
            fit_index(index, nodes=nodes, embed_model=embed_model, **options),
            k=k,
            embed_model=embed_model,
            unique_documents=unique_documents,
            search_kwargs=search_kwargs,
        )

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return run(self._steps(query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await arun(self._steps(query_bundle))

    def _steps(self, bundle: QueryBundle) -> Steps[list[NodeWithScore]]:
        calibrator, unique = self.calibrator, self.unique_documents
        embedding = yield from query_embedding(bundle, self._embed_model)
        search = _Search(
            self._for_this_call(), replace(bundle, embedding=self._projected(embedding))
        )
        pool = by_id((yield Ask(search, "search")))
        words = calibrator.lexical_candidates(bundle.query_str) if search.can_fetch else []
        others = [id_ for id_ in words if id_ not in pool]
        if search.is_restricted or unique:  # only the nodes tell which of them count
            pool |= by_id((yield Ask(search, "fetch", others)))
            others = []
        self._warn_of_small_pool(len(pool))

        k = None if unique else self.k
        model = self._embed_model
        ranked = rank(calibrator, bundle, embedding, pool, others, k=k, embed_model=model)
        # Nearly all exist, and only those that are returned are read.
        unread = [skill.id for skill in ranked if skill.id not in pool]
        pool |= by_id((yield Ask(search, "fetch", unread)))
        if not pool.keys() >= set(unread):
            pool |= by_id((yield Ask(search, "fetch", [id_ for id_ in others if id_ not in pool])))
            ranked = rank(calibrator, bundle, embedding, pool, k=k, embed_model=model)
        return described(pool, ranked, self.k, unique_documents=unique)

    def _projected(self, embedding: list[float]) -> list[float]:
        projected = self.calibrator.project(embedding)
        if np.linalg.norm(projected) <= _NOTHING * np.linalg.norm(embedding):
            return embedding  # cosine of nothing is undefined; any order will do
        return [float(value) for value in projected]

    def _for_this_call(self) -> BaseRetriever:
        """The wrapped retriever, asking for the whole pool."""
        size = self.calibrator.pool_size
        if isinstance(self._source, VectorStoreIndex):
            return self._source.as_retriever(**{**self._search_kwargs, "similarity_top_k": size})
        if isinstance(self._source, VectorIndexRetriever) and self._source.similarity_top_k != size:
            wide = copy.copy(self._source)
            wide.similarity_top_k = size
            return wide
        return self._source

    def _warn_of_small_pool(self, n_nodes: int) -> None:
        asked_for_pool = isinstance(self._source, VectorStoreIndex | VectorIndexRetriever)
        if not (asked_for_pool or self._warned):
            self._warned = warn_of_small_pool(self.calibrator, n_nodes, of=type(self).__name__)


@dataclass(frozen=True)
class _Search:
    """What is asked of the wrapped retriever and of the store below it.

    Attributes
    ----------
    retriever : BaseRetriever
        The wrapped one.
    bundle : QueryBundle
        With the projected query.
    """

    retriever: BaseRetriever
    bundle: QueryBundle

    def search(self) -> list[NodeWithScore]:
        return self.retriever.retrieve(self.bundle)

    async def asearch(self) -> list[NodeWithScore]:
        # Most stores only pretend to be asynchronous and would hold up the event loop.
        if self._is_async:
            return await self.retriever.aretrieve(self.bundle)
        return await asyncio.to_thread(self.search)

    @property
    def can_fetch(self) -> bool:
        """Whether nodes can be read by their ids."""
        return self._adapter.can_fetch

    @property
    def is_restricted(self) -> bool:
        """Whether the retriever may return some of the nodes only."""
        own = self.retriever
        return isinstance(own, VectorIndexRetriever) and any(
            (own._filters, own._node_ids, own._doc_ids, own._kwargs)
        )

    def fetch(self, ids: list[str]) -> list[NodeWithScore]:
        """Those of the nodes that the retriever may return, by one request."""
        if not ids or not isinstance(self.retriever, VectorIndexRetriever):
            return []
        return self._adapter.fetch(self.retriever, self.bundle, ids)

    async def afetch(self, ids: list[str]) -> list[NodeWithScore]:
        if not ids or not isinstance(self.retriever, VectorIndexRetriever):
            return []
        if self._is_async:
            return await self._adapter.afetch(self.retriever, self.bundle, ids)
        return await asyncio.to_thread(self.fetch, ids)

    @property
    def _adapter(self) -> Adapter:
        if isinstance(self.retriever, VectorIndexRetriever):
            return adapter_of(self.retriever._vector_store)
        return Adapter()

    @property
    def _is_async(self) -> bool:
        retriever, defined_by = self.retriever, defining_class(self.retriever, "_aretrieve")
        if isinstance(retriever, VectorIndexRetriever) and defined_by is VectorIndexRetriever:
            return self._adapter.is_async(retriever._vector_store)
        return defined_by is not BaseRetriever
