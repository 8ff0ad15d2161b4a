"""The stores that are known: where each keeps its documents, and how it is asked for some."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from skillsight_langchain._scoring import by_id
from skillsight_langchain._stores import PAGE, Found, OtherStore, Page, Store

_SHARD = 500  # documents of an in-memory store that are searched without a pause


class InMemory(Store):
    """`langchain_core.vectorstores.InMemoryVectorStore`."""

    def metric(self) -> str:
        return "cosine"

    def pages(self) -> Iterator[Page]:
        entries = list(self.vectorstore.store.values())
        if entries:
            columns = ("id", "text", "vector")
            yield Page(*([entry[column] for entry in entries] for column in columns))

    def fetch(self, ids: Sequence[str]) -> list[Document]:
        return list(self.vectorstore.get_by_ids(ids))

    def passing(self, ids: Sequence[str], **options: Any) -> Found:
        return {**by_id(filter(options["filter"], self.fetch(ids)))}

    async def asearch(self, vector: list[float], k: int, **options: Any) -> Found:
        """Search as the store does, but in a thread and by shards.

        The store's own async search runs on the event loop, and even in a thread it would hold
        the interpreter for as long as it takes to turn all vectors into one array.
        """
        return await asyncio.to_thread(self._search_shards, vector, k, options)

    def _search_shards(self, vector: list[float], k: int, options: dict[str, Any]) -> Found:
        ids = list(self.vectorstore.store)
        kept: list[str] = []
        scores = []
        for start in range(0, len(ids), _SHARD):
            shard = ids[start : start + _SHARD]
            if options.get("filter") is not None:
                shard = list(self.passing(shard, **options))
            entries = [self.vectorstore.store.get(id_) for id_ in shard]
            present = [entry for entry in entries if entry is not None]
            if present:
                rows = np.array([entry["vector"] for entry in present])
                lengths = np.linalg.norm(rows, axis=1)
                scores.append(rows @ np.array(vector) / np.where(lengths > 0, lengths, np.inf))
                kept += [entry["id"] for entry in present]
        if not kept:
            return {}
        order = np.concatenate(scores).argsort()[::-1][:k]
        return {**by_id(self.vectorstore.get_by_ids([kept[i] for i in order]))}


class Chroma(Store):
    """`langchain_chroma.Chroma`, embedded, on disk or a server."""

    conditions = frozenset({"filter", "where_document"})

    def metric(self) -> str:
        configuration = self.vectorstore._collection.configuration_json
        index = configuration.get("hnsw") or configuration.get("spann") or {}
        return str(index.get("space") or "l2")

    def pages(self) -> Iterator[Page]:
        offset = 0
        while True:
            page = self.vectorstore.get(
                include=["documents", "embeddings"], limit=PAGE, offset=offset
            )
            # What has no text is never returned by a search either.
            kept = [i for i, text in enumerate(page["documents"]) if text is not None]
            columns = (page["ids"], page["documents"], page["embeddings"])
            if kept:
                yield Page(*([column[i] for i in kept] for column in columns))
            if len(page["ids"]) < PAGE:
                return
            offset += PAGE

    def search(self, vector: list[float], k: int, **options: Any) -> Found:
        """Search for ids alone: most of the time would go into documents that are not returned."""
        is_own = type(self.vectorstore).__module__.partition(".")[0] == "langchain_chroma"
        if not is_own or not self.can_fetch(options):  # a subclass may search in its own way
            return super().search(vector, k, **options)
        found = self.vectorstore._collection.query(
            query_embeddings=[vector],
            n_results=k,
            where=options.get("filter"),
            where_document=options.get("where_document"),
            include=[],
        )
        return dict.fromkeys(found["ids"][0])

    async def asearch(self, vector: list[float], k: int, **options: Any) -> Found:
        return await asyncio.to_thread(self.search, vector, k, **options)

    def passing(self, ids: Sequence[str], **options: Any) -> Found:
        """Ask for all that pass: by id, Chroma takes milliseconds to look at each."""
        found = self.vectorstore.get(
            where=options.get("filter"), where_document=options.get("where_document"), include=[]
        )
        return dict.fromkeys(set(ids).intersection(found["ids"]))

    def fetch(self, ids: Sequence[str]) -> list[Document]:
        found = self.vectorstore.get(ids=list(ids))
        columns = (found["ids"], found["documents"], found["metadatas"])
        return [
            Document(id=id_, page_content=text, metadata=metadata or {})
            for id_, text, metadata in zip(*columns, strict=True)
            if text is not None
        ]


class FAISS(Store):
    """`langchain_community.vectorstores.FAISS`."""

    conditions = frozenset({"filter", "fetch_k"})

    def metric(self) -> str:
        return {0: "ip", 1: "l2"}.get(self.vectorstore.index.metric_type, "another")

    def pages(self) -> Iterator[Page]:
        index, ids = self.vectorstore.index, self.vectorstore.index_to_docstore_id
        for start in range(0, index.ntotal, PAGE):
            size = min(PAGE, index.ntotal - start)
            some = [ids[i] for i in range(start, start + size)]
            texts = [self.vectorstore.docstore.search(id_).page_content for id_ in some]
            yield Page(some, texts, index.reconstruct_n(start, size))

    def search(self, vector: list[float], k: int, **options: Any) -> Found:
        return super().search(vector, k, **self._deep(options))

    async def asearch(self, vector: list[float], k: int, **options: Any) -> Found:
        return await super().asearch(vector, k, **self._deep(options))

    def _deep(self, options: dict[str, Any]) -> dict[str, Any]:
        """Filter all documents, not only the 20 nearest, unless the caller says how many."""
        if options.get("filter") is None:
            return options
        return {"fetch_k": self.vectorstore.index.ntotal, **options}

    def fetch(self, ids: Sequence[str]) -> list[Document]:
        return list(self.vectorstore.get_by_ids(ids))

    def passing(self, ids: Sequence[str], **options: Any) -> Found:
        found = self.fetch(ids)
        if options.get("filter") is not None:
            passes = self.vectorstore._create_filter_func(options["filter"])
            found = [document for document in found if passes(document.metadata)]
        return {**by_id(found)}


class Qdrant(Store):
    """`langchain_qdrant.QdrantVectorStore`."""

    conditions = frozenset({"filter", "search_params", "consistency"})

    def metric(self) -> str:
        store = self.vectorstore
        vectors = store.client.get_collection(store.collection_name).config.params.vectors
        if isinstance(vectors, dict):
            vectors = vectors[store.vector_name]
        name = str(vectors.distance.value).lower()
        return {"dot": "ip", "euclid": "l2"}.get(name, name)

    def pages(self) -> Iterator[Page]:
        offset: Any = None
        while True:
            points, offset = self._scroll(limit=PAGE, offset=offset, with_vectors=True)
            if points:
                texts = [
                    point.payload.get(self.vectorstore.content_payload_key) for point in points
                ]
                vectors = [self._vector_of(point) for point in points]
                yield Page([str(p.id) for p in points], [text or "" for text in texts], vectors)
            if offset is None:
                return

    def fetch(self, ids: Sequence[str]) -> list[Document]:
        store = self.vectorstore
        return self._documents(store.client.retrieve(store.collection_name, _native(ids)))

    def passing(self, ids: Sequence[str], **options: Any) -> Found:
        from qdrant_client import models

        if options.get("filter") is None:
            return super().passing(ids)
        must = [models.HasIdCondition(has_id=_native(ids)), options["filter"]]
        points, _ = self._scroll(limit=len(ids), scroll_filter=models.Filter(must=must))
        return {**by_id(self._documents(points))}

    def _documents(self, points: Sequence[Any]) -> list[Document]:
        store = self.vectorstore
        keys = (store.collection_name, store.content_payload_key, store.metadata_payload_key)
        return [store._document_from_point(point, *keys) for point in points]

    def _scroll(self, **arguments: Any) -> tuple[list[Any], Any]:
        store = self.vectorstore
        points, offset = store.client.scroll(store.collection_name, with_payload=True, **arguments)
        return points, offset

    def _vector_of(self, point: Any) -> Any:
        name = self.vectorstore.vector_name
        return point.vector[name] if isinstance(point.vector, dict) else point.vector


def _native(ids: Sequence[str]) -> list[str | int]:
    """Ids as Qdrant has them: a UUID, or a number that is no str."""
    return [int(id_) if id_.isdigit() else id_ for id_ in ids]


class PGVector(Store):
    """`langchain_postgres.PGVectorStore`."""

    def metric(self) -> str:
        # The public class keeps the asynchronous one that knows.
        strategy: Any = self.vectorstore._PGVectorStore__vs.distance_strategy
        names = {"COSINE_DISTANCE": "cosine", "INNER_PRODUCT": "ip", "EUCLIDEAN": "l2"}
        return names.get(strategy.name, str(strategy.name))

    def pages(self) -> Iterator[Page]:
        # By ids: without an order, which PostgreSQL does not promise, offsets may skip rows.
        ids = self.vectorstore.get(include=[])["ids"]
        for start in range(0, len(ids), PAGE):
            page = self.vectorstore.get(
                ids=ids[start : start + PAGE], include=["documents", "embeddings"]
            )
            vectors = [json.loads(v) if isinstance(v, str) else v for v in page["embeddings"]]
            yield Page(page["ids"], page["documents"], vectors)

    def fetch(self, ids: Sequence[str]) -> list[Document]:
        return _pg_documents(self.vectorstore.get(ids=list(ids)))

    async def afetch(self, ids: Sequence[str]) -> list[Document]:
        return _pg_documents(await self.vectorstore.aget(ids=list(ids)))

    def passing(self, ids: Sequence[str], **options: Any) -> Found:
        found = self.vectorstore.get(ids=list(ids), where=options["filter"])
        return {**by_id(_pg_documents(found))}

    async def apassing(self, ids: Sequence[str], **options: Any) -> Found:
        found = await self.vectorstore.aget(ids=list(ids), where=options["filter"])
        return {**by_id(_pg_documents(found))}


def _pg_documents(found: dict[str, Any]) -> list[Document]:
    columns = (found["ids"], found["documents"], found["metadatas"])
    return [
        Document(id=id_, page_content=text, metadata=metadata)
        for id_, text, metadata in zip(*columns, strict=True)
    ]


_KNOWN: dict[str, type[Store]] = {
    "InMemoryVectorStore": InMemory,
    "Chroma": Chroma,
    "FAISS": FAISS,
    "QdrantVectorStore": Qdrant,
    "PGVectorStore": PGVector,
}


def store_of(vectorstore: VectorStore) -> Store:
    """The adapter for a store, found by the name of its class or of one it derives from."""
    for kind in type(vectorstore).__mro__:
        if kind.__name__ in _KNOWN:
            return _KNOWN[kind.__name__](vectorstore)
    return OtherStore(vectorstore)
