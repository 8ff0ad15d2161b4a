"""From channels to one score."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillsight_core import SkillSight
from skillsight_core._fusion import FUSIONS, Channels, rectified, robust, z_scores
from tests import reference
from tests.libraries import embed, made, numbers, queries
from tests.reference import Reference

DENSE = np.array([0.9, 0.6, 0.5, 0.2])
SEMANTIC = np.array([0.4, 0.5, 0.3, 0.0])
COVERAGE = np.array([0.0, 0.25, 0.25, 0.5])
BM25 = np.array([0.0, 6.0, 2.0, 4.0])
FOCUS = np.array([1.0, 1.0, 0.5, 0.8])
NAMED = np.zeros(4, dtype=bool)
CHANNELS = Channels(DENSE, SEMANTIC, COVERAGE, BM25, FOCUS, NAMED)


def test_z_scores_use_the_deviation_of_the_population():
    # mean 2, deviations -1, 0, 1; population variance 2 / 3
    expected = [-math.sqrt(1.5), 0.0, math.sqrt(1.5)]
    np.testing.assert_allclose(z_scores(np.array([1.0, 2.0, 3.0])), expected)
    rows = np.array([[10.0, 20.0, 30.0], [5.0, 5.0, 5.0]])
    np.testing.assert_allclose(z_scores(rows), [expected, [0.0, 0.0, 0.0]])


@pytest.mark.parametrize("values", [[], [3.0], [0.1] * 7, [1e6 + 0.1] * 3, [0.1, 0.1 + 1e-16]])
def test_a_channel_without_deviation_contributes_nothing(values):
    np.testing.assert_array_equal(z_scores(np.array(values)), np.zeros(len(values)))


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20), st.floats(0.1, 100), st.floats(-9, 9))
def test_z_scores_do_not_depend_on_scale_and_offset(values, scale, offset):
    array = np.array(values)
    if array.std() > 1e-4 or array.std() == 0:
        np.testing.assert_allclose(z_scores(scale * array + offset), z_scores(array), atol=1e-6)
    assert np.isfinite(z_scores(array)).all()


def test_rectified_is_the_published_sum():
    fused = rectified(CHANNELS, 9)
    mean, deviation = 0.3, math.sqrt((0.1**2 + 0.2**2 + 0.0 + 0.3**2) / 4)
    np.testing.assert_allclose(fused.semantic, [(s - mean) / deviation for s in SEMANTIC])
    mean, deviation = 0.25, math.sqrt((0.25**2 + 0.25**2) / 4)
    z_lexical = [(c - mean) / deviation for c in COVERAGE]
    np.testing.assert_allclose(fused.lexical, z_lexical, atol=1e-12)
    expected = fused.semantic + np.array([0, 0, 0, z_lexical[3]])
    np.testing.assert_allclose(fused.score, expected, atol=1e-12)


@pytest.mark.parametrize(("n_tokens", "counts_as"), [(1, 9), (9, 9), (16, 16)])
def test_robust_is_what_its_docstring_says(n_tokens, counts_as):
    fused = robust(CHANNELS, n_tokens)
    np.testing.assert_allclose(
        fused.semantic, reference.z([(d + s) / 2 for d, s in zip(DENSE, SEMANTIC, strict=True)])
    )
    focused = [0.0, 0.25, 0.125, 0.4]
    better = map(max, zip(reference.z(list(BM25)), reference.z(focused), strict=True))
    lexical = [0.48 * 0.4 * math.sqrt(counts_as) * value for value in better]
    np.testing.assert_allclose(fused.lexical, lexical, atol=1e-12)
    np.testing.assert_allclose(fused.score, fused.semantic + np.maximum(lexical, 0), atol=1e-12)


def test_robust_puts_what_is_called_by_name_first_in_the_order_it_had():
    named = np.array([True, False, False, True])
    plain, called = robust(CHANNELS, 9), robust(CHANNELS._replace(named=named), 9)
    assert called.score[named].min() >= called.score[~named].max() + 1 - 1e-12
    np.testing.assert_allclose(np.diff(called.score[named]), np.diff(plain.score[named]))
    np.testing.assert_array_equal(called.score[~named], plain.score[~named])
    published = rectified(CHANNELS._replace(named=named), 9)
    np.testing.assert_array_equal(published, rectified(CHANNELS, 9))


@pytest.mark.parametrize("combine", [rectified, robust])
def test_no_candidates_fuse_to_nothing(combine):
    fused = combine(Channels(*[np.zeros(0)] * 5, np.zeros(0, dtype=bool)), 0)
    assert fused.score.shape == (0,)


@pytest.mark.parametrize("combine", [rectified, robust])
def test_little_lexical_evidence_never_lowers_a_score(combine):
    fused = combine(CHANNELS, 9)
    assert (fused.score >= fused.semantic).all()
    assert (fused.lexical < 0).any()


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("options", [{}, {"pool_size": 20}, {"beta": 0.0}, {"beta": 2.5}])
@pytest.mark.parametrize("seed", [0, 1])
def test_rankings_equal_the_reference(fusion, options, seed):
    library = made(70, seed)
    ss = library.fit(fusion=fusion, **options)
    slow = Reference(
        *library,
        fusion=fusion,
        beta=options.get("beta", 1.0),
        pool=options.get("pool_size", 300),
    )
    for query in queries(seed=seed):
        expected = slow.rank(query, embed(query))
        hits = ss.rank(query, embed(query), k=len(expected))
        assert {h.id for h in hits} == {h.id for h in expected}
        by_id = {h.id: h for h in expected}
        got = np.array(numbers(hits))
        np.testing.assert_allclose(got, [by_id[h.id][1:] for h in hits], atol=2e-4)
        # The same order, up to scores that differ by less than rounding.
        np.testing.assert_allclose(got[:, 0], [h.score for h in expected], atol=2e-4)
        assert [h.id for h in hits[:1]] == [expected[0].id]
        tokens = slow.evidence_tokens(query)
        for hit in hits:
            words = slow.counts[slow.ids.index(hit.id)]
            assert hit.matched_tokens == tuple(t for t in tokens if t in words)
            assert hit.unmatched_tokens == tuple(t for t in tokens if t not in words)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_the_score_is_the_sum_that_its_parts_name(fusion):
    ss = made(70).fit(fusion=fusion, pool_size=30)
    for query in queries():
        for hit in ss.rank(query, embed(query), k=70):
            assert hit.score == hit.semantic_z + max(hit.lexical_z, 0.0)
            assert hit.dense == pytest.approx(float(embed(query) @ vector_of(ss, hit.id)), abs=1e-6)


def vector_of(ss: SkillSight, id_: str) -> np.ndarray:
    library = ss._state.library
    return library.embeddings(np.array([library.row(id_)]))[0]


def test_the_channels_can_be_switched_off():
    library = made(70)
    query = "bazar kelin unheard"
    semantic = library.fit(lexical=False).rank(query, embed(query), k=70)
    assert [h.lexical_z for h in semantic] == [0.0] * 70
    assert [
        h.semantic
        for h in library.fit(lexical=False, fusion="rectified").rank(query, embed(query), k=70)
    ] == sorted((h.semantic for h in semantic), reverse=True)
    lexical = library.fit(semantic=False, fusion="rectified").rank(query, embed(query), k=70)
    found = [h for h in lexical if h.matched_tokens]
    assert [h.semantic_z for h in found] == [0.0] * len(found)
    assert [h.lexical for h in lexical] == sorted((h.lexical for h in lexical), reverse=True)
    assert 0 < len(found) < 70


def test_paper_is_the_published_configuration():
    published = SkillSight.paper().get_params()
    assert published == SkillSight(fusion="rectified").get_params()
    assert (published["beta"], published["pool_size"]) == (1.0, 300)
    assert published["background"] == "low-idf"
    assert published["background_rank"] == "effective"
    assert published["semantic"] is published["lexical"] is True
