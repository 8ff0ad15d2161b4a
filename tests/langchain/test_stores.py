"""Every store gives what the bare core gives."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from skillsight_core import SkillSight, SkillSightWarning
from skillsight_langchain import SkillSightRetriever
from skillsight_langchain._scoring import by_id
from tests.conftest import ours
from tests.fakes import HashEncoder
from tests.langchain.conftest import (
    DIM,
    STORES,
    CountingEmbeddings,
    core_of,
    group_filter,
    library,
    queries,
    uuid_of,
)

every_store = pytest.mark.parametrize("kind", STORES)
one_of_each = pytest.mark.parametrize(
    "kind", ["memory", "chroma-l2", "faiss-l2", "qdrant-cosine", "postgres-cosine"]
)
ENCODER = HashEncoder(DIM)


def ids(documents):
    return [document.id for document in documents]


@every_store
def test_top_three_are_the_cores_over_two_thousand_documents(kind, make_store):
    documents = library(2000)
    core = core_of(documents)
    retriever = SkillSightRetriever.from_vectorstore(make_store(kind, documents))
    assert set(retriever.calibrator.ids_) == set(core.ids_)  # read page by page
    for query in queries(100):
        expected = [hit.id for hit in core.rank(query, ENCODER.encode([query])[0], k=3)]
        assert ids(retriever.invoke(query)) == expected


@one_of_each
async def test_async_gives_what_sync_gives(kind, make_store):
    retriever = SkillSightRetriever.from_vectorstore(make_store(kind, library(700)), k=7)
    for query in queries(5):
        assert await retriever.ainvoke(query) == retriever.invoke(query)


@one_of_each
@pytest.mark.parametrize("fusion", ["robust", "rectified"])
def test_scores_are_the_calibrators(kind, fusion, make_store):
    store = make_store(kind, library(500))
    retriever = SkillSightRetriever.from_vectorstore(store, fusion=fusion, pool_size=50, k=20)
    for query in queries(5):
        hits = retriever.calibrator.rank(query, ENCODER.encode([query])[0], k=20)
        found = retriever.invoke(query)
        assert ids(found) == [hit.id for hit in hits]
        scores = [document.metadata["relevance_score"] for document in found]
        np.testing.assert_allclose(scores, [hit.score for hit in hits], atol=1e-4)


@one_of_each
def test_any_k_is_a_prefix_and_none_is_too_large(kind, make_store):
    documents = library(120)
    store = make_store(kind, documents)
    retriever = SkillSightRetriever.from_vectorstore(store, pool_size=30)
    core = retriever.calibrator
    (query,) = queries(1)
    expected = [hit.id for hit in core.rank(query, ENCODER.encode([query])[0], k=120)]
    for k in (0, 1, 3, 29, 31, 119, 120, 121, 10**6):
        assert ids(retriever.invoke(query, k=k)) == expected[:k]


@one_of_each
async def test_a_filter_is_obeyed_by_lexical_candidates_too(kind, make_store):
    documents = library(400)
    retriever = SkillSightRetriever.from_vectorstore(make_store(kind, documents), pool_size=20)
    core = core_of(documents, pool_size=20)
    for query in queries(5):
        outside = [
            i for i in core.lexical_candidates(query) if i in {uuid_of(n) for n in range(0, 400, 2)}
        ]
        assert outside  # there is something to go wrong
        found = retriever.invoke(query, k=30, filter=group_filter(kind, 1))
        assert len(found) >= 20
        assert {document.metadata["group"] for document in found} == {1}
        again = await retriever.ainvoke(query, k=30, filter=group_filter(kind, 1))
        assert ids(again) == ids(found)


@one_of_each
def test_a_narrow_filter_gives_the_ranking_of_what_it_lets_through(kind, make_store):
    documents = library(200)
    retriever = SkillSightRetriever.from_vectorstore(
        make_store(kind, documents), search_kwargs={"filter": group_filter(kind, 0)}
    )
    core = core_of(documents)
    for query in queries(5):
        hits = core.rank(query, ENCODER.encode([query])[0], k=5, candidates=ids(documents[::2]))
        assert ids(retriever.invoke(query, k=5)) == [hit.id for hit in hits]


@one_of_each
def test_deleted_documents_are_not_offered(kind, make_store):
    documents = library(100)
    store = make_store(kind, documents)
    retriever = SkillSightRetriever.from_vectorstore(store, pool_size=10)
    (query,) = queries(1)
    gone = ids(retriever.invoke(query, k=5))
    store.delete(gone)
    found = ids(retriever.invoke(query, k=5))
    assert len(found) == 5
    assert not set(found) & set(gone)


@one_of_each
def test_added_documents_are_found_at_once_with_one_warning_and_one_embedding(kind, make_store):
    embeddings = CountingEmbeddings()
    documents = library(101)
    store = make_store(kind, documents[:100], embeddings)
    retriever = SkillSightRetriever.from_vectorstore(store)
    store.add_documents(documents[100:], ids=[documents[100].id])
    embeddings.documents = 0
    with pytest.warns(
        SkillSightWarning, match="1 of 101 candidates are not in the library"
    ) as all_:
        found = retriever.invoke(documents[100].page_content)
    assert len(ours(all_)) == 1
    assert found[0].id == documents[100].id
    with pytest.warns(SkillSightWarning):
        retriever.invoke("item100")
    assert embeddings.documents == 1
    retriever.refresh()
    assert retriever.invoke("item100")[0].id == documents[100].id


@one_of_each
def test_the_store_is_left_as_it_was(kind, make_store):
    documents = library(50)
    before = copy.deepcopy(documents)
    store = make_store(kind, documents)
    retriever = SkillSightRetriever.from_vectorstore(store)
    for _ in range(2):
        for document in retriever.invoke(queries(1)[0]):
            document.metadata["number"] = "changed"
    assert documents == before
    plain = store.similarity_search(documents[3].page_content, k=50)
    assert all(isinstance(document.metadata["number"], int) for document in plain)
    assert all("skillsight" not in document.metadata for document in plain)


@pytest.mark.parametrize(
    "kind", ["chroma-l2", "chroma-ip", "faiss-l2", "qdrant-dot", "postgres-l2"]
)
def test_vectors_of_another_length_are_refused_where_they_matter(kind, make_store):
    class Long(CountingEmbeddings):
        def embed_documents(self, texts):
            return [[2 * value for value in row] for row in super().embed_documents(texts)]

    documents = library(20)
    store = make_store(kind, documents, Long())
    with pytest.raises(ValueError, match=r"must have length 1, got 2 for id .* \(and 19 more\)"):
        SkillSightRetriever.from_vectorstore(store)


def test_vectors_of_any_length_serve_under_cosine(make_store):
    class Long(CountingEmbeddings):
        def embed_documents(self, texts):
            return [[2 * value for value in row] for row in super().embed_documents(texts)]

    documents = library(50)
    store = make_store("chroma-cosine", documents, Long())
    (query,) = queries(1)
    expected = [hit.id for hit in core_of(documents).rank(query, ENCODER.encode([query])[0])]
    assert ids(SkillSightRetriever.from_vectorstore(store).invoke(query)) == expected


def test_a_manhattan_store_is_refused(make_store):
    store = make_store("qdrant-manhattan", library(10))
    with pytest.raises(ValueError, match="must be cosine, ip or l2, got 'manhattan'"):
        SkillSightRetriever.from_vectorstore(store)


@one_of_each
def test_an_empty_store_gives_nothing(kind, make_store):
    with pytest.warns(SkillSightWarning, match="too few"):
        retriever = SkillSightRetriever.from_vectorstore(make_store(kind, []))
    assert retriever.invoke("anything") == []


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_documents_are_all_returned(n, make_store):
    with pytest.warns(SkillSightWarning, match="too few"):
        retriever = SkillSightRetriever.from_vectorstore(make_store("chroma-l2", library(n)))
    assert len(retriever.invoke("user", k=9)) == n


def test_a_threshold_keeps_lexical_candidates_out(make_store):
    documents = library(300)
    store = make_store("qdrant-cosine", documents)
    retriever = SkillSightRetriever.from_vectorstore(store, pool_size=10)
    (query,) = queries(1)
    vector = retriever.calibrator.project(ENCODER.encode([query])[0]).tolist()
    allowed = store.similarity_search_by_vector(vector, k=10, score_threshold=0.2)
    found = retriever.invoke(query, k=10, score_threshold=0.2)
    assert {d.metadata["_id"] for d in found} == {d.metadata["_id"] for d in allowed}


def test_a_store_derived_from_chroma_is_searched_in_its_own_way(make_store):
    store = make_store("chroma-l2", library(100))

    class OneTenant(type(store)):
        def similarity_search_by_vector(self, embedding, k=4, filter=None, **kwargs):
            return super().similarity_search_by_vector(embedding, k, {"group": 1}, **kwargs)

    store.__class__ = OneTenant
    retriever = SkillSightRetriever.from_vectorstore(store, calibrator=SkillSight.paper(), k=100)
    groups = {document.metadata["group"] for document in retriever.invoke("user")}
    assert groups == {1}


@pytest.mark.parametrize("gone", ["before the search", "while it runs"])
def test_what_chroma_deletes_is_not_returned(gone, make_store, monkeypatch):
    documents = library(200)
    store = make_store("chroma-l2", documents)
    retriever = SkillSightRetriever.from_vectorstore(store, pool_size=20, k=5)
    kept = [document for document in documents if document.id != uuid_of(17)]
    assert ids(retriever.invoke("item17"))[0] == uuid_of(17)
    if gone == "before the search":
        store.delete([uuid_of(17)])
    else:
        search = type(store._collection).query

        def late(collection, **arguments):
            found = search(collection, **arguments)
            collection.delete([uuid_of(17)])
            return found

        monkeypatch.setattr(type(store._collection), "query", late)
    found = ids(retriever.invoke("item17"))
    assert len(found) == 5
    assert set(found) <= set(ids(kept))


@one_of_each
def test_where_a_deleted_document_would_win_no_deleted_one_counts(kind, make_store):
    documents = library(300)
    store = make_store(kind, documents)
    retriever = SkillSightRetriever.from_vectorstore(store, pool_size=10, k=3)
    core, gone = retriever.calibrator, set()
    for number in (17, 42, 99):
        query = " ".join(documents[number].page_content.split()[-4:])
        embedding = ENCODER.encode([query])[0]
        lexical = core.lexical_candidates(query)
        assert retriever.invoke(query)[0].id == uuid_of(number)
        gone |= {uuid_of(number), *lexical[::2]}
        store.delete([id_ for id_ in gone if id_ in by_id(store.get_by_ids([id_]))])
        nearest = by_id(store.similarity_search_by_vector(core.project(embedding).tolist(), k=10))
        pool = dict.fromkeys([*nearest, *(id_ for id_ in lexical if id_ not in gone)])
        expected = core.score_candidates(query, embedding, pool, k=3)
        found = retriever.invoke(query)
        assert ids(found) == [hit.id for hit in expected]
        scores = [document.metadata["relevance_score"] for document in found]
        np.testing.assert_allclose(scores, [hit.score for hit in expected], atol=1e-4)


def test_a_chroma_entry_without_text_is_no_document(make_store):
    documents = library(50)
    store = make_store("chroma-l2", documents)
    vector = ENCODER.encode(["item17"])
    store._collection.add(["bare"], vector)
    retriever = SkillSightRetriever.from_vectorstore(store, k=100)
    assert set(ids(retriever.invoke("item17"))) == set(ids(documents))


def test_qdrants_own_numbers_are_fetched():
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    size = models.VectorParams(size=DIM, distance=models.Distance.COSINE)
    client.create_collection("c", vectors_config=size)
    documents = library(200)
    store = QdrantVectorStore(client, "c", CountingEmbeddings())
    store.add_documents(documents, ids=list(range(200)))
    retriever = SkillSightRetriever.from_vectorstore(store, pool_size=5)
    assert retriever.invoke("item17")[0].id == "17"


def test_a_published_calibrator_brings_no_lexical_candidates(make_store):
    store = make_store("memory", library(100))
    retriever = SkillSightRetriever.from_vectorstore(store, calibrator=SkillSight.paper())
    assert retriever.calibrator.n_skills_ == 100
    assert retriever.calibrator.fusion == "rectified"
    assert len(retriever.invoke("item17")) == 3
