"""Measures and the test of significance, against hand-worked values and other implementations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skillsight_core.evaluation import MEASURES, Benchmark
from skillsight_core.evaluation._metrics import measured
from skillsight_core.evaluation._significance import paired_randomisation

ir_measures = pytest.importorskip("ir_measures")

IDS = tuple(f"d{i:02d}" for i in range(20))


def _benchmark(
    gold: dict[str, tuple[str, ...]], relevance: dict[str, dict[str, int]] | None = None
) -> Benchmark:
    return Benchmark(
        name="tiny",
        ids=IDS,
        texts=IDS,
        sizes=(len(IDS),),
        queries={query: query for query in gold},
        gold=gold,
        relevance=relevance or {query: dict.fromkeys(ids, 1) for query, ids in gold.items()},
    )


def _run(**rankings: str) -> dict[str, list[tuple[str, float]]]:
    """Rankings as numbers of documents; all scores equal, since only the order may count."""
    return {q: [(f"d{int(i):02d}", 0.0) for i in ids.split()] for q, ids in rankings.items()}


def test_measures_are_those_of_a_hand_worked_example() -> None:
    benchmark = _benchmark({"q1": ("d03", "d05"), "q2": ("d01",), "q3": ("d09",)})
    run = _run(q1="3 1 2 4 5 6", q2="9 8 7 6 5 4 3 2 0 10 1", q3="")
    found = {m: v.tolist() for m, v in measured(benchmark, run, MEASURES).items()}
    assert found["Recall@1"] == [1 / 2, 0, 0]
    assert found["Recall@3"] == [1 / 2, 0, 0]
    assert found["Recall@5"] == [1, 0, 0]
    assert found["Recall@10"] == [1, 0, 0]  # q2's document has the eleventh place
    assert found["Hit@5"] == [1, 0, 0]
    assert found["MRR@10"] == [1, 0, 0]
    ideal = 1 / math.log2(2) + 1 / math.log2(3)
    expected = (1 / math.log2(2) + 1 / math.log2(6)) / ideal
    assert found["nDCG@10"] == pytest.approx([expected, 0, 0])


def test_equal_scores_keep_the_order_of_the_run() -> None:
    benchmark = _benchmark({"q": ("d00",)})
    for ranking in itertools.permutations(range(4)):
        run = _run(q=" ".join(map(str, ranking)))
        found = measured(benchmark, run, ["MRR@10"])["MRR@10"]
        assert found.tolist() == [1 / (1 + ranking.index(0))]


def test_ndcg_takes_grades_and_every_other_measure_takes_gold_alone() -> None:
    grades = {"q": {"d01": 3, "d02": 1}}
    benchmark = _benchmark({"q": ("d01",)}, grades)
    found = measured(benchmark, _run(q="2 1"), ["Recall@1", "MRR@10", "nDCG@10"])
    assert found["Recall@1"].tolist() == [0.0]
    assert found["MRR@10"].tolist() == [0.5]
    dcg, ideal = 1 + 3 / math.log2(3), 3 + 1 / math.log2(3)
    assert found["nDCG@10"] == pytest.approx([dcg / ideal])


@given(st.data())
def test_means_agree_with_ir_measures_own_aggregate(data: st.DataObject) -> None:
    rankings = data.draw(st.lists(st.permutations(range(12)), min_size=1, max_size=5))
    gold = {
        f"q{i}": tuple(f"d{j:02d}" for j in data.draw(st.sets(st.integers(0, 11), min_size=1)))
        for i in range(len(rankings))
    }
    run = {
        f"q{i}": {f"d{j:02d}": float(-place) for place, j in enumerate(ranking)}
        for i, ranking in enumerate(rankings)
    }
    own = ir_measures.calc_aggregate(
        [ir_measures.R @ 3, ir_measures.Success @ 5, ir_measures.RR @ 10, ir_measures.nDCG @ 10],
        {query: dict.fromkeys(ids, 1) for query, ids in gold.items()},
        run,
    )
    lists = {query: list(scores.items()) for query, scores in run.items()}
    ours = measured(_benchmark(gold), lists, ["Recall@3", "Hit@5", "MRR@10", "nDCG@10"])
    assert sorted(float(v.mean()) for v in ours.values()) == pytest.approx(sorted(own.values()))


def test_other_measures_of_ir_measures_can_be_asked_for() -> None:
    benchmark = _benchmark({"q": ("d01", "d02")})
    found = measured(benchmark, _run(q="1 0 2"), ["P@2", "AP"])
    assert found["P@2"].tolist() == [0.5]
    assert found["AP"] == pytest.approx([(1 + 2 / 3) / 2])


@pytest.mark.parametrize("name", ["Recal@5", "Recall", "", "MRR@ten"])
def test_an_unknown_measure_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=f"measures must be like 'Recall@5'.*got '{name}'"):
        measured(_benchmark({"q": ("d01",)}), {}, [name])


# -- significance --------------------------------------------------------------------------------


def test_the_p_value_is_the_share_of_sign_changes_as_extreme() -> None:
    values, others = np.array([0.9, 0.8, 0.7, 0.2, 0.5]), np.array([0.5, 0.5, 0.5, 0.3, 0.5])
    differences = [0.4, 0.3, 0.2, -0.1]  # the fifth query cannot tell
    observed = abs(sum(differences))
    extreme = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True))) >= observed - 1e-9
        for signs in itertools.product((1, -1), repeat=4)
    ]
    expected = sum(extreme) / 2**4
    assert paired_randomisation(values, others) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("shift", [0.0, 0.02, 0.05])
def test_the_p_value_agrees_with_scipys_permutation_test(shift: float) -> None:
    random = np.random.default_rng(7)
    others = random.random(80)
    values = others + shift + 0.2 * random.standard_normal(80)
    own = stats.permutation_test(
        (values - others,), np.mean, permutation_type="samples", random_state=1
    )
    assert paired_randomisation(values, others) == pytest.approx(own.pvalue, abs=0.02)


def test_the_p_value_does_not_depend_on_which_method_comes_first() -> None:
    random = np.random.default_rng(3)
    values, others = random.random(200), random.random(200)
    there, back = paired_randomisation(values, others), paired_randomisation(others, values)
    assert there == pytest.approx(back, abs=0.02)
    assert there == paired_randomisation(values, others)


def test_methods_that_never_differ_are_not_different() -> None:
    assert paired_randomisation(np.ones(5), np.ones(5)) == 1.0


def test_a_clear_difference_over_many_queries_is_significant_and_a_coin_is_not() -> None:
    random = np.random.default_rng(0)
    base = random.random(300)
    assert paired_randomisation(base + 0.1 + 0.05 * random.standard_normal(300), base) < 0.001
    assert paired_randomisation(base + 0.3 * random.standard_normal(300), base) > 0.05
