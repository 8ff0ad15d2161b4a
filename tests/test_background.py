"""The background: its directions, rank, basis, and what projecting it out does."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skillsight_core import SkillSight, SkillSightWarning
from skillsight_core._background import Background, effective_rank
from tests.conftest import ours
from tests.libraries import ENCODER, embed, ids, made, of_texts, queries
from tests.reference import Reference, unit


@pytest.fixture(scope="module", params=range(3))
def both(request):
    library = made(90, request.param)
    return library.fit(), Reference(*library)


def test_rows_of_g_equal_the_reference(both):
    ss, slow = both
    library = ss._state.library
    tokens = sorted(slow.generic)
    numbered = np.sort(library.numbers(tokens))
    order = np.argsort(library.numbers(tokens))
    means = library.mean_embeddings(numbered)
    np.testing.assert_allclose(means[-1], slow.vectors.mean(axis=0), atol=1e-6)
    for token, mean in zip(np.array(tokens)[order], means, strict=False):
        holders = [
            vector for vector, c in zip(slow.vectors, slow.counts, strict=True) if token in c
        ]
        np.testing.assert_allclose(mean, np.mean(holders, axis=0), atol=1e-6)
    rows = unit(means)
    np.testing.assert_allclose(rows[:-1], slow.G[:-1][order], atol=1e-5)
    np.testing.assert_allclose(rows[-1], slow.G[-1], atol=1e-5)


def test_rank_and_spectrum_equal_the_reference(both):
    ss, slow = both
    assert ss.background_rank_ == slow.rank_ == ss.basis_.shape[1] > 1
    np.testing.assert_allclose(ss.singular_values_[:5], slow.sigma[:5], atol=1e-5)


def test_basis_spans_what_the_reference_spans(both):
    ss, slow = both
    np.testing.assert_allclose(ss.basis_ @ ss.basis_.T, slow.B @ slow.B.T, atol=1e-4)


def test_energies_equal_the_reference(both):
    ss, slow = both
    vectors = np.vstack([slow.vectors[:20], ENCODER.encode(queries())])
    expected = [slow.energy(vector) for vector in vectors]
    np.testing.assert_allclose(ss.background_energy(vectors), expected, atol=1e-5)
    np.testing.assert_allclose(ss.background_energy(3 * vectors), expected, atol=1e-5)
    np.testing.assert_allclose(ss.background_energy(vectors[0]), expected[:1], atol=1e-5)


def test_basis_is_orthonormal_in_float32(both):
    ss, _ = both
    assert ss.basis_.dtype == np.float32
    wide = ss.basis_.astype(np.float64)
    np.testing.assert_allclose(wide.T @ wide, np.eye(ss.background_rank_), atol=1e-6)


def test_projecting_the_query_alone_gives_the_score_of_both_projected(both):
    ss, slow = both
    for query in queries():
        q = embed(query)
        one_sided = ss.project(q) @ slow.vectors.T
        two_sided = ss.project(slow.vectors) @ ss.project(q)
        np.testing.assert_allclose(one_sided, two_sided, atol=1e-6)
        hits = {hit.id: hit.semantic for hit in ss.rank(query, q, k=90)}
        np.testing.assert_allclose([hits[i] for i in slow.ids], one_sided, atol=1e-6)


def test_projection_is_idempotent_linear_and_never_longer(both):
    ss, slow = both
    once = ss.project(slow.vectors)
    np.testing.assert_allclose(ss.project(once), once, atol=1e-6)
    np.testing.assert_allclose(ss.project(5 * slow.vectors), 5 * once, atol=1e-5)
    lengths = np.linalg.norm(once, axis=1)
    np.testing.assert_allclose(
        lengths**2, 1 - ss.background_energy(slow.vectors), atol=1e-6
    )  # what is left is not scaled up again
    assert (lengths < 0.99).all()


def test_projection_keeps_shape_and_takes_lists(both):
    ss, slow = both
    rows = ss.project(slow.vectors[:2].tolist())
    assert rows.shape == (2, 48)
    assert rows.dtype == np.float32
    assert ss.project(slow.vectors[0]).shape == (48,)
    np.testing.assert_allclose(ss.project(slow.vectors[0]), rows[0], atol=1e-7)
    assert ss.project(np.zeros((0, 48))).shape == (0, 48)


def test_a_vector_of_the_background_projects_to_nothing(both):
    ss, _ = both
    assert np.linalg.norm(ss.project(ss.basis_[:, 0])) < 1e-6
    assert ss.background_energy(ss.basis_.T) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("sigma", "rank"),
    [
        ([1.0], 1),
        ([1, 1, 1, 1], 4),
        ([5, 0, 0], 1),
        # shares of sigma^2: 0.9 and 0.1; exp(H) = exp(0.325) = 1.38
        ([3.0, 1.0], 2),
        # shares of sigma^2: 1/2, 1/4, 1/8, 1/8; exp(H) = 2^1.75 = 3.36
        ([math.sqrt(4), math.sqrt(2), 1, 1], 4),
        ([10, 1, 1, 1, 1], 2),  # from sigma itself it would be 4
        ([], 0),
        ([0, 0], 0),
    ],
)
def test_effective_rank_is_the_exponential_of_the_entropy_of_squares(sigma, rank):
    assert effective_rank(np.array(sigma, dtype=float)) == rank


def test_rows_of_g_count_by_direction_not_by_length():
    short_and_long = np.array([[1.0, 0, 0], [0, 100.0, 0]])
    assert Background.span(short_and_long).singular_values == pytest.approx([1, 1])


def test_zero_rows_of_g_are_left_out():
    background = Background.span(np.array([[0.0, 0, 0], [0, 0, 2.0]]))
    np.testing.assert_allclose(np.abs(background.basis.ravel()), [0, 0, 1], atol=1e-7)
    assert Background.span(np.zeros((2, 3))).basis.shape == (3, 0)


@pytest.mark.parametrize(("asked", "got"), [(0, 0), (1, 1), (3, 3), (1000, None)])
def test_a_given_rank_is_used_up_to_what_there_is(asked, got):
    library = made(60)
    ss = library.fit(background_rank=asked)
    present = np.linalg.matrix_rank(Reference(*library).G, tol=1e-5)
    assert ss.background_rank_ == (present if got is None else got)


def test_backgrounds_for_ablation_use_the_tokens_they_name():
    library = made(60)
    generic = Reference(*library).generic
    every = set(Reference(*library).df)
    chosen = {}
    for background in ("low-idf", "high-idf", "all", "random"):
        ss = library.fit(background=background)
        words = list(ss._state.library.vocabulary)
        chosen[background] = {words[i] for i in ss._background_tokens(ss._state.library)}
    assert chosen["low-idf"] == generic
    assert chosen["high-idf"] == every - generic
    assert chosen["all"] == every
    assert len(chosen["random"]) == len(generic)
    assert chosen["random"] not in (generic, every)


def test_the_random_background_follows_its_seed():
    library = made(60)
    one, same, other = (
        library.fit(background="random", random_state=seed).basis_ for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert one.shape != other.shape or not np.allclose(np.abs(one), np.abs(other))


def test_without_background_semantic_is_dense():
    ss = made(60).fit(background="none")
    assert ss.background_rank_ == 0
    hits = ss.rank("bazar", embed("bazar"), k=60)
    assert [hit.semantic for hit in hits] == pytest.approx([hit.dense for hit in hits])
    assert ss.background_energy(np.eye(48)).tolist() == [0.0] * 48


@pytest.mark.parametrize("n", [0, 1, 5])
def test_few_skills_have_no_background_and_a_warning_says_so(n):
    library = made(n) if n else of_texts([])
    with pytest.warns(
        SkillSightWarning,
        match=rf"SkillSight.fit: {n} skills are too few to have a background, none is removed; "
        "at least 6 are needed",
    ) as caught:
        ss = library.fit()
    assert ours(caught)[0].filename.endswith("libraries.py")  # where the user's call stands
    assert ss.background_rank_ == 0


def test_six_skills_have_a_background():
    assert made(6).fit().background_rank_ >= 1


def test_scaling_the_embeddings_changes_nothing():
    library = made(40)
    scales = np.random.default_rng(0).uniform(1e-3, 1e3, (40, 1))
    plain = library.fit()
    scaled = SkillSight().fit(library.texts, library.vectors * scales, library.ids)
    np.testing.assert_allclose(
        scaled.basis_ @ scaled.basis_.T, plain.basis_ @ plain.basis_.T, atol=1e-4
    )
    for query in queries():
        hits = plain.rank(query, embed(query), k=40)
        assert ids(scaled.rank(query, 7.5 * embed(query), k=40)) == ids(hits)
