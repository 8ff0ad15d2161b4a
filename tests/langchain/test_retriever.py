"""The retriever as a LangChain user meets it."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import time

import chromadb
import numpy as np
import pytest
from langchain_chroma import Chroma
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests

from skillsight_core import NotFittedError, SkillSight
from skillsight_langchain import SkillSightEmbeddings, SkillSightRetriever
from tests.langchain.conftest import (
    DIM,
    STORES,
    CountingEmbeddings,
    core_of,
    library,
    queries,
    uuid_of,
)

(QUERY,) = queries(1)


@pytest.fixture
def store() -> InMemoryVectorStore:
    store = InMemoryVectorStore(CountingEmbeddings())
    store.add_documents(library(100))
    return store


@pytest.fixture
def retriever(store) -> SkillSightRetriever:
    return SkillSightRetriever.from_vectorstore(store)


class TestConformance(RetrieversIntegrationTests):
    """The suite of langchain-tests, over every store."""

    @pytest.fixture(params=STORES, autouse=True)
    def _store(self, request, make_store):
        self.store = make_store(request.param, library(30))

    @property
    def retriever_constructor(self):
        return SkillSightRetriever

    @property
    def retriever_constructor_params(self):
        return {"vectorstore": self.store, "calibrator": core_of(library(30))}

    @property
    def retriever_query_example(self):
        return QUERY


class Spy(InMemoryVectorStore):
    """Counts searches and fetches."""

    searches = fetches = 0

    def similarity_search_by_vector(self, *args, **kwargs):
        self.searches += 1
        return super().similarity_search_by_vector(*args, **kwargs)

    def get_by_ids(self, ids, /):
        self.fetches += 1
        return super().get_by_ids(ids)


def test_a_call_is_one_query_embedding_one_search_and_at_most_one_fetch():
    embeddings = CountingEmbeddings()
    spy = Spy(embeddings)
    spy.add_documents(library(300))
    retriever = SkillSightRetriever.from_vectorstore(spy, pool_size=5)
    embeddings.documents = 0
    fetches = set()
    for number, query in enumerate(queries(20), start=1):
        before = spy.fetches
        retriever.invoke(query)
        assert (embeddings.queries, embeddings.documents, spy.searches) == (number, 0, number)
        fetches.add(spy.fetches - before)
    assert fetches == {0, 1}


async def test_async_awaits_the_embeddings_and_leaves_the_sync_ones_alone(store):
    retriever = SkillSightRetriever.from_vectorstore(store)
    await retriever.ainvoke(QUERY)
    assert (store.embedding.async_queries, store.embedding.queries) == (1, 0)


def test_metadata_is_kept_and_the_decomposition_is_plain_json(retriever):
    (best,) = retriever.invoke("item7", k=1)
    assert (best.id, best.metadata["group"], best.metadata["number"]) == (uuid_of(7), 1, 7)
    reasons = best.metadata["skillsight"]
    assert json.loads(json.dumps(reasons)) == reasons
    assert reasons["matched_tokens"] == ["item7"]
    assert reasons["rank"] == 1
    assert reasons["score"] == best.metadata["relevance_score"]
    assert reasons["score"] == reasons["semantic_z"] + max(reasons["lexical_z"], 0)


def test_batch_and_abatch_give_what_invoke_gives(retriever):
    many = queries(6)
    assert retriever.batch(many) == [retriever.invoke(query) for query in many]
    assert asyncio.run(retriever.abatch(many)) == retriever.batch(many)


def test_k_can_be_configured(retriever):
    configurable = retriever.configurable_fields(k=ConfigurableField(id="k"))
    assert len(configurable.invoke(QUERY, config={"configurable": {"k": 5}})) == 5
    assert len(configurable.invoke(QUERY)) == 3


def test_k_of_search_kwargs_counts_and_the_callers_comes_first(store):
    retriever = SkillSightRetriever.from_vectorstore(store, search_kwargs={"k": 4})
    assert len(retriever.invoke(QUERY)) == 4
    assert len(retriever.invoke(QUERY, k=2)) == 2


class Runs(BaseCallbackHandler):
    def __init__(self):
        self.started, self.ended = [], []

    def on_retriever_start(self, serialized, query, *, tags=None, metadata=None, **kwargs):
        self.started.append((query, tags, metadata))

    def on_retriever_end(self, documents, **kwargs):
        self.ended.append(len(documents))


@pytest.mark.parametrize("use_async", [False, True])
async def test_a_call_is_one_run_with_tags_and_metadata(retriever, use_async):
    runs = Runs()
    config = {"callbacks": [runs], "tags": ["mine"], "metadata": {"who": "me"}}
    if use_async:
        await retriever.ainvoke(QUERY, config)
    else:
        retriever.invoke(QUERY, config)
    ((query, tags, metadata),) = runs.started
    assert (query, tags, runs.ended) == (QUERY, ["mine"], [3])
    assert (
        metadata.items()
        >= {
            "who": "me",
            "ls_retriever_name": "skillsight",
            "ls_vector_store_provider": "InMemoryVectorStore",
            "ls_embedding_provider": "CountingEmbeddings",
        }.items()
    )


def test_copies_and_pickles_work(retriever):
    expected = retriever.invoke(QUERY)
    assert copy.deepcopy(retriever).invoke(QUERY) == expected
    assert pickle.loads(pickle.dumps(retriever)).invoke(QUERY) == expected


def test_as_a_retriever_tool(retriever):
    tool = create_retriever_tool(retriever, "library", "Search the library.")
    texts = [document.page_content for document in retriever.invoke(QUERY)]
    assert tool.invoke({"query": QUERY}) == "\n\n".join(texts)
    assert asyncio.run(tool.ainvoke({"query": QUERY})) == "\n\n".join(texts)


# -- what is refused -----------------------------------------------------------------------------


def test_unknown_fields_are_refused(retriever):
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        SkillSightRetriever(
            vectorstore=retriever.vectorstore, calibrator=retriever.calibrator, top_k=3
        )


@pytest.mark.parametrize("k", [-1, 1.5, True])
def test_a_k_that_is_no_count_is_refused(retriever, k):
    with pytest.raises(ValueError, match="SkillSightRetriever: k must be an integer >= 0, got"):
        retriever.invoke(QUERY, k=k)


def test_another_model_than_the_calibrators_is_refused_and_both_are_named(store):
    documents = library(20)
    texts = [document.page_content for document in documents]
    vectors = store.embedding.embed_documents(texts)
    other = SkillSight().fit(texts, vectors, encoder="other-model")
    with pytest.raises(ValueError, match="'other-model', got 'hash-embeddings'"):
        SkillSightRetriever.from_vectorstore(store, calibrator=other)


def test_an_unfitted_calibrator_is_refused(store):
    with pytest.raises((NotFittedError, ValueError), match="call fit first"):
        SkillSightRetriever(vectorstore=store, calibrator=SkillSight())


def test_options_beside_a_calibrator_are_refused(retriever):
    with pytest.raises(ValueError, match=r"options are for a new calibrator .* got \['beta'\]"):
        SkillSightRetriever.from_vectorstore(
            retriever.vectorstore, calibrator=retriever.calibrator, beta=2.0
        )


def test_a_store_without_embeddings_needs_them():
    store = Chroma("without-a-model", client=chromadb.EphemeralClient())
    with pytest.raises(ValueError, match="got None, and the Chroma has none of its own"):
        SkillSightRetriever.from_vectorstore(store)


def test_an_embedding_of_another_size_is_refused(store):
    retriever = SkillSightRetriever.from_vectorstore(store)
    retriever.embeddings = CountingEmbeddings(dim=16)
    with pytest.raises(ValueError, match=rf"\({DIM},\).*got \(16,\)"):
        retriever.invoke(QUERY)


# -- stores that are not known -------------------------------------------------------------------


class Foreign(VectorStore):
    """A store of its own kind around the one in memory; documents come back without ids."""

    def __init__(self, inner):
        self.inner = inner

    embeddings = property(lambda self: self.inner.embeddings)

    @classmethod
    def from_texts(cls, texts, embedding, metadatas=None, **kwargs):
        raise NotImplementedError

    def similarity_search(self, query, k=4, **kwargs):
        return self.inner.similarity_search(query, k, **kwargs)


class ForeignByVector(Foreign):
    def similarity_search_by_vector(self, embedding, k=4, **kwargs):
        found = self.inner.similarity_search_by_vector(embedding, k, **kwargs)
        return [Document(d.page_content, metadata=d.metadata) for d in found]


def test_an_unknown_store_says_what_to_pass(store):
    with pytest.raises(ValueError, match="a Foreign holds cannot be listed; pass documents="):
        SkillSightRetriever.from_vectorstore(Foreign(store))


def test_an_unknown_store_serves_with_its_documents_even_without_ids(store):
    documents = [Document(d.page_content) for d in library(100)]
    retriever = SkillSightRetriever.from_vectorstore(ForeignByVector(store), documents=documents)
    expected = SkillSightRetriever.from_vectorstore(store)
    for query in queries(5):
        texts = [document.page_content for document in retriever.invoke(query)]
        assert texts == [document.page_content for document in expected.invoke(query)]


@pytest.mark.parametrize("use_async", [False, True])
async def test_a_store_that_cannot_be_searched_by_vector_says_so(store, use_async):
    retriever = SkillSightRetriever.from_vectorstore(Foreign(store), documents=library(100))
    with pytest.raises(ValueError, match="a Foreign cannot be searched by vector; wrap"):
        await retriever.ainvoke(QUERY) if use_async else retriever.invoke(QUERY)


def test_texts_that_are_equal_keep_their_own_metadata(store):
    twins = [Document("one text", metadata={"number": n}) for n in range(2)]
    inner = InMemoryVectorStore(CountingEmbeddings())
    documents = [*twins, *library(20)]
    inner.add_documents(documents)
    retriever = SkillSightRetriever.from_vectorstore(
        ForeignByVector(inner), documents=[Document(d.page_content) for d in documents]
    )
    found = retriever.invoke("one text", k=2)
    assert {document.metadata["number"] for document in found} == {0, 1}


def test_embeddings_that_project_already_are_not_projected_twice(store):
    plain = SkillSightRetriever.from_vectorstore(store)
    store.embedding = SkillSightEmbeddings(store.embedding, plain.calibrator)
    again = SkillSightRetriever(vectorstore=store, calibrator=plain.calibrator)
    assert again.invoke(QUERY) == plain.invoke(QUERY, k=3)


def test_a_query_that_is_all_background_gets_an_answer(retriever):
    class Background(CountingEmbeddings):
        def embed_query(self, text):
            return retriever.calibrator.basis_[:, 0].tolist()

    retriever.embeddings = Background()
    scores = [d.metadata["relevance_score"] for d in retriever.invoke("")]
    assert len(scores) == 3
    assert np.isfinite(scores).all()


# -- the event loop ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["chroma-disk", "memory", "faiss-l2"])
async def test_the_event_loop_goes_on_while_a_large_library_is_ranked(kind, make_store):
    """No callback holds the loop; time is the loop's thread's own, so that load cannot tell."""
    n = 25_000
    random = np.random.default_rng(0)
    texts = [f"skill {i} about {' '.join(WORDS_OF[i % len(WORDS_OF)])}" for i in range(n)]
    vectors = random.standard_normal((n, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    table = dict(zip(texts, vectors.tolist(), strict=True))

    class Ready(CountingEmbeddings):
        def embed_documents(self, texts):
            return [table[text] for text in texts]

    ids = [uuid_of(i) for i in range(n)]
    documents = [Document(text, id=id_) for text, id_ in zip(texts, ids, strict=True)]
    store = make_store(kind, [], Ready())
    for start in range(0, n, 5000):
        some = documents[start : start + 5000]
        store.add_documents(some, ids=[document.id for document in some])
    retriever = SkillSightRetriever(
        vectorstore=store, calibrator=SkillSight().fit(texts, vectors, ids)
    )
    await retriever.ainvoke(QUERY)  # whatever is loaded at first

    late = []

    async def tick():
        while True:
            start = time.thread_time()
            due = time.perf_counter() + 0.01
            await asyncio.sleep(0.01)
            late.append((time.perf_counter() - due, time.thread_time() - start))

    ticker = asyncio.create_task(tick())
    for query in queries(30):
        assert len(await retriever.ainvoke(query)) == 3
    ticker.cancel()
    assert len(late) >= 5
    assert max(busy for _, busy in late) <= 0.05
    assert np.median([wait for wait, _ in late]) <= 0.05


WORDS_OF = [query.split() for query in queries(500)]
