"""What the LangChain retriever costs over the search of a Chroma collection on disk.

Both are given the same ready query embedding, in turns. Also: how far the approximate index
agrees with exact search. Run by ``make bench``.
"""

from __future__ import annotations

import gzip
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
from langchain_chroma import Chroma
from langchain_core.embeddings import Embeddings

from skillsight_core import SkillSight
from skillsight_langchain import SkillSightRetriever

N = 25_000
QUERIES = 100
K = 300
LIMIT = 1.3
DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "skills-registry24k"


class Ready(Embeddings):
    """Gives the embedding that has been made ready."""

    vector: list[float]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise AssertionError("no document is embedded here")

    def embed_query(self, text: str) -> list[float]:
        return self.vector


def main() -> None:
    texts, vectors, what = documents()
    ids = [f"d{i}" for i in range(len(texts))]
    random = np.random.default_rng(0)
    asked = random.choice(len(texts), QUERIES, replace=False)
    # Words of a document, and a vector near its own.
    queries = [" ".join(texts[i].split()[:8]) for i in asked]
    noise = random.standard_normal((QUERIES, vectors.shape[1])) / np.sqrt(vectors.shape[1])
    query_vectors = (vectors[asked] + 0.7 * noise).tolist()

    calibrator = SkillSight().fit(texts, vectors, ids)
    embeddings = Ready()
    with tempfile.TemporaryDirectory() as folder:
        client = chromadb.PersistentClient(folder)
        for ef_search in (100, K):
            store = Chroma(
                f"ef-{ef_search}",
                embeddings,
                client=client,
                collection_configuration={"hnsw": {"ef_search": ef_search}},
            )
            for start in range(0, len(ids), 5000):
                batch = slice(start, start + 5000)
                store._collection.add(ids[batch], vectors[batch], documents=texts[batch])
            retriever = SkillSightRetriever(vectorstore=store, calibrator=calibrator)
            measure(f"{what}, ef_search {ef_search}", retriever, vectors, queries, query_vectors)


def measure(
    name: str,
    retriever: SkillSightRetriever,
    library: np.ndarray,
    queries: list[str],
    vectors: list[list[float]],
) -> None:
    store: Any = retriever.vectorstore
    plain, ours, recall, agreement = [], [], [], []
    for query, vector in zip(queries, vectors, strict=True):
        store.embeddings.vector = vector
        plain.append(fastest(lambda v=vector: store.similarity_search_by_vector(v, k=K)))
        ours.append(fastest(lambda q=query: retriever.invoke(q)))
        exact = retriever.calibrator.rank(query, vector, k=3)
        found = retriever.invoke(query)
        agreement.append([hit.id for hit in exact] == [document.id for document in found])
        projected = retriever.calibrator.project(vector)
        nearest = {d.id for d in store.similarity_search_by_vector(projected.tolist(), k=K)}
        true = np.argsort(-(library @ projected))[:K]
        recall.append(len(nearest & {retriever.calibrator.ids_[i] for i in true}) / K)
    ratio = float(np.median(np.array(ours) / np.array(plain)))
    print(
        f"{name}: invoke {np.median(ours) * 1e3:.1f} ms over search {np.median(plain) * 1e3:.1f} ms"
        f" = {ratio:.2f} (at most {LIMIT}); recall@{K} of the index {np.mean(recall):.3f}, same "
        f"top 3 as exact search {np.mean(agreement):.3f}"
    )


def fastest(call: Callable[[], object]) -> float:
    """Seconds of the fastest of five runs: what others do to the machine only adds."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def documents() -> tuple[list[str], np.ndarray, str]:
    if not DATA.is_dir():
        random = np.random.default_rng(0)
        words = np.array([f"word{i}" for i in range(20_000)])
        texts = [" ".join(random.choice(words, 30)) for _ in range(N)]
        return texts, unit(random.standard_normal((N, 384))), "random vectors"
    with gzip.open(DATA / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    texts = [f"{record['title']}\n{record['text']}" for record in records]
    return texts, unit(np.load(DATA / "corpus.minilm.f16.npy")), f"{len(texts)} skills"


def unit(vectors: np.ndarray) -> np.ndarray:
    rows = vectors.astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


if __name__ == "__main__":
    main()
