"""Methods against their definitions, written out slowly."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from skillsight_core import SkillSight, tokenize
from skillsight_core.evaluation import ABLATIONS, DEFAULT_METHODS, Benchmark, evaluate
from skillsight_core.evaluation._baselines import AllButTheTop, Bm25, reciprocal_rank_fusion
from skillsight_core.evaluation._catalogue import find_method
from tests.fakes import HashEncoder

pytest.importorskip("ir_measures")
pytest.importorskip("bm25s")

TOPICS = ["pdf", "invoice", "cluster", "chart", "review", "release", "budget", "survey"]
TOPICS += ["contract", "backup"]
VERBS = ["merge", "split", "draw", "check"]


@pytest.fixture
def library() -> Benchmark:
    """Forty skills that share a template; a query names a verb and a topic."""
    texts = {
        f"{verb}-{topic}": f"{verb}-{topic}\nUse this skill when you want to {verb} a {topic}."
        for topic in TOPICS
        for verb in VERBS
    }
    gold = {f"q{i}": (id_,) for i, id_ in enumerate(list(texts)[::3])}
    queries = {q: f"please {id_.replace('-', ' the ')} now" for q, (id_,) in gold.items()}
    return Benchmark(
        name="templates",
        ids=tuple(texts),
        texts=tuple(texts.values()),
        sizes=(len(texts),),
        queries=queries,
        gold=gold,
        relevance={q: dict.fromkeys(ids, 1) for q, ids in gold.items()},
    )


def _vectors(library: Benchmark) -> tuple[np.ndarray, np.ndarray]:
    encoder = HashEncoder(dim=200)
    return encoder.encode(list(library.texts)), encoder.encode(list(library.queries.values()))


def _run(library: Benchmark, method: str, **options: int) -> list[list[tuple[str, float]]]:
    documents, queries = _vectors(library)
    found = evaluate(library, [method], embeddings=documents, query_embeddings=queries, **options)
    return [list(ranking) for ranking in found[method].run.values()]


def _by_score(library: Benchmark, scores: np.ndarray, depth: int = 20) -> list[str]:
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    return [library.ids[i] for i in order[:depth]]


def test_dense_is_the_order_of_the_cosines(library: Benchmark) -> None:
    documents, queries = _vectors(library)
    for ranking, vector in zip(_run(library, "dense"), queries, strict=True):
        cosines = documents.astype(np.float64) @ vector.astype(np.float64)
        by_id = dict(zip(library.ids, cosines, strict=True))
        assert [by_id[id_] for id_, _ in ranking] == pytest.approx(sorted(cosines)[::-1][:20])


@pytest.mark.parametrize("method", ["paper", "default"])
def test_skillsight_methods_are_the_public_estimator(library: Benchmark, method: str) -> None:
    documents, queries = _vectors(library)
    estimator = SkillSight.paper() if method == "paper" else SkillSight()
    estimator.fit(library.texts, documents, library.ids)
    asked = zip(library.queries.values(), queries, strict=True)
    expected = [estimator.rank(query, vector, k=20) for query, vector in asked]
    found = _run(library, method)
    assert [[id_ for id_, _ in one] for one in found] == [[h.id for h in one] for one in expected]
    assert [score for _, score in found[0]] == pytest.approx([hit.score for hit in expected[0]])


def test_sbc_is_the_order_of_the_projected_query(library: Benchmark) -> None:
    documents, queries = _vectors(library)
    paper = SkillSight.paper().fit(library.texts, documents, library.ids)
    for ranking, vector in zip(_run(library, "sbc"), paper.project(queries), strict=True):
        by_id = dict(zip(library.ids, documents @ vector, strict=True))
        values = [by_id[id_] for id_, _ in ranking]
        assert values == pytest.approx(sorted(by_id.values())[::-1][:20], abs=1e-6)


def test_lec_gives_the_highest_coverage_first(library: Benchmark) -> None:
    documents, queries = _vectors(library)
    paper = SkillSight.paper().fit(library.texts, documents, library.ids)
    asked = list(library.queries.values())
    for query, vector, ranking in zip(asked, queries, _run(library, "lec"), strict=True):
        covered = [paper.explain(query, vector, id_).lexical for id_, _ in ranking]
        assert covered == pytest.approx(sorted(covered)[::-1])
        assert covered[0] > 0


def test_dense_plus_lec_is_the_published_fusion_without_projection(library: Benchmark) -> None:
    documents, queries = _vectors(library)
    plain = SkillSight.paper().set_params(background="none")
    plain.fit(library.texts, documents, library.ids)
    expected = plain.rank(library.queries["q0"], queries[0], k=20)
    assert [id_ for id_, _ in _run(library, "dense+lec")[0]] == [hit.id for hit in expected]


def test_bm25_is_lucenes_formula_over_distinct_query_words(library: Benchmark) -> None:
    tokens = [tokenize(text) for text in library.texts]
    mean = sum(map(len, tokens)) / len(tokens)
    query = "merge merge the invoice"
    expected = np.zeros(len(tokens))
    for word in ("merge", "the", "invoice"):
        df = sum(word in document for document in tokens)
        if df == 0:
            continue
        idf = math.log(1 + (len(tokens) - df + 0.5) / (df + 0.5))
        for i, document in enumerate(tokens):
            tf = document.count(word)
            expected[i] += idf * tf / (tf + 1.5 * (1 - 0.75 + 0.75 * len(document) / mean))
    assert Bm25(library.texts).scores(query) == pytest.approx(expected, abs=1e-5)


def test_bm25_returns_only_what_has_a_word_of_the_query(library: Benchmark) -> None:
    for query, ranking in zip(library.queries.values(), _run(library, "bm25"), strict=True):
        for id_, score in ranking:
            text = library.texts[library.ids.index(id_)]
            assert set(tokenize(query)) & set(tokenize(text))
            assert score > 0


def test_bm25_without_a_word_finds_nothing(library: Benchmark) -> None:
    assert Bm25(library.texts).scores("!?").tolist() == [0.0] * len(library.ids)
    assert Bm25(library.texts).scores("zebra").tolist() == [0.0] * len(library.ids)


def test_reciprocal_rank_fusion_is_its_definition() -> None:
    dense = np.array([0.1, 0.9, 0.5])
    lexical = np.array([2.0, 0.0, 3.0])
    expected = [1 / (60 + 3) + 1 / (60 + 2), 1 / (60 + 1), 1 / (60 + 2) + 1 / (60 + 1)]
    assert reciprocal_rank_fusion(dense, lexical) == pytest.approx(expected)


def test_rrf_fuses_dense_and_bm25(library: Benchmark) -> None:
    documents, queries = _vectors(library)
    index = Bm25(library.texts)
    for i, (query, ranking) in enumerate(
        zip(library.queries.values(), _run(library, "rrf"), strict=True)
    ):
        scores = reciprocal_rank_fusion(documents @ queries[i], index.scores(query))
        assert [id_ for id_, _ in ranking] == _by_score(library, scores)


def test_all_but_the_top_removes_mean_and_first_components() -> None:
    random = np.random.default_rng(0)
    vectors = random.standard_normal((500, 200)) * np.r_[9.0, 7.0, np.ones(198)] + 3.0
    vectors = vectors.astype(np.float32)
    transform = AllButTheTop(vectors)
    changed = transform(vectors)
    centred = vectors - vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    expected = centred - centred @ axes[:2].T @ axes[:2]  # r = round(200 / 100)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert changed == pytest.approx(expected, abs=1e-4)


def test_all_but_the_top_gives_no_nan_for_a_vector_that_is_all_removed() -> None:
    vectors = np.eye(4, 150, dtype=np.float32)
    assert np.isfinite(AllButTheTop(vectors)(vectors.mean(axis=0, keepdims=True))).all()


def test_abtt_ranks_by_the_transformed_cosines(library: Benchmark) -> None:
    documents, queries = _vectors(library)
    transform = AllButTheTop(documents)
    for vector, ranking in zip(transform(queries), _run(library, "abtt"), strict=True):
        by_id = dict(zip(library.ids, transform(documents) @ vector, strict=True))
        values = [by_id[id_] for id_, _ in ranking]
        assert values == pytest.approx(sorted(by_id.values())[::-1][:20], abs=1e-5)


def test_bm25_plus_sbc_is_the_published_fusion_with_bm25_for_coverage(library: Benchmark) -> None:
    documents, queries = _vectors(library)
    paper = SkillSight.paper().fit(library.texts, documents, library.ids)
    index = Bm25(library.texts)
    asked = zip(library.queries.values(), queries, _run(library, "bm25+sbc"), strict=True)
    for query, vector, ranking in asked:
        semantic, lexical = documents @ paper.project(vector), index.scores(query)
        lexical = (lexical - lexical.mean()) / lexical.std()
        scores = (semantic - semantic.mean()) / semantic.std() + np.maximum(lexical, 0)
        by_id = dict(zip(library.ids, scores, strict=True))  # all 40 are candidates
        values = [by_id[id_] for id_, _ in ranking]
        assert values == pytest.approx(sorted(scores)[::-1][:20], abs=1e-4)
        assert [score for _, score in ranking] == pytest.approx(values, abs=1e-4)


def test_bm25_plus_sbc_returns_no_more_than_its_candidates(library: Benchmark) -> None:
    documents, queries = _vectors(library)
    copies = 9 * len(library.ids)  # more than the 300 candidates
    larger = replace(
        library,
        ids=tuple(f"{id_}-{i}" for i in range(9) for id_ in library.ids),
        texts=library.texts * 9,
        sizes=(copies,),
        gold={query: (f"{ids[0]}-0",) for query, ids in library.gold.items()},
    )
    found = evaluate(
        larger,
        ["bm25+sbc"],
        embeddings=np.tile(documents, (9, 1)),
        query_embeddings=queries,
        depth=copies,
    )
    assert {len(ranking) for ranking in found["bm25+sbc"].run.values()} == {300}


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", DEFAULT_METHODS)
def test_every_method_finds_most_of_what_the_query_names(library: Benchmark, method: str) -> None:
    documents, queries = _vectors(library)
    found = evaluate(library, [method], embeddings=documents, query_embeddings=queries)
    assert found[method].metrics["Recall@10"] > 0.9


def test_a_method_with_parameters_is_the_estimator_with_them(library: Benchmark) -> None:
    documents, queries = _vectors(library)
    estimator = SkillSight.paper().set_params(beta=2, background="all")
    estimator.fit(library.texts, documents, library.ids)
    hits = estimator.rank(library.queries["q1"], queries[1], k=20)
    found = _run(library, "paper:beta=2,background=all")[1]
    assert found == [(hit.id, pytest.approx(hit.score)) for hit in hits]


def test_every_method_of_an_ablation_is_known() -> None:
    for names in ABLATIONS.values():
        assert "dense" in names
        for name in names:
            assert callable(find_method(name))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bm26", "methods must be among dense, .*rerank:MODEL.*, got 'bm26'"),
        ("bm25:k1=2", "methods must be among .*, got 'bm25:k1=2'"),
        ("paper:gamma=2", "names of beta, .*, got 'gamma=2' in 'paper:gamma=2'"),
        ("paper:beta", "must be like 'beta=2,pool_size=100'.*, got 'beta' in 'paper:beta'"),
        ("paper:beta=-1", "evaluate: beta must be a number >= 0, got -1"),
        ("paper:pool_size=many", "evaluate: pool_size must be an integer >= 1, got 'many'"),
    ],
)
def test_a_wrong_method_is_said_to_be(name: str, message: str, library: Benchmark) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(library, [name], encoder=HashEncoder())
