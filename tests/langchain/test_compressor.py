"""Calibrated ranking of what other retrievers return."""

from __future__ import annotations

import copy

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from skillsight_core import SkillSight, SkillSightWarning
from skillsight_langchain import SkillSightCompressor
from tests.langchain.conftest import CountingEmbeddings, core_of, library, queries

DOCUMENTS = library(60)
(QUERY,) = queries(1)


@pytest.fixture
def compressor() -> SkillSightCompressor:
    return SkillSightCompressor(calibrator=core_of(DOCUMENTS), embeddings=CountingEmbeddings())


def test_the_pool_is_ranked_as_the_core_ranks_it(compressor):
    pool = DOCUMENTS[:20]
    before = copy.deepcopy(pool)
    vector = compressor.embeddings.embed_query(QUERY)
    ids = [document.id for document in pool]
    expected = compressor.calibrator.score_candidates(QUERY, vector, ids)[:3]
    found = compressor.compress_documents(pool, QUERY)
    assert [document.id for document in found] == [hit.id for hit in expected]
    assert [d.metadata["relevance_score"] for d in found] == [hit.score for hit in expected]
    assert pool == before
    assert compressor.embeddings.documents == 0


async def test_async_awaits_the_embeddings_and_gives_the_same(compressor):
    found = await compressor.acompress_documents(DOCUMENTS, QUERY)
    assert (compressor.embeddings.queries, compressor.embeddings.async_queries) == (0, 1)
    assert found == compressor.compress_documents(DOCUMENTS, QUERY)


def test_unknown_documents_are_embedded_by_one_call_and_only_once(compressor):
    new = [Document(f"unheard of {n}", id=str(n)) for n in range(3)]
    for _ in range(2):
        with pytest.warns(SkillSightWarning, match="3 of 63 candidates are not in the library"):
            found = compressor.compress_documents([*DOCUMENTS, *new], "unheard of 1")
        assert found[0].id == "1"
    assert compressor.embeddings.documents == 1


def test_documents_without_ids_are_known_by_their_texts():
    texts = [document.page_content for document in DOCUMENTS]
    embeddings = CountingEmbeddings()
    calibrator = SkillSight().fit(texts, embeddings.embed_documents(texts))
    compressor = SkillSightCompressor(calibrator=calibrator, embeddings=embeddings)
    found = compressor.compress_documents([Document(text) for text in texts], "item9")
    assert found[0].page_content == DOCUMENTS[9].page_content
    assert found[0].id is None
    assert embeddings.documents == 1


def test_a_document_that_comes_twice_is_returned_once(compressor):
    found = compressor.compress_documents([DOCUMENTS[3], *DOCUMENTS[:5]], QUERY)
    assert len({document.id for document in found}) == 3


def test_an_earlier_score_is_kept(compressor):
    scored = Document("text", id=DOCUMENTS[0].id, metadata={"relevance_score": 0.5})
    (found,) = compressor.compress_documents([scored], QUERY)
    assert found.metadata["skillsight"]["previous_relevance_score"] == 0.5


def test_a_text_without_a_vector_is_scored_by_its_words(compressor):
    class Silent(CountingEmbeddings):
        def embed_documents(self, texts):
            return [[0.0] * len(self.embed_query("a")) for _ in texts]

    compressor.embeddings = Silent()
    with pytest.warns(SkillSightWarning):
        found = compressor.compress_documents([Document("", id="x"), *DOCUMENTS[:9]], QUERY)
    assert len(found) == 3


def test_nothing_gives_nothing_and_asks_for_nothing(compressor):
    assert compressor.compress_documents([], QUERY) == []
    compressor.top_n = 0
    assert compressor.compress_documents(DOCUMENTS, QUERY) == []
    assert compressor.embeddings.queries == 0


def test_inside_a_contextual_compression_retriever(compressor):
    store = InMemoryVectorStore(CountingEmbeddings())
    store.add_documents(DOCUMENTS)
    retriever = ContextualCompressionRetriever(
        base_compressor=compressor, base_retriever=store.as_retriever(search_kwargs={"k": 30})
    )
    assert len(retriever.invoke(QUERY)) == 3


def test_what_cannot_be_is_refused(compressor):
    with pytest.raises(ValueError, match="SkillSightCompressor: top_n must be an integer >= 0"):
        SkillSightCompressor(
            calibrator=compressor.calibrator, embeddings=compressor.embeddings, top_n=-1
        )
    other = SkillSight(background="none").fit(["a"], [[1.0]], encoder="another")
    with pytest.raises(ValueError, match="'another', got 'hash-embeddings'"):
        SkillSightCompressor(calibrator=other, embeddings=compressor.embeddings)
