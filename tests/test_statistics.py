"""Document frequencies, IDF, the border of the generic tokens."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillsight_core import SkillSight, tokenize
from skillsight_core._statistics import Statistics, inverse_document_frequency, otsu_threshold
from tests import reference
from tests.libraries import made, of_texts, texts_of_words


def learned_df(ss: SkillSight) -> dict[str, int]:
    library = ss._state.library
    df = library.statistics.df.tolist()
    return {token: df[n] for token, n in library.vocabulary.items() if n < len(df) and df[n]}


def test_idf_is_the_logarithm_of_the_published_fraction():
    df = np.array([0, 1, 4, 9])
    expected = [math.log(10 / 1) + 1, math.log(10 / 2) + 1, math.log(10 / 5) + 1, 1.0]
    np.testing.assert_allclose(inverse_document_frequency(df, 9), expected, rtol=1e-15)


def test_df_counts_each_text_once_however_often_it_repeats_a_word():
    ss = of_texts(["a a a b", "b c", "c c"]).fit(background="none")
    assert learned_df(ss) == {"a": 1, "b": 2, "c": 2}


@pytest.mark.parametrize("seed", range(4))
def test_df_threshold_and_generic_tokens_equal_the_reference(seed):
    library = made(80, seed)
    ss = library.fit()
    df = reference.document_frequencies(library.texts)
    border = reference.threshold(df, 80)
    assert learned_df(ss) == df
    assert ss.idf_threshold_ == pytest.approx(border, abs=1e-12)
    generic = {t for t, count in df.items() if reference.idf(count, 80) < border - 1e-12}
    assert ss.generic_tokens_ == generic
    assert {"use", "this", "skill"} <= generic < set(df)


def test_otsu_splits_two_clusters_between_them():
    values = np.array([1.0, 1.1, 1.2, 5.0, 5.1])
    assert otsu_threshold(values, np.ones(5)) == 5.0


def test_otsu_weights_move_the_border():
    # 1 * 2 / 9 * variance by hand: weights (8, 1, 1) on (0, 1, 3)
    # border 1: w0 = 8, w1 = 2, means 0 and 2: 8 * 2 * 4 = 64
    # border 3: w0 = 9, w1 = 1, means 1/9 and 3: 9 * 1 * (26/9)^2 = 75.1
    # with weights (1, 8, 1): border 1: 1 * 9 * (11/9)^2 = 13.4; border 3: 9 * 1 * (19/9)^2 = 40.1
    # with weights (8, 1, 8): border 1: 8 * 9 * (25/9)^2 = 555.6; border 3: 9 * 8 * (26/9)^2 = 600.9
    # with weights (8, 2, 1): border 1: 8 * 3 * (5/3)^2 = 66.7; border 3: 10 * 1 * 2.8^2 = 78.4
    # with weights (8, 8, 1): border 1: 8 * 9 * (11/9)^2 = 107.6; border 3: 16 * 1 * 2.5^2 = 100
    values = np.array([0.0, 1.0, 3.0])
    assert otsu_threshold(values, np.array([8.0, 1.0, 1.0])) == 3.0
    assert otsu_threshold(values, np.array([8.0, 8.0, 1.0])) == 1.0


def test_otsu_takes_the_lowest_of_equal_borders():
    assert otsu_threshold(np.array([0.0, 1.0, 2.0]), np.ones(3)) == 1.0


def test_otsu_puts_nothing_below_a_single_value():
    assert otsu_threshold(np.array([2.5, 2.5]), np.ones(2)) == 2.5
    assert otsu_threshold(np.zeros(0), np.zeros(0)) == -math.inf


@given(texts_of_words)
def test_the_threshold_has_the_greatest_variance_between_classes(texts):
    ss = of_texts(texts).fit(background="none")
    borders = {
        round(border, 9): variance
        for border, variance in reference.between_class_variances(
            reference.document_frequencies(texts), len(texts)
        )
    }
    if borders:
        assert borders[round(ss.idf_threshold_, 9)] == pytest.approx(
            max(borders.values()), rel=1e-9, abs=1e-9
        )
    else:
        assert ss.generic_tokens_ == frozenset()


@given(st.lists(st.integers(0, 20), max_size=30), st.floats(0, 5))
def test_weights_follow_their_equation(counts, beta):
    statistics = Statistics(np.array(counts, dtype=np.int32), 20, 0)
    expected = [(math.log(21 / (df + 1)) + 1) * (1 - df / 20) ** beta for df in counts]
    np.testing.assert_allclose(statistics.weight(statistics.df, beta), expected, rtol=1e-12)


def test_a_word_of_no_text_is_specific_and_weighs_most():
    statistics = Statistics(np.array([1, 5, 9, 9], dtype=np.int32), 10, 0)
    assert not statistics.is_generic(np.array([0]))[0]
    assert statistics.weight(np.array([0]), 1.0)[0] == pytest.approx(math.log(11) + 1)
    assert statistics.weight(np.array([0]), 1.0) > statistics.weight(np.array([1]), 1.0)


def test_a_word_of_every_text_weighs_nothing_unless_beta_is_zero():
    statistics = Statistics(np.array([10], dtype=np.int32), 10, 0)
    assert statistics.weight(statistics.df, 1.0)[0] == 0.0
    assert statistics.weight(statistics.df, 0.0)[0] == pytest.approx(1.0)


def test_lengths_count_repetitions():
    texts = ["a a b", "get_accounts", ""]
    statistics = of_texts(texts).fit(background="none")._state.library.statistics
    assert statistics.total_length == sum(len(tokenize(text)) for text in texts) == 6
    assert statistics.mean_length == 2.0


def test_a_custom_tokenizer_is_used_for_skills_and_queries():
    ss = SkillSight(tokenizer=str.split, background="none").fit(
        ["Get_Accounts x", "other y"], np.eye(2), ["a", "b"]
    )
    assert set(learned_df(ss)) == {"Get_Accounts", "x", "other", "y"}
    assert ss.explain("Get_Accounts", [1, 1], "a").matched_tokens == ("Get_Accounts",)
    assert ss.explain("get_accounts", [1, 1], "a").matched_tokens == ()
