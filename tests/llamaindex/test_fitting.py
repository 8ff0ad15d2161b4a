"""Learning from nodes and indexes, and the encoder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from llama_index.core.schema import TextNode

import skillsight_llamaindex
from skillsight_core import Encoder, LibraryFileError, SkillSight, SkillSightWarning
from skillsight_llamaindex import LlamaIndexEncoder, fit_index, fit_nodes
from skillsight_llamaindex import _stores as stores
from tests.conftest import ROOT, ours
from tests.fakes import HashEncoder
from tests.llamaindex.parts import (
    STORES,
    EncoderEmbedding,
    hash_embedding,
    make_index,
    make_nodes,
)


def test_a_missing_llamaindex_is_named_with_the_pip_command() -> None:
    code = (
        "import sys; sys.modules['llama_index'] = None\n"
        "from skillsight_core import MissingDependencyError\n"
        "try: import skillsight_llamaindex\n"
        "except MissingDependencyError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert "pip install 'skillsight[llamaindex]'" in run.stdout


def test_exports_are_what_is_public() -> None:
    public = {name for name in vars(skillsight_llamaindex) if not name.startswith("_")}
    assert skillsight_llamaindex.__all__ == sorted(public)


def test_the_encoder_gives_the_models_text_embeddings_and_its_name() -> None:
    model = hash_embedding()
    encoder = LlamaIndexEncoder(model)
    assert isinstance(encoder, Encoder)
    assert encoder.name == "hash-64-0"
    np.testing.assert_array_equal(encoder.encode(["a b", "c"]), HashEncoder().encode(["a b", "c"]))
    assert (model.queries, model.texts) == (0, 2)
    assert encoder.encode([]).shape[0] == 0
    assert LlamaIndexEncoder(EncoderEmbedding(HashEncoder(), model_name="unknown")).name is None


@pytest.mark.parametrize("store", [*STORES, "faiss-map"])
def test_an_index_gives_the_same_library_as_its_nodes(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "_PAGE", 7)  # so that there are many pages
    model, nodes = hash_embedding(), make_nodes(50)
    by_nodes = fit_nodes(nodes, embed_model=model)
    index = make_index(store, nodes, model)
    texts = model.texts
    by_index = fit_index(index)
    assert model.texts == texts  # vectors come from the store
    assert sorted(by_index.ids_) == sorted(by_nodes.ids_) == sorted(n.node_id for n in nodes)
    assert by_index.encoder_name_ == by_nodes.encoder_name_ == "hash-64-0"
    assert by_index.generic_tokens_ == by_nodes.generic_tokens_
    for node in nodes[:5]:
        vector = HashEncoder().encode([node.text])[0]
        got, expected = (c.explain(node.text, vector, node.node_id) for c in (by_index, by_nodes))
        assert got.lexical == pytest.approx(expected.lexical)
        assert got.semantic == pytest.approx(expected.semantic, abs=1e-5)
        assert got.dense == pytest.approx(1.0, abs=1e-5)


def test_texts_are_what_llamaindex_embeds() -> None:
    nodes = [
        TextNode(id_=str(i), text=f"text{i}", metadata={"name": f"tool{i}", "secret": f"key{i}"})
        for i in range(8)
    ]
    for node in nodes:
        node.excluded_embed_metadata_keys = ["secret"]
    core = fit_nodes(nodes, embed_model=hash_embedding())
    vector = HashEncoder().encode(["tool3"])[0]
    assert core.explain("tool3 text3 key3", vector, "3").matched_tokens == ("tool3", "text3")


def test_nodes_keep_the_embeddings_they_have_and_are_not_changed() -> None:
    model = hash_embedding()
    ready = TextNode(id_="ready", text="a", embedding=HashEncoder().encode(["zebra"])[0].tolist())
    nodes = [ready, *make_nodes(6)]
    before = [node.model_copy(deep=True) for node in nodes]
    core = fit_nodes(iter(nodes), embed_model=model)
    assert nodes == before
    assert model.texts == 6
    assert core.explain("x", HashEncoder().encode(["zebra"])[0], "ready").dense == pytest.approx(1)


def test_options_go_to_the_estimator() -> None:
    core = fit_nodes(make_nodes(), embed_model=hash_embedding(), fusion="rectified", pool_size=9)
    assert (core.fusion, core.pool_size) == ("rectified", 9)


def test_a_saved_library_is_refused_with_another_model(tmp_path: Path) -> None:
    model = hash_embedding()
    fit_nodes(make_nodes(), embed_model=model).save(tmp_path / "library")
    loaded = SkillSight.load(tmp_path / "library", encoder=LlamaIndexEncoder(model))
    assert loaded.n_skills_ == 120
    other = LlamaIndexEncoder(EncoderEmbedding(HashEncoder(seed=1)))
    with pytest.raises(LibraryFileError, match=r"hash-64-0.*hash-64-1"):
        SkillSight.load(tmp_path / "library", encoder=other)


def test_nodes_without_embeddings_need_a_model() -> None:
    with pytest.raises(ValueError, match=r"embed_model must be given .*got None and 6 such nodes"):
        fit_nodes(make_nodes(6))


def test_refuses_what_is_no_vector_index() -> None:
    with pytest.raises(TypeError, match="fit_index: index must be a VectorStoreIndex, got list"):
        fit_index([])  # type: ignore[arg-type]


def test_refuses_a_metric_that_projection_cannot_serve() -> None:
    index = make_index("qdrant", make_nodes(8), hash_embedding(), metric="Manhattan")
    with pytest.raises(ValueError, match=r"cosine, inner product or Euclidean.*got manhattan"):
        fit_index(index)


@pytest.mark.parametrize(
    ("store", "metric"), [("faiss", "l2"), ("faiss", "ip"), ("chroma", "l2"), ("qdrant", "l2")]
)
def test_warns_of_vectors_that_a_distance_does_not_rank_right(store: str, metric: str) -> None:
    nodes = make_nodes(20)
    for i, node in enumerate(nodes):
        scale = 3.0 if i == 4 else 1.0
        node.embedding = (scale * HashEncoder().encode([node.text])[0]).tolist()
    index = make_index(store, nodes, hash_embedding(), metric=metric)
    with pytest.warns(SkillSightWarning, match=f"1 of 20 vectors.*compares by {metric}") as caught:
        fit_index(index)
    assert nodes[4].node_id in str(ours(caught)[0].message)
    fit_index(make_index("simple", nodes, hash_embedding()))  # a cosine does, and says nothing
