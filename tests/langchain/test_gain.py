"""The gain over plain similarity survives the way through LangChain and an approximate index."""

from __future__ import annotations

import chromadb
import numpy as np
import pytest
from langchain_chroma import Chroma

from skillsight_core import CachedEncoder, SkillSight
from skillsight_core.evaluation import load_beir
from skillsight_langchain import EncoderEmbeddings, SkillSightRetriever

DISTRACTORS = 3000
QUERIES = 150
TOLERANCE = 0.01  # what an HNSW index may cost, in MRR@10 and in Recall@10


def figures(rankings, gold):
    """MRR@10 and Recall@10."""
    reciprocal, recall = [], []
    for ranking, wanted in zip(rankings, gold, strict=True):
        places = [place for place, id_ in enumerate(ranking[:10], start=1) if id_ in wanted]
        reciprocal.append(1 / places[0] if places else 0.0)
        recall.append(len(places) / len(wanted))
    return np.mean(reciprocal), np.mean(recall)


@pytest.fixture(scope="module")
def measured(shared_data, minilm):
    folders = shared_data / "skills-triggers", shared_data / "skills-registry24k"
    benchmark = load_beir(folders[0], distractors=folders[1:])
    n = benchmark.sizes[0] + DISTRACTORS
    ids, texts = list(benchmark.ids[:n]), list(benchmark.texts[:n])
    halves = [np.load(folder / "corpus.minilm.f16.npy") for folder in folders]
    vectors = np.concatenate(halves)[:n].astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    embeddings = EncoderEmbeddings(CachedEncoder(minilm))
    store = Chroma(
        "gain",
        embeddings,
        client=chromadb.EphemeralClient(),
        collection_configuration={"hnsw": {"ef_search": 600}},
    )
    for start in range(0, n, 2000):
        batch = slice(start, start + 2000)
        store._collection.add(ids[batch], vectors[batch], documents=texts[batch])

    chosen = list(benchmark.queries)[:: len(benchmark.queries) // QUERIES][:QUERIES]
    asked = [benchmark.queries[query] for query in chosen]
    gold = [set(benchmark.gold[query]) for query in chosen]
    asked_vectors = embeddings.embed_documents(asked)
    core = SkillSight().fit(texts, vectors, ids)
    retriever = SkillSightRetriever.from_vectorstore(store, k=10)
    return {
        "core": figures(
            [[hit.id for hit in hits] for hits in core.rank_batch(asked, asked_vectors, k=10)], gold
        ),
        "langchain": figures([[d.id for d in retriever.invoke(q)] for q in asked], gold),
        "plain": figures([[d.id for d in store.similarity_search(q, k=10)] for q in asked], gold),
    }


def test_the_figures_through_langchain_are_the_cores(measured):
    np.testing.assert_allclose(measured["langchain"], measured["core"], atol=TOLERANCE)


def test_they_are_far_above_plain_similarity(measured):
    gain = np.subtract(measured["langchain"], measured["plain"])
    assert (gain > 0.1).all(), measured
