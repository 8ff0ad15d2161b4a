"""What the LlamaIndex tests are made of: an embedding model, nodes, and indexes over each store."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode

from skillsight_core import Encoder
from tests.fakes import HashEncoder

STORES = ("simple", "chroma", "qdrant", "faiss")
QUERY = "merge the rare7 invoices with w3 and w11"


class EncoderEmbedding(BaseEmbedding):
    """An encoder of the core as an embedding model; counts queries and texts."""

    _encoder: Any = PrivateAttr()
    queries: int = 0
    texts: int = 0

    def __init__(self, encoder: Encoder, **kwargs: Any) -> None:
        kwargs.setdefault("model_name", getattr(encoder, "name", None) or "unknown")
        super().__init__(**kwargs)
        self._encoder = encoder

    def _get_query_embedding(self, query: str) -> list[float]:
        self.queries += 1
        return self._encoder.encode([query])[0].tolist()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self.texts += len(texts)
        return self._encoder.encode(texts).tolist()


def hash_embedding() -> EncoderEmbedding:
    return EncoderEmbedding(HashEncoder())


def make_nodes(n: int = 120, *, chunks: int = 1, seed: int = 0) -> list[TextNode]:
    """Skills with a common beginning, words of a common stock and one rare word each.

    Every ``chunks`` consecutive nodes belong to one document.
    """
    draw = random.Random(seed)
    nodes = []
    for i in range(n):
        words = " ".join(f"w{draw.randrange(40)}" for _ in range(12))
        document = _uuid(f"document {i // chunks}")
        nodes.append(
            TextNode(
                id_=_uuid(f"node {i}"),
                text=f"Use this skill when you work with rare{i} {words}",
                metadata={"team": "red" if i % 2 else "blue", "place": i},
                excluded_embed_metadata_keys=["team", "place"],
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)},
            )
        )
    return nodes


def node_id(i: int) -> str:
    return _uuid(f"node {i}")


def make_index(
    store: str, nodes: Sequence[BaseNode], embed_model: BaseEmbedding, *, metric: str = "default"
) -> VectorStoreIndex:
    """An index with an exact search wherever the store has one."""
    return VectorStoreIndex(
        nodes=list(nodes),
        embed_model=embed_model,
        storage_context=StorageContext.from_defaults(vector_store=make_store(store, metric)),
    )


def make_store(store: str, metric: str = "default", dim: int = 64) -> Any:
    if store == "simple":
        from llama_index.core.vector_stores import SimpleVectorStore

        return SimpleVectorStore()
    if store == "chroma":
        import chromadb
        from llama_index.vector_stores.chroma import ChromaVectorStore

        space = {"default": "l2"}.get(metric, metric)
        collection = chromadb.EphemeralClient().create_collection(
            f"skills-{uuid.uuid4().hex}",
            configuration={"hnsw": {"space": space, "ef_search": 2000, "ef_construction": 500}},
        )
        return ChromaVectorStore(chroma_collection=collection)
    if store == "qdrant":
        from llama_index.vector_stores.qdrant import QdrantVectorStore
        from qdrant_client import QdrantClient, models

        client = QdrantClient(":memory:")
        distances = {"default": "Cosine", "cosine": "Cosine", "ip": "Dot", "l2": "Euclid"}
        distance = models.Distance(distances.get(metric, metric))
        client.create_collection(
            "skills", vectors_config=models.VectorParams(size=dim, distance=distance)
        )
        return QdrantVectorStore(client=client, collection_name="skills")
    import faiss
    from llama_index.vector_stores.faiss import FaissMapVectorStore, FaissVectorStore

    if store == "faiss-map":
        return FaissMapVectorStore(faiss_index=faiss.IndexIDMap2(faiss.IndexFlatL2(dim)))
    flat = faiss.IndexFlatIP if metric == "ip" else faiss.IndexFlatL2
    return FaissVectorStore(faiss_index=flat(dim))


def ids(hits: Sequence[Any]) -> list[str]:
    return [hit.node.node_id for hit in hits]


def results(hits: Sequence[Any]) -> list[tuple[str, float]]:
    return [(hit.node.node_id, round(hit.score, 5)) for hit in hits]


def embedded(encoder: Encoder, text: str) -> np.ndarray:
    return np.asarray(encoder.encode([text])[0])


def _uuid(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))
