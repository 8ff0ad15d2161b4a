"""What the LlamaIndex retriever costs over plain retrieval of as many nodes from Chroma.

Both are given the same ready query embedding, in turns. Run by ``make bench``.
"""

from __future__ import annotations

import chromadb
import numpy as np
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.schema import QueryBundle, TextNode
from llama_index.vector_stores.chroma import ChromaVectorStore

from skillsight_llamaindex import SkillSightRetriever
from tests.benchmarks.langchain_overhead import K, documents, fastest

N = 8000  # LlamaIndex takes its time to insert nodes
QUERIES = 50


def main() -> None:
    texts, vectors, what = documents()
    texts, vectors = texts[:N], vectors[:N]
    nodes = [
        TextNode(id_=f"d{i}", text=text, embedding=vector.tolist())
        for i, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    ]
    collection = chromadb.EphemeralClient().create_collection("llamaindex-overhead")
    index = VectorStoreIndex(
        nodes,
        embed_model=MockEmbedding(embed_dim=vectors.shape[1]),
        storage_context=StorageContext.from_defaults(
            vector_store=ChromaVectorStore(chroma_collection=collection)
        ),
    )
    retriever = SkillSightRetriever.from_index(index)
    plain = index.as_retriever(similarity_top_k=K)
    ratios = []
    for row in np.random.default_rng(0).choice(N, QUERIES, replace=False):
        words = " ".join(texts[row].split()[4:14])
        asked = QueryBundle(words, embedding=vectors[row].tolist())
        usual = fastest(lambda q=asked: plain.retrieve(q))
        ratios.append(fastest(lambda q=asked: retriever.retrieve(q)) / usual)
    print(f"{N} of {what}: retrieve {np.median(ratios):.2f} times plain retrieval of {K} nodes")


if __name__ == "__main__":
    main()
