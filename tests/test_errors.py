"""What users get wrong, and the sentence they read."""

from __future__ import annotations

import re

import numpy as np
import pytest

from skillsight_core import NotFittedError, SkillSight
from tests.libraries import made

GOOD = np.eye(8)
NAMES = list("abcdefgh")
TEXTS = [f"text {name}" for name in NAMES]
Q = np.ones(8)


@pytest.fixture(scope="module")
def ss() -> SkillSight:
    return SkillSight().fit(TEXTS, GOOD, NAMES)


def says(sentence: str) -> str:
    """A pattern for the whole message."""
    return f"^{re.escape(sentence)}$"


def with_row(row, at=2) -> np.ndarray:
    rows = GOOD.copy()
    rows[at] = row
    return rows


# -- embeddings of skills ------------------------------------------------------------------------

NOT_USABLE = "embeddings must be finite and not zero, got a row that is"
EMBEDDINGS = [
    (with_row(0), ValueError, f"{NOT_USABLE} zero for id 'c'"),
    (with_row(np.nan), ValueError, f"{NOT_USABLE} NaN or infinite for id 'c'"),
    (
        with_row([0, 0, 0, np.nan, 0, 0, 0, 1]),
        ValueError,
        f"{NOT_USABLE} NaN or infinite for id 'c'",
    ),
    (with_row(np.inf), ValueError, f"{NOT_USABLE} NaN or infinite for id 'c'"),
    (with_row(-np.inf, 7), ValueError, f"{NOT_USABLE} NaN or infinite for id 'h'"),
    (np.zeros((8, 8)), ValueError, f"{NOT_USABLE} zero for id 'a' (and 7 more)"),
    (
        GOOD[:7],
        ValueError,
        "embeddings must have one row for each text, got 7 rows for 8 texts",
    ),
    (
        [],
        ValueError,
        "embeddings must have shape (n, m), got (0,)",
    ),
    (np.ones(8), ValueError, "embeddings must have shape (n, m), got (8,)"),
    (np.ones((8, 1, 8)), ValueError, "embeddings must have shape (n, m), got (8, 1, 8)"),
    (np.ones((8, 0)), ValueError, "embeddings must have shape (n, m), got (8, 0)"),
    (
        [[1.0] * 8] * 3 + [[1.0] * 7] + [[1.0] * 8] * 4,
        ValueError,
        "embeddings must have 8 dimensions like the rest of the library, got 7 for id 'd'",
    ),
]


@pytest.mark.parametrize(("embeddings", "error", "sentence"), EMBEDDINGS)
def test_embeddings_that_fit_and_add_refuse(embeddings, error, sentence):
    with pytest.raises(error, match=says(f"SkillSight.fit: {sentence}")):
        SkillSight().fit(TEXTS, embeddings, NAMES)
    live = SkillSight().fit(TEXTS, GOOD, [name * 2 for name in NAMES])
    with pytest.raises(error, match=says(f"SkillSight.add: {sentence}")):
        live.add(TEXTS, embeddings, NAMES)


def test_embeddings_of_another_dimension_are_refused_with_both_sizes(ss):
    with pytest.raises(
        ValueError,
        match=says(
            "SkillSight.add: embeddings must have 8 dimensions like the rest of the library, "
            "got 5 for id 'x'"
        ),
    ):
        ss.add(["x"], np.ones((1, 5)), ["x"])


@pytest.mark.parametrize("embeddings", [[["a"] * 8] * 8, [{}] * 8])
def test_embeddings_that_are_no_numbers_are_refused(embeddings):
    with pytest.raises(
        (TypeError, ValueError),
        match=r"^SkillSight.fit: embeddings must be an array of numbers, got ",
    ):
        SkillSight().fit(TEXTS, embeddings, NAMES)


# -- texts and ids -------------------------------------------------------------------------------

IDS = [
    (["a", "b", "a", *NAMES[3:]], ValueError, "ids must be distinct, got more than once: 'a'"),
    (["x"] * 4 + ["y"] * 4, ValueError, "ids must be distinct, got more than once: 'x', 'y'"),
    (NAMES[:5], ValueError, "ids must have one entry for each text, got 5 ids for 8 texts"),
    ("abcdefgh", TypeError, "ids must be a sequence of str, got one str: 'abcdefgh'"),
    ([*NAMES[:7], 8], TypeError, "ids must be str, got int: 8"),
    ([*NAMES[:7], None], TypeError, "ids must be str, got NoneType: None"),
]


@pytest.mark.parametrize(("names", "error", "sentence"), IDS)
def test_ids_that_fit_refuses(names, error, sentence):
    with pytest.raises(error, match=says(f"SkillSight.fit: {sentence}")):
        SkillSight().fit(TEXTS, GOOD, names)


def test_many_duplicates_are_counted():
    names = [f"n{i}" for i in range(5)] * 2
    with pytest.raises(ValueError, match=r"more than once: 'n0', 'n1', 'n2' and 2 more$"):
        SkillSight().fit(names, np.eye(10), names)


TEXT = [
    ("one text", TypeError, "texts must be a sequence of str, got one str"),
    ([*TEXTS[:7], None], TypeError, "texts must be str, got NoneType at position 7"),
    ([b"bytes", *TEXTS[1:]], TypeError, "texts must be str, got bytes at position 0"),
]


@pytest.mark.parametrize(("texts", "error", "sentence"), TEXT)
def test_texts_that_fit_and_add_refuse(texts, error, sentence, ss):
    with pytest.raises(error, match=says(f"SkillSight.fit: {sentence}")):
        SkillSight().fit(texts, GOOD, NAMES)
    with pytest.raises(error, match=says(f"SkillSight.add: {sentence}")):
        ss.add(texts, GOOD, NAMES)


def test_ids_that_are_in_the_library_cannot_be_added(ss):
    with pytest.raises(
        ValueError,
        match=says("SkillSight.add: ids must be new, got some that are in the library: 'b', 'd'"),
    ):
        ss.add(["1", "2", "3"], GOOD[:3], ["b", "new", "d"])


# -- unknown ids ---------------------------------------------------------------------------------

UNKNOWN = "ids must be in the library, got some that are not:"


def test_unknown_ids_are_named(ss):
    with pytest.raises(ValueError, match=says(f"SkillSight.rank: {UNKNOWN} 'x', 'y'")):
        ss.rank("q", Q, candidates=["a", "x", "y"])
    with pytest.raises(ValueError, match=says(f"SkillSight.remove: {UNKNOWN} 'x'")):
        ss.remove(["x", "a"])
    with pytest.raises(ValueError, match=says(f"SkillSight.explain: {UNKNOWN} 'x'")):
        ss.explain("q", Q, "x")


def test_ids_to_remove_are_a_sequence_without_repetitions(ss):
    with pytest.raises(
        TypeError, match=says("SkillSight.remove: ids must be a sequence of str, got one str: 'a'")
    ):
        ss.remove("a")
    with pytest.raises(
        ValueError, match=says("SkillSight.remove: ids must be distinct, got more than once: 'a'")
    ):
        ss.remove(["a", "a"])


# -- queries -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [-1, -(10**9), True, False, 1.0, 2.5, "3", None, np.float64(3)])
def test_k_is_a_whole_number(ss, k):
    sentence = f"k must be an integer >= 0, got {k!r}"
    with pytest.raises(ValueError, match=says(f"SkillSight.rank: {sentence}")):
        ss.rank("q", Q, k=k)
    with pytest.raises(ValueError, match=says(f"SkillSight.rank_batch: {sentence}")):
        ss.rank_batch(["q"], [Q], k=k)


def test_k_may_be_an_integer_of_numpy(ss):
    assert len(ss.rank("q", Q, k=np.int64(2))) == 2


QUERY = [
    (np.zeros(8), ValueError, "query_embedding must be finite and not zero, got one that is zero"),
    *(
        (
            np.append(np.ones(7), bad),
            ValueError,
            "query_embedding must be finite and not zero, got one that is NaN or infinite",
        )
        for bad in (np.nan, np.inf, -np.inf)
    ),
    *(
        (
            np.ones(shape),
            ValueError,
            "query_embedding must have shape (8,), the dimension of the library, got "
            f"{np.ones(shape).shape}",
        )
        for shape in (7, 9, 0, (1, 8), (8, 1), ())
    ),
    (
        "vector",
        TypeError,
        "query_embedding must be an array of numbers, got could not convert string to float: "
        "'vector'",
    ),
]


@pytest.mark.parametrize(("embedding", "error", "sentence"), QUERY)
def test_query_embeddings_that_are_refused(ss, embedding, error, sentence):
    with pytest.raises(error, match=says(f"SkillSight.rank: {sentence}")):
        ss.rank("q", embedding)
    with pytest.raises(error, match=says(f"SkillSight.rank_batch: {sentence}")):
        ss.rank_batch(["q", "q"], [Q, embedding])
    with pytest.raises(error, match=says(f"SkillSight.explain: {sentence}")):
        ss.explain("q", embedding, "a")
    with pytest.raises(error, match=says(f"SkillSight.score_candidates: {sentence}")):
        ss.score_candidates("q", embedding, ["a"])


@pytest.mark.parametrize(("query", "kind"), [(None, "NoneType"), (3, "int"), (["q"], "list")])
def test_queries_are_strings(ss, query, kind):
    sentence = f"query must be str, got {kind}"
    for of, call in {
        "rank": lambda: ss.rank(query, Q),
        "explain": lambda: ss.explain(query, Q, "a"),
        "score_candidates": lambda: ss.score_candidates(query, Q, ["a"]),
        "lexical_candidates": lambda: ss.lexical_candidates(query),
    }.items():
        with pytest.raises(TypeError, match=says(f"SkillSight.{of}: {sentence}")):
            call()
    with pytest.raises(
        TypeError,
        match=says(f"SkillSight.rank_batch: queries must be str, got {kind} at position 1"),
    ):
        ss.rank_batch(["q", query], [Q, Q])


def test_a_batch_needs_one_embedding_for_each_query(ss):
    with pytest.raises(
        ValueError,
        match=says(
            "SkillSight.rank_batch: query_embeddings must have one row for each query, "
            "got 1 rows for 2 queries"
        ),
    ):
        ss.rank_batch(["q", "r"], [Q])
    with pytest.raises(
        TypeError,
        match=says("SkillSight.rank_batch: queries must be a sequence of str, got one str"),
    ):
        ss.rank_batch("q", [Q])


# -- candidates from outside ---------------------------------------------------------------------


def test_what_comes_with_candidates_is_checked(ss):
    def score(ids, **known):
        return ss.score_candidates("q", Q, ids, **known)

    of = "SkillSight.score_candidates: "
    with pytest.raises(
        ValueError, match=says(f"{of}texts must have one entry for each id, got 1 for 2 ids")
    ):
        score(["a", "x"], texts=["t"])
    with pytest.raises(
        ValueError, match=says(f"{of}embeddings must have one entry for each id, got 3 for 2 ids")
    ):
        score(["a", "x"], embeddings=[Q] * 3)
    with pytest.raises(
        ValueError, match=says(f"{of}ids must be distinct, got more than once: 'a'")
    ):
        score(["a", "a"])
    with pytest.raises(
        TypeError, match=says(f"{of}ids must be a sequence of str, got one str: 'a'")
    ):
        score("a")


@pytest.mark.filterwarnings("ignore::skillsight_core.SkillSightWarning")
def test_guests_are_checked_like_skills(ss):
    of = "SkillSight.score_candidates: "
    for vector, sentence in [
        (np.zeros(8), "embeddings must be finite and not zero, got a row that is zero for id 'x'"),
        (
            np.ones(5),
            "embeddings must have 8 dimensions like the rest of the library, got 5 for id 'x'",
        ),
    ]:
        with pytest.raises(ValueError, match=says(of + sentence)):
            ss.score_candidates("q", Q, ["a", "x"], embeddings=[None, vector])
    with pytest.raises(TypeError, match=f"^{of}texts must be str, got int"):
        ss.score_candidates("q", Q, ["a", "x"], texts=[None, 3])


# -- vectors to project --------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(7,), (3, 9), (2, 2, 8), ()])
def test_vectors_of_another_shape_are_refused(ss, shape):
    sentence = f"vectors must have shape (8,) or (n, 8), the dimension of the library, got {shape}"
    with pytest.raises(ValueError, match=says(f"SkillSight.project: {sentence}")):
        ss.project(np.ones(shape))
    with pytest.raises(ValueError, match=says(f"SkillSight.background_energy: {sentence}")):
        ss.background_energy(np.ones(shape))


def test_vectors_that_are_not_finite_or_zero_are_refused(ss):
    with pytest.raises(
        ValueError,
        match=says(
            "SkillSight.project: vectors must be finite, got one with NaN or infinite entries"
        ),
    ):
        ss.project(with_row(np.nan))
    with pytest.raises(
        ValueError,
        match=says("SkillSight.background_energy: vectors must not be zero, got a row that is"),
    ):
        ss.background_energy(with_row(0))
    assert ss.project(np.zeros(8)).tolist() == [0.0] * 8


# -- parameters ----------------------------------------------------------------------------------

FROM_ZERO = "must be a number >= 0, got"
PARAMETERS = [
    *(("beta", bad, f"{FROM_ZERO} {bad!r}") for bad in (-0.1, float("nan"), "1", None)),
    *(
        ("pool_size", bad, f"must be an integer >= 1, got {bad!r}")
        for bad in (0, -3, 2.0, True, None, "300")
    ),
    *(
        ("fusion", bad, f"must be one of 'rectified', 'robust', got {bad!r}")
        for bad in ("rrf", None, ["robust"])
    ),
    *(
        (
            "background",
            bad,
            f"must be one of 'low-idf', 'high-idf', 'all', 'random', 'none', got {bad!r}",
        )
        for bad in ("low", None, True)
    ),
    *(
        ("background_rank", bad, f"must be an integer >= 0, got {bad!r}")
        for bad in (-1, 1.5, "full", None, True)
    ),
    *(
        ("min_evidence", bad, f"must be a number between 0 and 1, got {bad!r}")
        for bad in (-0.1, 1.1, float("nan"), "0")
    ),
    *(
        (name, bad, f"must be one of True, False, got {bad!r}")
        for name in ("semantic", "lexical", "unique_texts")
        for bad in ("no", None, 2)
    ),
    *(
        ("random_state", bad, f"must be an integer >= 0, got {bad!r}")
        for bad in (-1, 0.5, None, "seed")
    ),
]


@pytest.mark.parametrize(("name", "value", "sentence"), PARAMETERS)
def test_fit_refuses_parameters_that_make_no_sense(name, value, sentence):
    with pytest.raises(ValueError, match=says(f"SkillSight.fit: {name} {sentence}")):
        SkillSight(**{name: value}).fit(TEXTS, GOOD, NAMES)


def test_fit_refuses_a_tokenizer_that_cannot_be_called():
    with pytest.raises(
        TypeError, match=says("SkillSight.fit: tokenizer must be callable or None, got 'words'")
    ):
        SkillSight(tokenizer="words").fit(TEXTS, GOOD, NAMES)


def test_the_borders_of_the_parameters_are_allowed():
    for options in (
        {"beta": 0, "pool_size": 1, "min_evidence": 0, "background_rank": 0},
        {"beta": np.float64(2), "pool_size": np.int64(3), "min_evidence": 1, "lexical": np.True_},
    ):
        made(20).fit(**options)


# -- before fit ----------------------------------------------------------------------------------


def test_nothing_works_before_fit(tmp_path):
    calls = {
        "rank": lambda ss: ss.rank("q", Q),
        "rank_batch": lambda ss: ss.rank_batch(["q"], [Q]),
        "score_candidates": lambda ss: ss.score_candidates("q", Q, ["a"]),
        "explain": lambda ss: ss.explain("q", Q, "a"),
        "lexical_candidates": lambda ss: ss.lexical_candidates("q"),
        "project": lambda ss: ss.project(Q),
        "background_energy": lambda ss: ss.background_energy(Q),
        "add": lambda ss: ss.add(TEXTS, GOOD, NAMES),
        "remove": lambda ss: ss.remove(["a"]),
        "refresh": lambda ss: ss.refresh(),
        "save": lambda ss: ss.save(tmp_path / "x"),
    }
    for of, call in calls.items():
        with pytest.raises(
            NotFittedError,
            match=says(
                f"SkillSight.{of}: call fit first, this SkillSight has not learned a library"
            ),
        ):
            call(SkillSight())
    assert not (tmp_path / "x").exists()
    assert issubclass(NotFittedError, ValueError)
    assert issubclass(NotFittedError, AttributeError)
