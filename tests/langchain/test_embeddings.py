"""Embeddings in both directions, and the ones that project."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import EmbeddingsIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests

from skillsight_core import NotFittedError, SkillSight
from skillsight_langchain import EncoderEmbeddings, LangChainEncoder, SkillSightEmbeddings
from tests.fakes import HashEncoder
from tests.langchain.conftest import STORES, CountingEmbeddings, core_of, library, queries


class OfSkillSight:
    embeddings_class = SkillSightEmbeddings

    @property
    def embedding_model_params(self):
        return {"embeddings": CountingEmbeddings(), "calibrator": core_of(library(30))}


class TestUnit(OfSkillSight, EmbeddingsUnitTests):
    """The unit suite of langchain-tests."""


class TestIntegration(OfSkillSight, EmbeddingsIntegrationTests):
    """The integration suite of langchain-tests."""


class TestEncoderEmbeddings(EmbeddingsIntegrationTests):
    """The integration suite of langchain-tests, for an encoder of the core."""

    embeddings_class = EncoderEmbeddings

    @property
    def embedding_model_params(self):
        return {"encoder": HashEncoder()}


@pytest.mark.parametrize("kind", STORES)
def test_any_store_ranks_by_the_calibrated_semantic_score(kind, make_store):
    documents = library(300)
    core = core_of(documents)
    embeddings = SkillSightEmbeddings(CountingEmbeddings(), core)
    store = make_store(kind, documents, embeddings)
    vectors = np.array(embeddings.embed_documents([d.page_content for d in documents]))
    for query in queries(5):
        projected = core.project(embeddings.embeddings.embed_query(query))
        expected = np.argsort(-(vectors @ projected))[:10]
        found = [d.metadata["number"] for d in store.similarity_search(query, k=10)]
        assert found == expected.tolist()


def test_documents_pass_through_and_queries_lose_the_background():
    model = CountingEmbeddings()
    texts = [document.page_content for document in library(50)]
    embeddings = SkillSightEmbeddings.from_texts(model, texts, pool_size=10)
    assert embeddings.calibrator.pool_size == 10
    assert embeddings.calibrator.encoder_name_ == "hash-embeddings"
    assert embeddings.embed_documents(texts) == model.embed_documents(texts)
    query = np.array(embeddings.embed_query("use this skill"))
    np.testing.assert_allclose(query @ embeddings.calibrator.basis_, 0, atol=1e-6)


async def test_async_gives_what_sync_gives():
    embeddings = SkillSightEmbeddings(CountingEmbeddings(), core_of(library(50)))
    assert await embeddings.aembed_query("user") == embeddings.embed_query("user")
    assert await embeddings.aembed_documents(["a"]) == embeddings.embed_documents(["a"])
    assert embeddings.embeddings.async_queries == 1


def test_a_query_of_which_nothing_is_left_is_searched_with_as_it_is():
    core = core_of(library(50))
    background = core.basis_[:, 0].tolist()

    class Background(CountingEmbeddings):
        def embed_query(self, text):
            return background

    assert SkillSightEmbeddings(Background(), core).embed_query("") == background


def test_what_cannot_fit_is_refused():
    with pytest.raises(NotFittedError, match="call fit first"):
        SkillSightEmbeddings(CountingEmbeddings(), SkillSight())
    other = SkillSight(background="none").fit(["a"], [[1.0]], encoder="another")
    with pytest.raises(ValueError, match="'another', got 'hash-embeddings'"):
        SkillSightEmbeddings(CountingEmbeddings(), other)


def test_a_model_has_the_name_of_its_class_and_model():
    class Provider(DeterministicFakeEmbedding):
        model: str = "text-1"
        dimensions: int | None = None

    assert LangChainEncoder(Provider(size=4)).name == "Provider:text-1"
    assert LangChainEncoder(Provider(size=4, dimensions=4)).name == "Provider:text-1:4"
    assert LangChainEncoder(DeterministicFakeEmbedding(size=4)).name is None
    assert LangChainEncoder(EncoderEmbeddings(HashEncoder(8))).name == "hash-8-0"


def test_the_encoder_gives_the_vectors_of_documents():
    model = CountingEmbeddings()
    encoder = LangChainEncoder(model)
    assert encoder.encode([]).shape == (0, 0)
    np.testing.assert_allclose(encoder.encode(["a b", "c"]), model.embed_documents(["a b", "c"]))
    assert repr(encoder) == "LangChainEncoder('hash-embeddings')"


def test_an_encoder_without_a_name_has_none():
    encoder = SimpleNamespace(encode=lambda texts: np.ones((len(texts), 2)))
    embeddings = EncoderEmbeddings(encoder)
    assert embeddings.name is None
    store = InMemoryVectorStore(embeddings)
    store.add_texts(["a"])
    assert len(store.similarity_search("b")) == 1
