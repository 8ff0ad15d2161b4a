"""Query engines, chat engines and workflows."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.chat_engine import CondensePlusContextChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

from skillsight_core import SentenceTransformerEncoder, SkillSightWarning
from skillsight_llamaindex import SkillSightPostprocessor, SkillSightRetriever
from tests.fakes import HashEncoder
from tests.llamaindex.parts import (
    QUERY,
    STORES,
    embedded,
    hash_embedding,
    ids,
    make_index,
    make_nodes,
)


@pytest.mark.parametrize("store", [s for s in STORES if s != "qdrant"])
async def test_a_query_engine_with_the_postprocessor_answers_with_the_cores_ranking(
    store: str,
) -> None:
    model = hash_embedding()
    index = make_index(store, make_nodes(), model)
    ours = SkillSightPostprocessor.from_index(index)
    engine = index.as_query_engine(similarity_top_k=300, node_postprocessors=[ours], llm=MockLLM())
    expected = [s.id for s in ours.calibrator.rank(QUERY, embedded(HashEncoder(), QUERY))]
    response = engine.query(QUERY)
    assert ids(response.source_nodes) == expected
    assert model.queries == 1  # the engine's; the postprocessor takes it from the bundle
    assert ids((await engine.aquery(QUERY)).source_nodes) == expected
    for hit in response.source_nodes:
        assert hit.node.text in str(response)
    assert "skillsight" not in str(response)


def test_a_default_query_engine_is_told_that_its_pool_is_small() -> None:
    index = make_index("simple", make_nodes(), hash_embedding())
    ours = SkillSightPostprocessor.from_index(index)
    engine = index.as_query_engine(node_postprocessors=[ours], llm=MockLLM())
    with pytest.warns(SkillSightWarning, match="the pool has 2 nodes"):
        assert len(engine.query(QUERY).source_nodes) == 2


def test_chat_engines_use_both() -> None:
    index = make_index("simple", make_nodes(), hash_embedding())
    retriever = SkillSightRetriever.from_index(index)
    ours = SkillSightPostprocessor(retriever.calibrator, embed_model=index._embed_model)
    expected = ids(retriever.retrieve(QUERY))
    context = index.as_chat_engine(
        chat_mode="context", llm=MockLLM(), similarity_top_k=300, node_postprocessors=[ours]
    )
    assert ids(context.chat(QUERY).source_nodes) == expected
    condensing = CondensePlusContextChatEngine.from_defaults(retriever, llm=MockLLM())
    assert ids(condensing.chat(QUERY).source_nodes) == expected


class Retrieved(Event):
    query: str
    nodes: list[NodeWithScore]


class Choosing(Workflow):
    """Retrieve widely, then choose."""

    def __init__(self, index: VectorStoreIndex, ours: SkillSightPostprocessor) -> None:
        super().__init__()
        self.wide = index.as_retriever(similarity_top_k=300)
        self.ours = ours

    @step
    async def retrieve(self, event: StartEvent) -> Retrieved:
        return Retrieved(query=event.query, nodes=await self.wide.aretrieve(event.query))

    @step
    async def choose(self, event: Retrieved) -> StopEvent:
        bundle = QueryBundle(event.query)
        return StopEvent(result=await self.ours.apostprocess_nodes(event.nodes, bundle))


async def test_a_workflow_awaits_the_postprocessor() -> None:
    index = make_index("simple", make_nodes(), hash_embedding())
    ours = SkillSightPostprocessor.from_index(index)
    hits = await Choosing(index, ours).run(query=QUERY)
    assert ids(hits) == [s.id for s in ours.calibrator.rank(QUERY, embedded(HashEncoder(), QUERY))]


class Lookup(BaseEmbedding):
    """Ready embeddings, by text."""

    _vectors: dict[str, list[float]] = PrivateAttr()

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        super().__init__(model_name="minilm")
        self._vectors = vectors

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._vectors[text]

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._vectors[query]


def test_the_gain_on_real_skills_is_the_cores_own(
    shared_data: Path, minilm: SentenceTransformerEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shared_data / "skills-triggers"
    corpus = _read(folder / "corpus.jsonl.gz")
    vectors = np.load(folder / "corpus.minilm.f16.npy").astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    gold: dict[str, set[str]] = {}
    for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        query_id, skill_id, relevance = line.split("\t")
        if int(relevance) > 0:
            gold.setdefault(query_id, set()).add(skill_id)
    queries = [q for q in _read(folder / "queries.jsonl.gz") if q["_id"] in gold][::42]
    asked = minilm.encode([query["text"] for query in queries])

    nodes = [
        TextNode(id_=row["_id"], text=f"{row['title']}\n{row['text']}", embedding=vector.tolist())
        for row, vector in zip(corpus, vectors, strict=True)
    ]
    monkeypatch.setattr(Settings, "_llm", MockLLM())  # where an engine without text looks for one
    model = Lookup({q["text"]: vector.tolist() for q, vector in zip(queries, asked, strict=True)})
    index = VectorStoreIndex(nodes, embed_model=model)
    # An engine's pool is found without calibration: the same as the core's where it is everything.
    ours = SkillSightPostprocessor.from_index(index, top_n=10, pool_size=len(nodes))
    engine = index.as_query_engine(
        similarity_top_k=len(nodes),
        node_postprocessors=[ours],
        response_mode="no_text",
    )
    plain = index.as_retriever(similarity_top_k=10)
    retriever = SkillSightRetriever.from_index(index, k=10)
    by_engine, by_retriever, by_core, by_core_alone, dense = ([] for _ in range(5))
    for query, vector in zip(queries, asked, strict=True):
        text, right = query["text"], gold[query["_id"]]
        by_engine.append(_quality(ids(engine.query(text).source_nodes), right))
        by_retriever.append(_quality(ids(retriever.retrieve(text)), right))
        dense.append(_quality(ids(plain.retrieve(text)), right))
        for core, figures in ((ours, by_core), (retriever, by_core_alone)):
            ranked = core.calibrator.rank(text, vector, k=10)
            figures.append(_quality([skill.id for skill in ranked], right))
    assert np.mean(by_engine, axis=0) == pytest.approx(np.mean(by_core, axis=0))
    assert np.mean(by_retriever, axis=0) == pytest.approx(np.mean(by_core_alone, axis=0))
    assert (np.mean(by_retriever, axis=0) > np.mean(dense, axis=0) + 0.1).all()


def _quality(found: list[str], right: set[str]) -> tuple[float, float]:
    """Reciprocal rank and recall at 10."""
    places = [place for place, id_ in enumerate(found[:10], start=1) if id_ in right]
    return (1 / places[0] if places else 0.0), len(places) / len(right)


def _read(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
