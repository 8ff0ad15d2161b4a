"""Queries against a library: agreement, invariants, degenerate cases, options."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillsight_core import SkillSight, SkillSightWarning, _evidence
from skillsight_core._fusion import FUSIONS
from tests.conftest import ours
from tests.libraries import (
    ENCODER,
    WORDS,
    Made,
    embed,
    evidence,
    ids,
    made,
    numbers,
    of_texts,
    queries,
    texts_of_words,
    words_asked,
)
from tests.reference import Reference

both_fusions = pytest.mark.parametrize("fusion", FUSIONS)
few_are_enough = pytest.mark.filterwarnings("ignore:SkillSight.fit. .* too few")
FULL = "use this skill for bazar kelin unheard"


# -- the four ways to ask agree ------------------------------------------------------------------


@both_fusions
@pytest.mark.parametrize("pool_size", [7, 300])
def test_rank_batch_equals_rank(fusion, pool_size):
    ss = made(150).fit(fusion=fusion, pool_size=pool_size)
    asked = queries(70)  # more than one block
    batch = ss.rank_batch(asked, ENCODER.encode(asked), k=12)
    assert batch == [ss.rank(query, embed(query), k=12) for query in asked]


@both_fusions
def test_explain_equals_rank_for_every_candidate(fusion):
    ss = made(50).fit(fusion=fusion)
    for query in queries(4):
        for hit in ss.rank(query, embed(query), k=50):
            assert ss.explain(query, embed(query), hit.id) == hit


def test_explain_scores_what_is_no_candidate_as_one_more_of_them():
    ss = made(50).fit(fusion="rectified", pool_size=5)
    ranked = ss.rank(FULL, embed(FULL), k=50)
    outside = ranked[20]
    explained = ss.explain(FULL, embed(FULL), outside.id)
    joined = ss.score_candidates(FULL, embed(FULL), [*ids(ranked[:5]), outside.id])
    assert explained == next(hit for hit in joined if hit.id == outside.id)


@both_fusions
def test_score_candidates_of_the_pool_equals_rank(fusion):
    ss = made(50).fit(fusion=fusion)
    for query in queries(4):
        ranked = ss.rank(query, embed(query), k=50)
        for order in (ids(ranked), ids(ranked)[::-1]):
            assert ss.score_candidates(query, embed(query), order) == ranked


@pytest.mark.parametrize("pool_size", [5, 15])
def test_lexical_candidates_and_the_semantic_pool_reproduce_rank(pool_size):
    library = made(120)
    ss = library.fit(fusion="robust", pool_size=pool_size)
    for query in queries(8):
        similarity = library.vectors @ ss.project(embed(query))
        pool = [library.ids[i] for i in np.argsort(-similarity)[:pool_size]]
        lexical = ss.lexical_candidates(query)
        assert len(lexical) <= pool_size
        united = list(dict.fromkeys(pool + lexical))
        ranked = ss.rank(query, embed(query), k=len(united))
        assert ss.score_candidates(query, embed(query), united) == ranked


def test_lexical_candidates_hold_a_word_of_the_query():
    ss = made(60).fit()
    found = ss.lexical_candidates("kelin unheard")
    holders = [i for i, (_, matched, _) in evidence(ss, "kelin unheard").items() if matched]
    assert sorted(found) == sorted(holders) != []
    assert ss.lexical_candidates("unheard") == ss.lexical_candidates("") == []
    assert made(60).fit(fusion="rectified").lexical_candidates("kelin") == []
    assert made(60).fit(lexical=False).lexical_candidates("kelin") == []


def test_restricting_the_candidates_ranks_these_alone():
    library = made(60)
    ss = library.fit()
    some = library.ids[10:30]
    for query in queries(5):
        hits = ss.rank(query, embed(query), k=60, candidates=some)
        assert hits == ss.score_candidates(query, embed(query), some)
        assert ss.rank(query, embed(query), k=60, candidates=iter([*some, some[0]])) == hits
    assert ss.rank("x", embed("x"), candidates=[]) == []
    assert ss.rank("x", embed("x"), candidates=library.ids) == ss.rank("x", embed("x"))


# -- invariants ----------------------------------------------------------------------------------


@both_fusions
def test_a_shorter_ranking_begins_a_longer_one(fusion):
    ss = made(80).fit(fusion=fusion, pool_size=12)
    for query in queries(5):
        longest = ss.rank(query, embed(query), k=10**6)
        assert len(longest) == 80
        assert sorted(ids(longest)) == sorted(ss.ids_)
        assert [hit.rank for hit in longest] == list(range(1, 81))
        assert [hit.score for hit in longest] == sorted((h.score for h in longest), reverse=True)
        for k in (0, 1, 3, 10, 12, 13, 30, 79, 80, 81):
            assert ss.rank(query, embed(query), k=k) == longest[:k]


def test_k_is_three_by_default():
    ss = made(20).fit()
    assert len(ss.rank(FULL, embed(FULL))) == 3
    assert [len(hits) for hits in ss.rank_batch([FULL], [embed(FULL)])] == [3]
    assert ss.rank_batch([], np.zeros((0, 48))) == []


def test_beyond_the_candidates_the_order_is_semantic():
    ss = made(80).fit(fusion="rectified", pool_size=12)
    rest = ss.rank(FULL, embed(FULL), k=80)
    tail = [hit.semantic for hit in rest[12:]]
    assert tail == sorted(tail, reverse=True)
    assert len({hit.score for hit in rest[12:]}) == 1
    assert rest[12].score < rest[11].score


@both_fusions
def test_equal_fits_give_equal_results(fusion):
    first, second = made(60).fit(fusion=fusion), made(60).fit(fusion=fusion)
    for query in queries(5):
        hits = first.rank(query, embed(query), k=60)
        assert hits == second.rank(query, embed(query), k=60)
        assert hits == first.rank(query, embed(query), k=60)


@both_fusions
def test_the_order_of_insertion_does_not_matter(fusion):
    library = made(60)
    shuffled = library.take(np.random.default_rng(3).permutation(60))
    for query in queries(6):
        hits = library.fit(fusion=fusion).rank(query, embed(query), k=60)
        others = {h.id: h for h in shuffled.fit(fusion=fusion).rank(query, embed(query), k=60)}
        np.testing.assert_allclose(
            numbers(hits), numbers([others[hit.id] for hit in hits]), atol=1e-4
        )


@both_fusions
def test_repeating_a_text_does_not_change_its_coverage(fusion):
    library = made(40)
    longer = Made([t if i else f"{t} " * 9 for i, t in enumerate(library.texts)], *library[1:])
    for query in (library.texts[0], FULL):
        assert evidence(longer.fit(fusion=fusion), query) == evidence(
            library.fit(fusion=fusion), query
        )


def test_repeating_a_text_hardly_changes_its_score():
    library = made(40)
    longer = Made([t if i else f"{t} " * 9 for i, t in enumerate(library.texts)], *library[1:])
    plain = library.fit(fusion="rectified").rank(FULL, embed(FULL), k=40)
    assert longer.fit(fusion="rectified").rank(FULL, embed(FULL), k=40) == plain


@both_fusions
def test_one_sentence_more_in_every_text_leaves_most_of_the_best(fusion):
    library = made(80)
    opened = of_texts(f"This tool lets an agent always quickly do {t}" for t in library.texts)
    before, after = library.fit(fusion=fusion), opened.fit(fusion=fusion)
    asked = [query for query in queries(400) if "unheard" not in query]
    kept = [
        len({*ids(before.rank(q, embed(q)))} & {*ids(after.rank(q, embed(q)))}) / 3 for q in asked
    ]
    dense = [
        len(
            {*np.argsort(-(library.vectors @ embed(q)))[:3].tolist()}
            & {*np.argsort(-(opened.vectors @ embed(q)))[:3].tolist()}
        )
        / 3
        for q in asked
    ]
    assert np.mean(kept) > 0.8
    assert np.mean(kept) > np.mean(dense)


@both_fusions
def test_a_text_of_the_template_alone_never_beats_a_specific_word(fusion):
    template = "use this skill when the user wants to"
    library = of_texts(
        [*(f"{template} {a} {b}" for a, b in zip(WORDS, WORDS[7:], strict=False)), template]
    )
    ss = library.fit(fusion=fusion)
    for word in WORDS[:30]:
        query = f"{template} {word}"
        hits = ss.rank(query, embed(query), k=100)
        bare = next(hit.rank for hit in hits if hit.id == library.ids[-1])
        sharing = [hit.rank for hit in hits if word in hit.matched_tokens]
        assert sharing
        assert max(sharing) < bare


def test_nothing_that_came_in_is_changed():
    library = made(20)
    given_ = {
        "texts": list(library.texts),
        "vectors": 3 * library.vectors,
        "ids": list(library.ids),
        "guests": ["new text", None],
        "query": 2 * embed(FULL),
        "batch": np.stack([embed(FULL)] * 2),
        "some": library.ids[:5],
        "outside": [embed("new"), None],
    }
    before = copy.deepcopy(given_)
    ss = SkillSight().fit(given_["texts"], given_["vectors"], given_["ids"])
    ss.rank(FULL, given_["query"], candidates=given_["some"])
    ss.rank_batch([FULL, FULL], given_["batch"])
    with pytest.warns(SkillSightWarning):
        ss.score_candidates(
            FULL,
            given_["query"],
            ["n1", "n2"],
            texts=given_["guests"],
            embeddings=given_["outside"],
        )
    ss.project(given_["vectors"])
    ss.background_energy(given_["vectors"])
    ss.remove(given_["some"])
    ss.add(given_["texts"][:5], given_["vectors"][:5], given_["some"]).refresh()
    for name, value in before.items():
        np.testing.assert_equal(given_[name], value, err_msg=name)


def test_the_callers_array_may_change_after_fit():
    library = made(20)
    vectors = library.vectors.copy()
    ss = SkillSight().fit(library.texts, vectors, library.ids)
    before = ss.rank(FULL, embed(FULL), k=20)
    vectors[:] = 0
    assert ss.rank(FULL, embed(FULL), k=20) == before


@pytest.mark.parametrize("query", ["pdf merge", "PDF-Merge!", "pdf_merge", "pdfMerge"])
def test_a_query_that_is_a_name_finds_its_skill_first(query):
    library = made(60)
    texts = [
        *library.texts,
        "pdf-merge\nbazar",
        "pdf merge tool\nkelin",
        "about pdf merge pdf merge",
    ]
    ss = of_texts(texts).fit(pool_size=3)
    hits = ss.rank(query, embed("bazar kelin"), k=63)
    assert hits[0].id == "s60"
    assert hits[0].score > hits[1].score
    assert ss.rank(query, embed("bazar kelin"), k=1) == hits[:1]
    slow = Reference(texts, of_texts(texts).vectors, ss.ids_, fusion="robust", pool=3)
    expected = slow.rank(query, embed("bazar kelin"))
    np.testing.assert_allclose(
        [hit.score for hit in hits[: len(expected)]], [hit.score for hit in expected], atol=1e-4
    )


def test_a_text_far_broader_than_usual_loses_evidence():
    library = made(200)
    stuffed = of_texts([*library.texts, "stuffed\n" + " ".join(WORDS * 2)])
    ss = stuffed.fit()
    slow = Reference(*stuffed, fusion="robust")
    assert slow.focus(200) < 0.8 < slow.focus(0) == 1.0
    for query in queries(6):
        expected = slow.rank(query, embed(query))
        hits = ss.rank(query, embed(query), k=len(expected))
        np.testing.assert_allclose(
            [hit.score for hit in hits], [hit.score for hit in expected], atol=2e-4
        )


# -- degenerate libraries and queries ------------------------------------------------------------

DEGENERATE = {
    "none": of_texts([]),
    "one": made(1),
    "two": made(2),
    "five": made(5),
    "all texts empty": Made([""] * 9, made(9).vectors, made(9).ids),
    "all texts equal": of_texts(["bazar kelin"] * 9),
    "half empty": of_texts(["bazar kelin", ""] * 6),
    "all embeddings equal": Made(made(9).texts, np.ones((9, 48)), made(9).ids),
    "opposite embeddings": Made(
        made(8).texts, np.vstack([np.eye(48)[:4], -np.eye(48)[:4]]), made(8).ids
    ),
    "one dimension": Made(made(8).texts, np.ones((8, 1)), made(8).ids),
}
QUERIES = ["", "use this skill when", "unheard of wholly", "bazar", "\u6771\u4eac\u90fd", "?!"]


@few_are_enough
@both_fusions
@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("query", QUERIES, ids=ascii)
def test_degenerate_libraries_and_queries_give_finite_scores(name, query, fusion):
    library = DEGENERATE[name]
    ss = library.fit(fusion=fusion)
    n = len(library.ids)
    m = library.vectors.shape[1]
    q = np.resize(embed(query), m)
    hits = ss.rank(query, q, k=n + 1)
    assert sorted(ids(hits)) == sorted(library.ids)
    assert np.isfinite(np.array(numbers(hits))).all()
    assert all(0 <= hit.lexical <= 1 for hit in hits)
    assert ss.rank_batch([query], [q], k=n + 1) == [hits]
    assert ss.score_candidates(query, q, library.ids) == hits
    assert all(ss.explain(query, q, hit.id) == hit for hit in hits)
    assert ss.project(q).shape == (m,)


@both_fusions
@pytest.mark.parametrize("query", ["", "unheard of wholly", "\u6771\u4eac\u90fd", "?!"], ids=ascii)
def test_a_query_without_known_words_keeps_the_semantic_order(query, fusion):
    ss = made(60).fit(fusion=fusion, background="none")
    hits = ss.rank(query, embed(FULL), k=60)
    assert [h.dense for h in hits] == sorted((h.dense for h in hits), reverse=True)
    assert {hit.lexical for hit in hits} == {0.0}
    assert {hit.lexical_z for hit in hits} == {0.0}


def test_a_query_of_generic_words_has_no_specific_evidence():
    ss = made(60).fit(fusion="rectified")
    (hit,) = ss.rank("use this skill when", embed("use this skill when"), k=1)
    assert (hit.lexical, hit.lexical_z) == (0.0, 0.0)
    assert hit.matched_tokens == hit.unmatched_tokens == ()


@few_are_enough
def test_an_empty_library_takes_a_query_of_any_dimension_until_it_has_one():
    ss = SkillSight().fit([], [])
    assert (ss.n_skills_, ss.n_features_in_, ss.ids_) == (0, 0, ())
    assert ss.rank("x", [1.0, 0.0]) == ss.rank_batch(["x"], [[1.0]])[0] == []
    assert ss.project([1.0, 2.0]).tolist() == [1.0, 2.0]
    assert ss.background_energy([1.0, 2.0]).tolist() == [0.0]
    assert ss.score_candidates("x", [1.0, 0.0], []) == []
    with pytest.warns(SkillSightWarning, match="1 of 1 candidates"):
        (hit,) = ss.score_candidates(
            "x y", [1.0, 0.0], ["g"], texts=["x z"], embeddings=[[3.0, 4.0]]
        )
    assert hit.dense == pytest.approx(0.6)
    assert hit.matched_tokens == ("x",)
    assert SkillSight().fit([], np.zeros((0, 7))).n_features_in_ == 7


# -- ties ----------------------------------------------------------------------------------------


@both_fusions
@pytest.mark.parametrize("pool_size", [4, 64, 300])
@pytest.mark.parametrize("m", [33, 384])
def test_ties_are_ordered_by_insertion(fusion, pool_size, m):
    n = 503
    vector = np.random.default_rng(0).standard_normal(m)
    ss = SkillSight(fusion=fusion, pool_size=pool_size, background="none").fit(
        ["same"] * n, np.tile(vector, (n, 1)), [f"{i * 7 % n:03}" for i in range(n)]
    )
    q = np.random.default_rng(1).standard_normal(m)
    hits = ss.rank("same", q, k=n)
    assert tuple(ids(hits)) == ss.ids_
    for batch in ss.rank_batch(["same"] * 65, [q] * 65, k=70):
        assert batch == hits[:70]


def test_equal_scores_are_ordered_by_semantic_score():
    # Without the semantic channel only words score, and both texts have the same ones.
    ss = SkillSight(semantic=False, background="none").fit(
        ["a b", "b a", "c"], [[0.6, 0.8], [1, 0], [0, 1]], ["low", "high", "other"]
    )
    low, high, _ = sorted(ss.rank("a", [1, 0]), key=lambda hit: hit.id != "low")
    hits = ss.rank("a", [1, 0], k=2)
    assert ids(hits) == ["high", "low"]
    assert hits[0].score == hits[1].score
    assert ids(ss.rank("a", [-1, 0], k=2)) == ["low", "high"]
    assert low.score == high.score


# -- options -------------------------------------------------------------------------------------


def test_unique_texts_keeps_the_best_of_identical_texts():
    texts = ["bazar kelin", "molin", "bazar kelin", "bazar kelin ", "vuzar"]
    vectors = ENCODER.encode(texts) + 0.3 * ENCODER.encode([f"noise{i}" for i in range(5)])
    plain = SkillSight(background="none").fit(texts, vectors, list("abcde"))
    unique = SkillSight(background="none", unique_texts=True).fit(texts, vectors, list("abcde"))
    for query in ("bazar", "molin", "nothing"):
        hits = plain.rank(query, embed(query), k=5)
        loser = next(hit.id for hit in reversed(hits) if hit.id in "ac")
        kept = unique.rank(query, embed(query), k=5)
        assert ids(kept) == [hit.id for hit in hits if hit.id != loser]
        assert [hit.rank for hit in kept] == [1, 2, 3, 4]
        assert kept == unique.score_candidates(query, embed(query), ["a", "b", "c", "d", "e"])


@both_fusions
def test_duplicates_do_not_use_up_the_candidates(fusion):
    library = of_texts([*["bazar kelin"] * 10, *made(20).texts])
    ss = library.fit(fusion=fusion, pool_size=4, unique_texts=True, background="none")
    hits = ss.rank("bazar kelin", embed("bazar kelin"), k=12)
    assert len(hits) == 12
    every = ss.rank("bazar kelin", embed("bazar kelin"), k=30)
    assert every[:12] == hits
    assert ss.rank("bazar kelin", embed("bazar kelin"), k=3) == hits[:3]
    assert len(every) == 21
    assert len({*ids(every)} & {*library.ids[:10]}) == 1


@both_fusions
def test_min_evidence_returns_only_what_has_it(fusion):
    library = made(60)
    plain = library.fit(fusion=fusion)
    demanding = library.fit(fusion=fusion, min_evidence=0.4)
    for query in [*queries(8), "unheard", ""]:
        every = plain.rank(query, embed(query), k=60)
        hits = demanding.rank(query, embed(query), k=60)
        assert numbers(hits) == numbers([hit for hit in every if hit.lexical >= 0.4])
        assert ids(demanding.rank(query, embed(query), k=2)) == ids(hits[:2])
    assert demanding.rank("unheard", embed("unheard")) == []


def test_min_evidence_finds_what_the_semantic_pool_misses():
    library = made(60)
    holders = {i for i, text in zip(library.ids, library.texts, strict=True) if "kelin" in text}
    ss = library.fit(fusion="rectified", pool_size=1, min_evidence=1.0)
    q = embed("something else")
    assert {*ids(ss.rank("kelin", q, k=60))} == holders
    assert len(ss.rank("kelin", q, k=2)) == 2


def test_full_coverage_is_exactly_one():
    """Rounding neither lifts coverage above 1 nor keeps it below."""
    library = made(60)
    ss = library.fit(fusion="robust", min_evidence=1.0)
    for id_, text in zip(library.ids, library.texts, strict=True):
        assert ss.explain(text, embed(text), id_).lexical == 1.0
        assert id_ in ids(ss.rank(text, embed(text), k=60))
        assert ss.score_candidates(text, embed(text), [id_])[0].lexical == 1.0


def test_full_coverage_is_exactly_one_for_a_query_of_thousands_of_words():
    long = " ".join(f"own{i}" for i in range(5000))
    texts = [*made(60).texts, long, f"{long} and more"]
    ss = of_texts(texts).fit()
    first, second, third = ss.rank(long, embed(long), k=3)
    assert first.lexical == second.lexical == 1.0
    assert third.lexical < 1.0


@both_fusions
def test_common_words_score_like_all_others(fusion, monkeypatch):
    """They are looked up in another way, over segments and removed skills as well."""
    library = made(120)
    ss = library.take(range(70)).fit(fusion=fusion)
    ss.add(*library.take(range(70, 100))).add(*library.take(range(100, 120)))
    ss.remove(library.ids[60:75])
    asked = queries(12)
    expected = [ss.rank(query, embed(query), k=120) for query in asked]
    monkeypatch.setattr(_evidence, "_MANY", 3)
    monkeypatch.setattr(_evidence, "_COMMON", 1 / 40)
    for query, usual in zip(asked, expected, strict=True):
        hits = ss.rank(query, embed(query), k=120)
        assert ids(hits) == ids(usual)
        np.testing.assert_allclose(numbers(hits), numbers(usual), atol=1e-9)
    assert len(ss.lexical_candidates(WORDS[0])) == 0  # in many skills: it brings none


# -- candidates from outside ---------------------------------------------------------------------


def test_guests_are_scored_from_what_comes_with_them():
    library = made(60)
    ss = library.fit(fusion="rectified")
    known = library.ids[:10]
    with pytest.warns(
        SkillSightWarning,
        match="SkillSight.score_candidates: 3 of 13 candidates are not in the library and are "
        "scored from what came with them: 'both', 'text', 'neither'",
    ) as caught:
        hits = ss.score_candidates(
            "kelin newword unheard",
            embed("kelin newword"),
            [*known, "both", "text", "neither"],
            texts=[*["never read"] * 10, "kelin newword", "newword", None],
            embeddings=[*[None] * 10, 5 * embed("kelin newword"), None, None],
        )
    assert ours(caught)[0].filename == __file__
    assert len(hits) == 13
    found = {hit.id: hit for hit in hits}
    df = sum("kelin" in text.split() for text in library.texts)
    kelin = (math.log(61 / (df + 1)) + 1) * (1 - df / 60)
    new = math.log(61) + 1  # what a guest says is in no statistic: df = 0
    assert found["both"].lexical == pytest.approx((kelin + new) / (kelin + 2 * new))
    assert found["text"].lexical == pytest.approx(new / (kelin + 2 * new))
    assert found["both"].matched_tokens == ("kelin", "newword")
    assert found["both"].unmatched_tokens == ("unheard",)
    assert found["both"].dense == pytest.approx(1.0)
    assert found["text"].dense == found["text"].semantic == 0.0
    assert found["neither"].dense == found["neither"].lexical == 0.0
    inside = {
        h.id: h for h in ss.score_candidates("kelin newword unheard", embed("kelin newword"), known)
    }
    for id_ in known:  # absolute values of skills do not depend on the company
        assert (found[id_].semantic, found[id_].lexical) == (
            inside[id_].semantic,
            inside[id_].lexical,
        )


@both_fusions
def test_a_guest_equal_to_a_skill_scores_like_it(fusion):
    library = made(60)
    ss = library.fit(fusion=fusion)
    query = library.texts[3]
    with pytest.warns(SkillSightWarning):
        hits = ss.score_candidates(
            query,
            embed(query),
            ["guest", *library.ids],
            texts=[query, *[None] * 60],
            embeddings=[library.vectors[3], *[None] * 60],
        )
    twin, guest = (next(h for h in hits if h.id == id_) for id_ in ("s3", "guest"))
    assert numbers([twin]) == numbers([guest])
    assert twin.rank + 1 == guest.rank


def test_guests_leave_no_trace():
    ss = made(60).fit()
    words = dict(ss._state.library.vocabulary)
    before = ss.rank(FULL, embed(FULL), k=60)
    with pytest.warns(SkillSightWarning):
        ss.score_candidates(FULL, embed(FULL), ["g"], texts=["kelin brandnew"])
    assert ss._state.library.vocabulary == words
    assert ss.rank(FULL, embed(FULL), k=60) == before
    assert "g" not in ss.ids_


# -- properties ----------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(texts_of_words, words_asked, st.sampled_from(sorted(FUSIONS)), st.randoms())
def test_any_library_of_words_ranks_well_formed(texts, query, fusion, random):
    library = of_texts(texts)
    ss = library.fit(fusion=fusion, pool_size=5)
    hits = ss.rank(query, embed(query), k=99)
    assert len(hits) == len(texts)
    assert np.isfinite(np.array(numbers(hits))).all()
    assert all(0.0 <= hit.lexical <= 1.0 for hit in hits)
    assert all(hit.score == hit.semantic_z + max(hit.lexical_z, 0.0) for hit in hits)
    order = random.sample(range(len(texts)), len(texts))
    shuffled = library.take(order).fit(fusion=fusion, pool_size=5)
    assert evidence(shuffled, query) == evidence(ss, query)
    assert shuffled.generic_tokens_ == ss.generic_tokens_
