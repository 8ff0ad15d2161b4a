"""What the postprocessor does with the pool that an engine hands over."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from llama_index.core import Settings
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from skillsight_core import NotFittedError, SkillSight, SkillSightWarning, tokenize
from skillsight_llamaindex import SkillSightPostprocessor, fit_nodes
from tests.fakes import HashEncoder
from tests.llamaindex.parts import (
    QUERY,
    EncoderEmbedding,
    embedded,
    hash_embedding,
    ids,
    make_index,
    make_nodes,
    results,
)


def pool(nodes: list[TextNode], score: float | None = 0.5) -> list[NodeWithScore]:
    return [NodeWithScore(node=node, score=score) for node in nodes]


def test_ranks_a_pool_of_everything_as_the_core_does() -> None:
    subject = SkillSightPostprocessor.from_nodes(make_nodes(), embed_model=hash_embedding())
    hits = subject.postprocess_nodes(pool(make_nodes()), query_str=QUERY)
    expected = subject.calibrator.rank(QUERY, embedded(HashEncoder(), QUERY), k=3)
    assert [(h.node.node_id, h.score) for h in hits] == [(s.id, s.score) for s in expected]
    assert [h.node.metadata["skillsight"]["rank"] for h in hits] == [1, 2, 3]


def test_an_index_and_its_nodes_give_the_same_postprocessor() -> None:
    model, nodes = hash_embedding(), make_nodes()
    index = make_index("simple", nodes, model)
    by_index = SkillSightPostprocessor.from_index(index, top_n=10)
    by_nodes = SkillSightPostprocessor.from_nodes(nodes, embed_model=model, top_n=10)
    got, expected = (p.postprocess_nodes(pool(nodes), None, QUERY) for p in (by_index, by_nodes))
    assert results(got) == results(expected)


def test_uses_the_query_embedding_that_is_there_and_embeds_once_otherwise() -> None:
    model = hash_embedding()
    subject = SkillSightPostprocessor.from_nodes(make_nodes(), embed_model=model)
    texts = model.texts
    there = QueryBundle(QUERY, embedding=embedded(HashEncoder(), QUERY).tolist())
    by_bundle = subject.postprocess_nodes(pool(make_nodes()), there)
    assert model.queries == 0
    by_text = subject.postprocess_nodes(pool(make_nodes()), query_str=QUERY)
    assert (model.queries, model.texts) == (1, texts)
    assert results(by_bundle) == results(by_text)


def test_falls_back_to_the_model_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = SkillSightPostprocessor(fit_nodes(make_nodes(), embed_model=hash_embedding()))
    model = hash_embedding()
    monkeypatch.setattr(Settings, "_embed_model", model)
    assert len(subject.postprocess_nodes(pool(make_nodes()), query_str=QUERY)) == 3
    assert model.queries == 1


def test_says_once_that_the_pool_is_smaller_than_the_calibrations() -> None:
    subject = SkillSightPostprocessor.from_nodes(make_nodes(), embed_model=hash_embedding())
    with pytest.warns(SkillSightWarning, match="the pool has 2 nodes, .*similarity_top_k=300"):
        subject.postprocess_nodes(pool(make_nodes(2)), query_str=QUERY)
    subject.postprocess_nodes(pool(make_nodes(2)), query_str=QUERY)  # would be an error


def test_keeps_the_retrieval_score_whatever_it_was() -> None:
    subject = SkillSightPostprocessor.from_nodes(make_nodes(), embed_model=hash_embedding())
    for score in (0.25, None, -7.0, float("inf")):
        for hit in subject.postprocess_nodes(pool(make_nodes(), score), query_str=QUERY):
            assert hit.node.metadata["retrieval_score"] == score
            assert np.isfinite(hit.score)


def test_unknown_nodes_are_scored_from_their_own_text_and_vector() -> None:
    model = hash_embedding()
    subject = SkillSightPostprocessor.from_nodes(make_nodes(), embed_model=model, top_n=2)
    text = "polish the telescope rare7"
    bare = TextNode(id_="bare", text=text)
    ready = TextNode(id_="ready", text=text, embedding=embedded(HashEncoder(), text).tolist())
    texts = model.texts
    nodes = pool([*make_nodes(), bare, ready])
    with pytest.warns(SkillSightWarning, match="2 of 122 candidates are not in the library"):
        hits = subject.postprocess_nodes(nodes, query_str="polish a telescope")
    assert set(ids(hits)) == {"bare", "ready"}
    assert hits[0].score == pytest.approx(hits[1].score)
    assert model.texts == texts + 1  # the one without a vector


def test_without_a_model_unknown_nodes_count_by_their_words() -> None:
    core = fit_nodes(make_nodes(), embed_model=hash_embedding())
    query = QueryBundle("a telescope", embedding=embedded(HashEncoder(), "a telescope").tolist())
    nodes = pool([*make_nodes(), TextNode(id_="new", text="telescope")])
    with pytest.warns(SkillSightWarning, match="'new'"):
        (hit, *_) = SkillSightPostprocessor(core).postprocess_nodes(nodes, query)
    assert hit.node.node_id == "new"
    assert hit.node.metadata["skillsight"]["semantic"] == 0.0


@pytest.mark.filterwarnings("ignore::skillsight_core.SkillSightWarning")
def test_empty_texts_and_repeated_nodes_do_no_harm() -> None:
    subject = SkillSightPostprocessor.from_nodes(
        make_nodes(), embed_model=hash_embedding(), top_n=1000
    )
    nodes = [*make_nodes(), TextNode(id_="empty", text=""), TextNode(id_="blank", text="  ")]
    hits = subject.postprocess_nodes(pool(nodes + make_nodes()), query_str=QUERY)
    assert sorted(ids(hits)) == sorted(node.node_id for node in nodes)
    assert all(np.isfinite(hit.score) for hit in hits)


def test_unique_documents_give_each_skill_one_place() -> None:
    nodes = make_nodes(chunks=3)
    subject = SkillSightPostprocessor.from_nodes(
        nodes, embed_model=hash_embedding(), top_n=120, unique_documents=True
    )
    hits = subject.postprocess_nodes(pool(nodes), query_str=QUERY)
    documents = [hit.node.ref_doc_id for hit in hits]
    assert len(documents) == len(set(documents)) == 40
    without = [TextNode(id_=f"loose{i}", text=f"loose thing {i}") for i in range(8)]
    loose = SkillSightPostprocessor.from_nodes(
        without, embed_model=hash_embedding(), top_n=120, unique_documents=True
    )
    assert len(loose.postprocess_nodes(pool(without), query_str="thing")) == 8


@pytest.mark.filterwarnings("ignore::skillsight_core.SkillSightWarning")
def test_other_postprocessors_may_come_before_and_after() -> None:
    model = hash_embedding()
    index = make_index("simple", make_nodes(), model)
    ours = SkillSightPostprocessor.from_index(index, top_n=120)
    retrieved = index.as_retriever(similarity_top_k=120).retrieve(QUERY)
    cut = sorted(hit.score for hit in retrieved)[60]
    before = SimilarityPostprocessor(similarity_cutoff=cut).postprocess_nodes(retrieved)
    hits = ours.postprocess_nodes(before, query_str=QUERY)
    assert sorted(ids(hits)) == sorted(ids(before))
    after = SimilarityPostprocessor(similarity_cutoff=1.0).postprocess_nodes(hits)
    assert 0 < len(after) < len(hits)
    assert ids(after) == ids(hits)[: len(after)]
    twice = ours.postprocess_nodes(hits, query_str=QUERY)  # its own results, with more metadata
    assert results(twice) == results(hits)


async def test_async_ranking_happens_off_the_event_loop() -> None:
    threads: list[int] = []

    def noting(text: str) -> list[str]:
        threads.append(threading.get_ident())
        return tokenize(text)

    subject = SkillSightPostprocessor.from_nodes(
        make_nodes(), embed_model=hash_embedding(), tokenizer=noting
    )
    threads.clear()
    await subject.apostprocess_nodes(pool(make_nodes()), query_str=QUERY)
    assert threads
    assert threading.get_ident() not in threads


def test_a_dictionary_has_the_settings_and_comes_back_with_a_library() -> None:
    model = hash_embedding()
    core = fit_nodes(make_nodes(), embed_model=model)
    subject = SkillSightPostprocessor(core, top_n=5, embed_model=model, unique_documents=True)
    data = subject.to_dict()
    assert data == {
        "top_n": 5,
        "unique_documents": True,
        "class_name": "SkillSightPostprocessor",
    }
    again = SkillSightPostprocessor.from_dict(data, calibrator=core, embed_model=model)
    got, expected = (p.postprocess_nodes(pool(make_nodes()), None, QUERY) for p in (again, subject))
    assert results(got) == results(expected)
    with pytest.raises(TypeError, match="calibrator"):
        SkillSightPostprocessor.from_dict({"top_n": 5})


def test_refuses_what_it_cannot_use() -> None:
    core = fit_nodes(make_nodes(), embed_model=hash_embedding())
    with pytest.raises(ValueError, match=r"SkillSightPostprocessor: top_n must be an integer >= 0"):
        SkillSightPostprocessor(core, top_n=-1)
    with pytest.raises(TypeError, match="calibrator must be a SkillSight, got list"):
        SkillSightPostprocessor([])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="calibrator, 'hash-64-0', got 'hash-32-0'"):
        SkillSightPostprocessor(core, embed_model=EncoderEmbedding(HashEncoder(32)))
    with pytest.raises(NotFittedError):
        SkillSightPostprocessor(SkillSight(), embed_model=hash_embedding())
    with pytest.raises(ValueError, match="a query must be given, as query_bundle or query_str"):
        SkillSightPostprocessor(core).postprocess_nodes(pool(make_nodes()))
    nameless = EncoderEmbedding(HashEncoder(), model_name="unknown")
    assert SkillSightPostprocessor(core, embed_model=nameless).embed_model is nameless
