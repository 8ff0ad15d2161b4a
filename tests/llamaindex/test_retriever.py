"""What the retriever finds, over which stores, and what it asks of them."""

from __future__ import annotations

import asyncio
import threading
import uuid
from typing import Any

import numpy as np
import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.bridge.pydantic import Field
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from skillsight_core import SkillSight, SkillSightWarning, tokenize
from skillsight_llamaindex import SkillSightRetriever, fit_index, fit_nodes
from skillsight_llamaindex._scoring import node_text
from tests.conftest import ours
from tests.fakes import HashEncoder
from tests.llamaindex.parts import (
    QUERY,
    STORES,
    embedded,
    hash_embedding,
    ids,
    make_index,
    make_nodes,
    make_store,
    node_id,
)

QUERIES = [QUERY, "rare3 and rare90", "w1 w2 w5", "use this skill", "zebra", "", "rare117 w0"]
RED = MetadataFilters(filters=[MetadataFilter(key="team", value="red")])


@pytest.mark.parametrize("fusion", ["robust", "rectified"])
@pytest.mark.parametrize(
    ("store", "metric"),
    [
        ("simple", "default"),
        ("chroma", "l2"),
        ("chroma", "cosine"),
        ("chroma", "ip"),
        ("qdrant", "cosine"),
        ("qdrant", "ip"),
        ("qdrant", "l2"),
        ("faiss", "l2"),
        ("faiss", "ip"),
        ("faiss-map", "l2"),
    ],
)
def test_ranks_as_the_core_does_over_every_store_and_metric(
    store: str, metric: str, fusion: str
) -> None:
    model = hash_embedding()
    index = make_index(store, make_nodes(), model, metric=metric)
    # A pool far smaller than the library, so that candidates of the words alone matter.
    retriever = SkillSightRetriever.from_index(index, k=5, pool_size=20, fusion=fusion)
    core = retriever.calibrator
    assert set(core.ids_) == set(ids_of(make_nodes()))
    for query in QUERIES:
        expected = core.rank(query, embedded(HashEncoder(), query), k=5)
        hits = retriever.retrieve(query)
        assert ids(hits) == [skill.id for skill in expected], query
        assert [h.score for h in hits] == pytest.approx([s.score for s in expected], abs=1e-4)


def test_returns_the_decomposition_as_plain_types_in_the_metadata() -> None:
    index = make_index("simple", make_nodes(), hash_embedding())
    retriever = SkillSightRetriever.from_index(index, k=1)
    (skill,) = retriever.calibrator.rank(QUERY, embedded(HashEncoder(), QUERY), k=1)
    (hit,) = retriever.retrieve(QUERY)
    assert hit.node.node_id == skill.id
    reasons = hit.node.metadata["skillsight"]
    assert reasons["rank"] == 1
    assert reasons["lexical"] == pytest.approx(skill.lexical)
    assert reasons["semantic"] == pytest.approx(skill.semantic, abs=1e-6)
    assert reasons["matched_tokens"] == list(skill.matched_tokens)
    assert {"w3", "w11"} <= {*reasons["matched_tokens"], *reasons["unmatched_tokens"]}


@pytest.mark.parametrize("store", STORES)
async def test_embeds_the_query_once_and_no_document(store: str) -> None:
    model = hash_embedding()
    retriever = SkillSightRetriever.from_index(make_index(store, make_nodes(), model))
    before = model.texts
    retriever.retrieve(QUERY)
    await retriever.aretrieve(QUERY)
    assert (model.queries, model.texts) == (2, before)


def test_uses_the_embedding_of_the_bundle_and_custom_embedding_strings() -> None:
    model = hash_embedding()
    retriever = SkillSightRetriever.from_index(make_index("simple", make_nodes(), model))
    vector = embedded(HashEncoder(), "rare40")
    given = retriever.retrieve(QueryBundle(QUERY, embedding=vector.tolist()))
    assert model.queries == 0
    hypothetical = retriever.retrieve(QueryBundle(QUERY, custom_embedding_strs=["rare40"]))
    expected = retriever.calibrator.rank(QUERY, vector, k=3)
    assert ids(given) == ids(hypothetical) == [skill.id for skill in expected]


@pytest.mark.parametrize("store", ["simple", "chroma", "qdrant"])
async def test_filters_hold_for_the_candidates_that_words_bring(store: str) -> None:
    index = make_index(store, make_nodes(), hash_embedding())
    retriever = SkillSightRetriever.from_index(
        index, k=100, pool_size=5, search_kwargs={"filters": RED}
    )
    for i in (7, 8):  # 7 is red, 8 is blue
        hits = retriever.retrieve(f"rare{i} alone")
        assert {hit.node.metadata["team"] for hit in hits} == {"red"}
        assert (node_id(i) in ids(hits)) == bool(i % 2)
        assert ids(await retriever.aretrieve(f"rare{i} alone")) == ids(hits)


@pytest.mark.parametrize("store", ["simple", "chroma", "qdrant"])
def test_a_wrapped_retriever_keeps_its_filters_and_is_not_changed(store: str) -> None:
    index = make_index(store, make_nodes(), hash_embedding())
    early = MetadataFilters(
        filters=[MetadataFilter(key="place", value=50, operator=FilterOperator.LT)]
    )
    wrapped = index.as_retriever(similarity_top_k=2, filters=early)
    before = dict(vars(wrapped))
    retriever = SkillSightRetriever(wrapped, fit_index(index, pool_size=10), k=10)
    assert ids(retriever.retrieve("rare49"))[0] == node_id(49)
    hits = retriever.retrieve("rare90 rare50 rare60")
    assert len(hits) == 10
    assert all(hit.node.metadata["place"] < 50 for hit in hits)
    assert vars(wrapped) == before


def test_chroma_where_clauses_hold_for_the_candidates_that_words_bring() -> None:
    index = make_index("chroma", make_nodes(), hash_embedding())
    where = {"where": {"team": "red"}, "where_document": {"$contains": "w3 "}}
    retriever = SkillSightRetriever.from_index(
        index, k=100, pool_size=8, search_kwargs={"vector_store_kwargs": where}
    )
    hits = retriever.retrieve("rare7 rare8 rare9 rare11 w3")
    assert hits
    assert all(h.node.metadata["team"] == "red" and "w3 " in h.node.text for h in hits)


def test_qdrant_filters_hold_for_the_candidates_that_words_bring() -> None:
    from qdrant_client import models

    index = make_index("qdrant", make_nodes(), hash_embedding())
    red = models.FieldCondition(key="team", match=models.MatchValue(value="red"))
    options = {"vector_store_kwargs": {"qdrant_filters": models.Filter(must=[red])}}
    retriever = SkillSightRetriever.from_index(index, k=100, pool_size=5, search_kwargs=options)
    hits = retriever.retrieve("rare7 rare8")
    assert node_id(7) in ids(hits)
    assert {hit.node.metadata["team"] for hit in hits} == {"red"}


def test_node_ids_of_the_wrapped_retriever_hold_for_the_candidates_that_words_bring() -> None:
    allowed = [node_id(i) for i in range(0, 120, 3)]
    for store in ("simple", "qdrant"):
        index = make_index(store, make_nodes(), hash_embedding())
        wrapped = VectorIndexRetriever(index, node_ids=allowed)
        retriever = SkillSightRetriever(wrapped, fit_index(index, pool_size=5), k=100)
        hits = retriever.retrieve("rare7 rare9")
        assert node_id(9) in ids(hits)
        assert set(ids(hits)) <= set(allowed)


@pytest.mark.parametrize("store", ["simple", "chroma", "qdrant", "faiss-map"])
def test_deleted_nodes_never_come_back(store: str) -> None:
    index = make_index(store, make_nodes(), hash_embedding())
    retriever = SkillSightRetriever.from_index(index, k=100, pool_size=10)
    assert ids(retriever.retrieve("rare7"))[0] == node_id(7)
    index.vector_store.delete_nodes([node_id(7)])
    hits = retriever.retrieve("rare7")
    assert hits
    assert node_id(7) not in ids(hits)


@pytest.mark.parametrize("store", ["chroma", "qdrant"])
def test_what_a_filter_keeps_out_does_not_count_as_a_candidate(store: str) -> None:
    nodes = make_nodes()
    index = make_index(store, nodes, hash_embedding())
    filters = MetadataFilters(filters=[MetadataFilter(key="team", value="red")])
    retriever = SkillSightRetriever.from_index(
        index, k=1, pool_size=10, search_kwargs={"filters": filters}
    )
    core, vectors = retriever.calibrator, HashEncoder().encode([node.text for node in nodes])
    red = {node.node_id for node in nodes if node.metadata["team"] == "red"}
    for query in ("rare7 w1 w2", "w3 w4 skill", "rare8 rare9 w5"):
        embedding = HashEncoder().encode([query])[0]
        nearest = np.argsort(-(vectors @ core.project(embedding)))
        pool = [id_ for id_ in (nodes[i].node_id for i in nearest) if id_ in red][:10]
        words = [id_ for id_ in core.lexical_candidates(query) if id_ in red]
        expected = core.score_candidates(query, embedding, list(dict.fromkeys(pool + words)), k=1)
        hits = retriever.retrieve(query)
        assert ids(hits) == [hit.id for hit in expected]
        np.testing.assert_allclose(
            [hit.score for hit in hits], [hit.score for hit in expected], atol=1e-4
        )


def test_of_what_words_alone_bring_only_the_returned_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = make_index("chroma", make_nodes(), hash_embedding())
    retriever = SkillSightRetriever.from_index(index, k=1, pool_size=10)
    collection = type(index.vector_store.client)
    get, asked = collection.get, []

    def counted(self: Any, ids: list[str], **arguments: Any) -> Any:
        asked.append(len(ids))
        return get(self, ids=ids, **arguments)

    monkeypatch.setattr(collection, "get", counted)
    elsewhere = HashEncoder().encode(["something else"])[0].tolist()
    hits = retriever.retrieve(QueryBundle("rare7 when", embedding=elsewhere))
    assert ids(hits) == [node_id(7)]
    assert len(retriever.calibrator.lexical_candidates("rare7 when")) == 10
    assert asked == [1]


@pytest.mark.parametrize("store", STORES)
def test_inserted_nodes_are_found_at_the_next_call_with_one_warning(store: str) -> None:
    index = make_index(store, make_nodes(), hash_embedding())
    retriever = SkillSightRetriever.from_index(index, k=1)
    late = TextNode(id_=str(uuid.uuid4()), text="prune the orchard rare777")
    index.insert_nodes([late])
    with pytest.warns(SkillSightWarning, match="1 of 121 candidates are not in the lib") as caught:
        hits = retriever.retrieve("prune an orchard")
    assert ids(hits) == [late.node_id]
    assert len(ours(caught)) == 1
    assert hits[0].node.metadata["skillsight"]["semantic"] > 0.3


async def test_qdrant_is_awaited_through_its_own_async_client() -> None:
    from qdrant_client import AsyncQdrantClient

    model, nodes = hash_embedding(), make_nodes()
    index = make_index("qdrant", nodes, model)
    retriever = SkillSightRetriever.from_index(index, k=5, pool_size=10)
    expected = ids(retriever.retrieve(QUERY))
    store: Any = index.vector_store
    store._aclient = AsyncQdrantClient(":memory:")
    stored = [n.model_copy(update={"embedding": model.get_text_embedding(n.text)}) for n in nodes]
    await store.async_add(stored)
    store._client.delete_collection(store.collection_name)  # nothing is left for a blocking call
    assert ids(await retriever.aretrieve(QUERY)) == expected


class ListStore(BasePydanticVectorStore):
    """A store that nothing is known of, not even how to list it."""

    stores_text: bool = True
    held: list[Any] = Field(default_factory=list)

    @property
    def client(self) -> None:
        return None

    def add(self, nodes: Any, **kwargs: Any) -> list[str]:
        self.held.extend(nodes)
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
        raise NotImplementedError

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        scores = np.array([node.embedding for node in self.held]) @ np.array(query.query_embedding)
        best = np.argsort(-scores)[: query.similarity_top_k]
        return VectorStoreQueryResult(
            nodes=[self.held[i] for i in best],
            ids=[self.held[i].node_id for i in best],
            similarities=scores[best].tolist(),
        )


async def test_an_unknown_store_takes_nodes_and_contributes_what_it_finds() -> None:
    nodes = make_nodes()
    context = StorageContext.from_defaults(vector_store=ListStore())
    index = VectorStoreIndex(nodes, embed_model=hash_embedding(), storage_context=context)
    with pytest.raises(ValueError, match="fit_index: nodes must be given for a ListStore"):
        SkillSightRetriever.from_index(index)
    retriever = SkillSightRetriever.from_index(index, nodes=nodes, k=120, pool_size=20)
    hits = retriever.retrieve(QUERY)
    assert len(hits) == 20
    assert ids(await retriever.aretrieve(QUERY)) == ids(hits)
    whole = SkillSightRetriever.from_index(index, nodes=nodes)
    expected = whole.calibrator.rank(QUERY, embedded(HashEncoder(), QUERY))
    assert ids(whole.retrieve(QUERY)) == [skill.id for skill in expected]


class FixedRetriever(BaseRetriever):
    """Any other retriever: remembers what it was asked."""

    def __init__(self, nodes: list[NodeWithScore]) -> None:
        super().__init__()
        self.nodes = nodes
        self.asked: list[QueryBundle] = []
        self.threads: list[int] = []

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked.append(query_bundle)
        self.threads.append(threading.get_ident())
        return self.nodes


def test_any_retriever_gets_the_projected_query() -> None:
    nodes = make_nodes()
    core = fit_nodes(nodes, embed_model=hash_embedding())
    wrapped = FixedRetriever([NodeWithScore(node=node, score=None) for node in nodes])
    retriever = SkillSightRetriever(wrapped, core, embed_model=hash_embedding())
    vector = embedded(HashEncoder(), QUERY)
    hits = retriever.retrieve(QUERY)
    assert ids(hits) == [skill.id for skill in core.rank(QUERY, vector)]
    (bundle,) = wrapped.asked
    assert bundle.query_str == QUERY
    assert bundle.embedding == pytest.approx(core.project(vector).tolist())


def test_says_once_that_another_retriever_brings_less_than_the_pool() -> None:
    nodes = make_nodes()
    core = fit_nodes(nodes, embed_model=hash_embedding())
    wrapped = FixedRetriever([NodeWithScore(node=node) for node in nodes[:9]])
    retriever = SkillSightRetriever(wrapped, core, embed_model=hash_embedding())
    with pytest.warns(SkillSightWarning, match="the pool has 9 nodes, calibration is made for 120"):
        retriever.retrieve(QUERY)
    assert len(retriever.retrieve(QUERY)) == 3  # a second warning would be an error


async def test_async_searching_and_ranking_happen_off_the_event_loop() -> None:
    threads: list[int] = []

    def noting(text: str) -> list[str]:
        threads.append(threading.get_ident())
        return tokenize(text)

    nodes = make_nodes()
    core = fit_nodes(nodes, embed_model=hash_embedding(), tokenizer=noting)
    wrapped = FixedRetriever([NodeWithScore(node=node) for node in nodes])
    threads.clear()
    await SkillSightRetriever(wrapped, core, embed_model=hash_embedding()).aretrieve(QUERY)
    assert threads
    assert threading.get_ident() not in threads + wrapped.threads


def test_unique_documents_give_each_skill_one_place() -> None:
    nodes = make_nodes(chunks=3)
    index = make_index("chroma", nodes, hash_embedding())
    core = fit_index(index)
    every = SkillSightRetriever(index, core, k=120).retrieve(QUERY)
    one_each = SkillSightRetriever(index, core, k=120, unique_documents=True).retrieve(QUERY)
    assert len(one_each) == 40
    first = {}
    for hit in every:
        first.setdefault(hit.node.ref_doc_id, hit.node.node_id)
    assert ids(one_each) == list(first.values())
    top = SkillSightRetriever(index, core, k=3, unique_documents=True).retrieve(QUERY)
    assert ids(top) == ids(one_each)[:3]


@pytest.mark.filterwarnings("ignore::skillsight_core.SkillSightWarning")
@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("store", STORES)
def test_tiny_libraries_give_what_there_is(store: str, n: int) -> None:
    index = make_index(store, make_nodes(n), hash_embedding())
    hits = SkillSightRetriever.from_index(index, k=10).retrieve("rare1")
    assert len(hits) == n
    assert all(np.isfinite(hit.score) for hit in hits)


def test_a_query_that_is_all_background_gives_finite_scores() -> None:
    twins = [TextNode(id_=str(uuid.uuid4()), text="use this skill") for _ in range(8)]
    index = make_index("simple", twins, hash_embedding())
    hits = SkillSightRetriever.from_index(index).retrieve("use this skill")
    assert len(hits) == 3
    assert all(np.isfinite(hit.score) for hit in hits)


def test_refuses_what_it_cannot_use() -> None:
    index = make_index("simple", make_nodes(10), hash_embedding())
    core = fit_index(index)
    with pytest.raises(ValueError, match=r"SkillSightRetriever: k must be an integer >= 0, got -1"):
        SkillSightRetriever(index, core, k=-1)
    with pytest.raises(TypeError, match="retriever must be a BaseRetriever or a VectorStoreIndex"):
        SkillSightRetriever([], core)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="calibrator must be a SkillSight, got NoneType"):
        SkillSightRetriever(index, None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"search_kwargs must be empty .*got \['filters'\]"):
        SkillSightRetriever(index.as_retriever(), core, search_kwargs={"filters": RED})
    other = SkillSight().fit(["a"] * 6, np.eye(6), encoder="another-model")
    with pytest.raises(ValueError, match="model of the calibrator, 'another-model', got 'hash-64"):
        SkillSightRetriever(index, other)


def test_ranks_like_the_langchain_retriever() -> None:
    pytest.importorskip("langchain_core")
    host = pytest.importorskip("skillsight_langchain")
    if not hasattr(host, "SkillSightRetriever"):
        pytest.skip("skillsight_langchain has no retriever")
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class Hashed(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return HashEncoder().encode(texts).tolist()

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    nodes = make_nodes()
    ours = SkillSightRetriever.from_index(make_index("simple", nodes, hash_embedding()))
    store = InMemoryVectorStore(Hashed())
    store.add_documents([Document(id=n.node_id, page_content=node_text(n)) for n in nodes])
    theirs = host.SkillSightRetriever.from_vectorstore(store, embeddings=Hashed())
    for query in QUERIES:
        assert ids(ours.retrieve(query)) == [d.id for d in theirs.invoke(query)], query


def test_a_collection_made_elsewhere_is_opened_and_searched() -> None:
    model, nodes = hash_embedding(), make_nodes()
    store = make_store("chroma")
    collection = store.client
    collection.add(  # no LlamaIndex metadata
        ids=[node.node_id for node in nodes],
        documents=[node.text for node in nodes],
        embeddings=HashEncoder().encode([node.text for node in nodes]),
        metadatas=[{"team": node.metadata["team"]} for node in nodes],
    )
    index = VectorStoreIndex.from_vector_store(store, embed_model=model)
    retriever = SkillSightRetriever.from_index(index, pool_size=10)
    assert ids(retriever.retrieve("rare7"))[0] == node_id(7)
    assert ids(asyncio.run(retriever.aretrieve("rare7")))[0] == node_id(7)


def ids_of(nodes: list[TextNode]) -> list[str]:
    return [node.node_id for node in nodes]
