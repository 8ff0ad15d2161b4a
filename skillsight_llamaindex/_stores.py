"""What is asked of a vector store beyond LlamaIndex's interface.

Everything it holds, and nodes by their ids under the restrictions of a retriever.
"""

from __future__ import annotations

import asyncio
import copy
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from llama_index.core import VectorStoreIndex
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQueryMode
from llama_index.core.vector_stores.utils import metadata_dict_to_node
from numpy.typing import NDArray

Page = tuple[list[BaseNode], NDArray[np.float32]]

_PAGE = 1000  # nodes; Chroma and the databases below it limit how much one request may bring


class Adapter:
    """A store of which nothing is known: it brings what it finds, and no more."""

    can_fetch: ClassVar[bool] = False

    def pages(self, index: VectorStoreIndex) -> Iterator[Page]:
        """Every node of an index with its vector."""
        raise ValueError(
            f"fit_index: nodes must be given for a {type(index.vector_store).__name__}, "
            "which cannot be listed, got None"
        )

    def metric(self, store: BasePydanticVectorStore) -> str:
        """How the store compares vectors: cosine, l2, ip, or another name."""
        return "cosine"

    def is_async(self, store: BasePydanticVectorStore) -> bool:
        """Whether the store's ``aquery`` waits without blocking the event loop."""
        return defining_class(store, "aquery") is not BasePydanticVectorStore

    def fetch(
        self, retriever: VectorIndexRetriever, bundle: QueryBundle, ids: list[str]
    ) -> list[NodeWithScore]:
        """Those of the nodes that the retriever may return, by one request."""
        return []

    async def afetch(
        self, retriever: VectorIndexRetriever, bundle: QueryBundle, ids: list[str]
    ) -> list[NodeWithScore]:
        return await asyncio.to_thread(self.fetch, retriever, bundle, ids)


class SimpleAdapter(Adapter):
    """Vectors in a dictionary, nodes in the docstore."""

    can_fetch = True

    def pages(self, index: VectorStoreIndex) -> Iterator[Page]:
        vectors = index.vector_store.data.embedding_dict  # type: ignore[attr-defined]
        ids = [id_ for id_ in index.index_struct.nodes_dict.values() if id_ in vectors]
        for chunk in _chunks(ids):
            nodes = index.docstore.get_nodes(chunk, raise_error=False)
            yield nodes, _rows([vectors[node.node_id] for node in nodes])

    def fetch(
        self, retriever: VectorIndexRetriever, bundle: QueryBundle, ids: list[str]
    ) -> list[NodeWithScore]:
        if retriever._node_ids is not None:
            ids = _common(ids, retriever._node_ids)
        return _narrowed(retriever, ids)._get_nodes_with_embeddings(bundle)


class ChromaAdapter(Adapter):
    """A collection, which is read by pages."""

    can_fetch = True

    def pages(self, index: VectorStoreIndex) -> Iterator[Page]:
        collection = index.vector_store.client
        include = ["documents", "embeddings", "metadatas"]
        for offset in range(0, collection.count(), _PAGE):
            page = collection.get(include=include, limit=_PAGE, offset=offset)
            parts = zip(page["ids"], page["documents"], page["metadatas"], strict=True)
            yield [_chroma_node(*part) for part in parts], _rows(page["embeddings"])

    def metric(self, store: BasePydanticVectorStore) -> str:
        configuration = store.client.configuration
        index = configuration.get("hnsw") or configuration.get("spann") or {}
        return str(index.get("space", "l2"))

    def fetch(
        self, retriever: VectorIndexRetriever, bundle: QueryBundle, ids: list[str]
    ) -> list[NodeWithScore]:
        conditions = {
            n: v for n, v in retriever._kwargs.items() if n in ("where", "where_document")
        }
        if retriever._filters is not None:
            chroma = importlib.import_module("llama_index.vector_stores.chroma.base")
            conditions["where"] = chroma._to_chroma_filter(retriever._filters)
        if any(conditions.values()):
            # By id, Chroma takes milliseconds to look at each; all that pass come faster.
            store: Any = retriever._vector_store
            ids = _common(ids, store.client.get(**conditions, include=[])["ids"])
        if not ids:
            return []
        narrowed = _narrowed(retriever, ids)
        narrowed._filters, narrowed._kwargs = None, {"ids": ids}
        # Without an embedding the store reads the nodes instead of searching for them, which the
        # approximate index might do badly.
        return narrowed._get_nodes_with_embeddings(replace(bundle, embedding=None))


class QdrantAdapter(Adapter):
    """A collection of points."""

    can_fetch = True

    def pages(self, index: VectorStoreIndex) -> Iterator[Page]:
        store: Any = index.vector_store
        offset, more = None, True
        while more:
            points, offset = store.client.scroll(
                store.collection_name, limit=_PAGE, offset=offset, with_vectors=True
            )
            nodes = list(store.parse_to_query_result(points).nodes)
            yield nodes, _rows([node.get_embedding() for node in nodes])
            more = offset is not None

    def metric(self, store: Any) -> str:
        vectors = store.client.get_collection(store.collection_name).config.params.vectors
        if isinstance(vectors, dict):
            vectors = vectors.get(store.dense_vector_name) or next(iter(vectors.values()))
        names = {"dot": "ip", "euclid": "l2"}
        name = str(vectors.distance.value).lower()
        return names.get(name, name)

    def is_async(self, store: Any) -> bool:
        return store._aclient is not None

    def fetch(
        self, retriever: VectorIndexRetriever, bundle: QueryBundle, ids: list[str]
    ) -> list[NodeWithScore]:
        return self._narrowed(retriever, ids)._get_nodes_with_embeddings(bundle)

    async def afetch(
        self, retriever: VectorIndexRetriever, bundle: QueryBundle, ids: list[str]
    ) -> list[NodeWithScore]:
        return await self._narrowed(retriever, ids)._aget_nodes_with_embeddings(bundle)

    def _narrowed(self, retriever: VectorIndexRetriever, ids: list[str]) -> VectorIndexRetriever:
        if retriever._node_ids:
            ids = _common(ids, retriever._node_ids)
        narrowed = _narrowed(retriever, ids)
        own = retriever._kwargs.get("qdrant_filters")
        if own is not None:  # the store takes these instead of ids and filters, so both go in
            models = importlib.import_module("qdrant_client.models")
            both = models.Filter(must=[own, models.HasIdCondition(has_id=ids)])
            narrowed._kwargs = {**retriever._kwargs, "qdrant_filters": both}
        return narrowed


class FaissAdapter(Adapter):
    """Vectors in an index of numbers, nodes in the docstore."""

    can_fetch = True

    def pages(self, index: VectorStoreIndex) -> Iterator[Page]:
        labels = {id_: label for label, id_ in self._labels(index).items()}
        for chunk in _chunks(list(labels)):
            nodes = index.docstore.get_nodes(chunk, raise_error=False)
            keys = np.array([labels[node.node_id] for node in nodes], dtype=np.int64)
            try:
                vectors = index.vector_store.client.reconstruct_batch(keys)
            except RuntimeError:
                raise ValueError(
                    "fit_index: nodes must be given for a Faiss index that does not keep its "
                    f"vectors, a {type(index.vector_store.client).__name__}, got None"
                ) from None
            yield nodes, vectors

    def metric(self, store: BasePydanticVectorStore) -> str:
        kind = store.client.metric_type
        return {0: "ip", 1: "l2"}.get(kind, f"Faiss metric {kind}")

    def fetch(
        self, retriever: VectorIndexRetriever, bundle: QueryBundle, ids: list[str]
    ) -> list[NodeWithScore]:
        # The store knows neither filters nor ids: it may return everything it holds.
        held = _common(ids, list(self._labels(retriever._index).values()))
        nodes = retriever._docstore.get_nodes(held, raise_error=False)
        return [NodeWithScore(node=node) for node in nodes]

    def _labels(self, index: VectorStoreIndex) -> dict[int, str]:
        """Node ids by their number in Faiss; a FaissMapVectorStore keeps them itself."""
        mapped = getattr(index.vector_store, "_faiss_id_to_node_id_map", None)
        if mapped is not None:
            return dict(mapped)
        return {int(label): id_ for label, id_ in index.index_struct.nodes_dict.items()}


_ADAPTERS: dict[str, Adapter] = {
    "SimpleVectorStore": SimpleAdapter(),
    "ChromaVectorStore": ChromaAdapter(),
    "QdrantVectorStore": QdrantAdapter(),
    "FaissVectorStore": FaissAdapter(),
}


def adapter_of(store: BasePydanticVectorStore) -> Adapter:
    """The adapter of a store, found by the names of its classes, since any may be missing."""
    names = (kind.__name__ for kind in type(store).__mro__)
    return next((_ADAPTERS[name] for name in names if name in _ADAPTERS), Adapter())


def defining_class(thing: object, method: str) -> type:
    """The class that a method comes from; LlamaIndex wraps methods anew at every access."""
    return next(kind for kind in type(thing).__mro__ if method in vars(kind))


def _narrowed(retriever: VectorIndexRetriever, ids: list[str]) -> VectorIndexRetriever:
    """The same search, with its filters, among these nodes alone."""
    narrowed = copy.copy(retriever)
    narrowed._node_ids = ids
    narrowed._similarity_top_k = max(len(ids), 1)
    narrowed._vector_store_query_mode = VectorStoreQueryMode.DEFAULT
    return narrowed


def _common(ids: list[str], allowed: Sequence[str]) -> list[str]:
    among = set(allowed)
    return [id_ for id_ in ids if id_ in among]


def _chunks(ids: list[str]) -> Iterator[list[str]]:
    return (ids[start : start + _PAGE] for start in range(0, len(ids), _PAGE))


def _rows(vectors: Any) -> NDArray[np.float32]:
    return np.asarray(vectors, dtype=np.float32)


def _chroma_node(id_: str, text: str | None, metadata: dict[str, Any] | None) -> BaseNode:
    try:
        return metadata_dict_to_node(metadata or {}, text=text)
    except ValueError:  # written by another program
        return TextNode(id_=id_, text=text or "", metadata=metadata or {})
