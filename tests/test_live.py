"""Libraries that change while they are read."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillsight_core import SkillSight, SkillSightWarning
from tests.libraries import (
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
from tests.test_statistics import learned_df

QUERY = "use this skill for bazar kelin unheard"


def assert_same_words(one: SkillSight, other: SkillSight) -> None:
    """Everything that follows from words alone."""
    assert one.ids_ == other.ids_
    assert one.n_skills_ == other.n_skills_
    assert learned_df(one) == learned_df(other)
    assert one.idf_threshold_ == other.idf_threshold_
    assert one.generic_tokens_ == other.generic_tokens_
    assert (
        one._state.library.statistics.total_length == other._state.library.statistics.total_length
    )
    for query in queries(4):
        assert evidence(one, query) == evidence(other, query)


def test_added_skills_are_there_at_the_next_call():
    library = made(60)
    ss = library.take(range(59)).fit()
    assert ss.add(library.texts[59:], library.vectors[59:], ["new"]) is ss
    assert ss.ids_[-1] == "new"
    best = ss.rank(library.texts[59], library.vectors[59], k=1)[0]
    assert (best.id, best.lexical) == ("new", 1.0)


def test_removed_skills_are_gone_at_the_next_call():
    library = made(60)
    ss = library.fit()
    gone = ids(ss.rank(QUERY, embed(QUERY), k=5))
    assert ss.remove(gone) is ss
    assert not {*gone} & {*ids(ss.rank(QUERY, embed(QUERY), k=100))}
    assert not {*gone} & {*ss.ids_}
    assert not {*gone} & {*ss.lexical_candidates(QUERY)}
    with pytest.warns(SkillSightWarning, match="5 of 5 candidates are not in the library"):
        ss.score_candidates(QUERY, embed(QUERY), gone)


def test_additions_count_in_the_words_as_a_fit_of_all():
    library = made(60)
    whole = library.fit()
    two = library.take(range(25)).fit()
    rest = library.take(range(25, 60))
    assert_same_words(two.add(*rest), whole)
    one_by_one = library.take(range(6)).fit()
    for i in range(6, 60):
        one_by_one.add(*library.take([i]))
    assert_same_words(one_by_one, whole)
    assert len(one_by_one._state.library.segments) < 8
    for query in queries(4):
        np.testing.assert_allclose(
            numbers(one_by_one.refresh().rank(query, embed(query), k=60)),
            numbers(whole.rank(query, embed(query), k=60)),
            atol=1e-5,
        )


def test_additions_leave_the_background_until_refresh():
    library = made(60)
    ss = library.take(range(40)).fit()
    basis = ss.basis_
    ss.add(*library.take(range(40, 60)))
    ss.remove(["s0"])
    assert ss.basis_ is basis
    ss.refresh()
    fresh = library.take(range(1, 60)).fit()
    np.testing.assert_allclose(ss.basis_ @ ss.basis_.T, fresh.basis_ @ fresh.basis_.T, atol=1e-4)
    assert ss.background_rank_ == fresh.background_rank_
    assert not np.allclose(ss.basis_ @ ss.basis_.T, basis @ basis.T, atol=1e-4)


def test_refresh_changes_nothing_about_words():
    library = made(60)
    ss = library.take(range(40)).fit()
    for i in range(40, 60):
        ss.add(*library.take([i]))
    ss.remove(library.ids[5:25])
    kept = library.take([*range(5), *range(25, 60)])
    assert_same_words(ss, kept.fit())
    assert_same_words(ss.refresh(), kept.fit())
    assert set(ss._state.library.vocabulary) == set(learned_df(kept.fit()))


def test_removed_ids_can_come_back_with_another_text():
    library = made(20)
    ss = library.fit()
    for text in ("kelin first", "kelin second", "kelin third"):
        ss.remove(["s3"])
        ss.add([text], [embed(text)], ["s3"])
        assert ss.ids_[-1] == "s3"
        assert ss.explain("first second third", embed("x"), "s3").matched_tokens == (
            text.split()[1],
        )
    assert ss.n_skills_ == 20
    ss.refresh()
    assert ss.explain("first second third", embed("x"), "s3").matched_tokens == ("third",)


def test_a_refused_change_changes_nothing():
    library = made(20)
    ss = library.fit()
    before = ss._state
    with pytest.raises(ValueError, match="'s1'"):
        ss.add(["new", "old"], library.vectors[:2], ["n", "s1"])
    with pytest.raises(ValueError, match="zero"):
        ss.add(["brandnew"], np.zeros((1, 48)), ["n"])
    with pytest.raises(ValueError, match="'unknown'"):
        ss.remove(["s1", "unknown"])
    assert ss._state is before
    assert_same_words(ss, library.fit())


def test_everything_may_be_removed_and_added_again():
    library = made(20)
    ss = library.fit()
    ss.remove(ss.ids_)
    assert ss.rank(QUERY, embed(QUERY), k=5) == []
    assert (ss.n_skills_, ss.generic_tokens_) == (0, frozenset())
    with pytest.warns(SkillSightWarning, match="SkillSight.refresh: 0 skills are too few"):
        ss.refresh()
    assert ss.n_features_in_ == 48
    ss.add(*library).refresh()
    assert_same_words(ss, library.fit())
    assert ss.rank(QUERY, embed(QUERY), k=20) == library.fit().rank(QUERY, embed(QUERY), k=20)


def test_an_empty_library_takes_its_dimension_from_the_first_skills():
    with pytest.warns(SkillSightWarning):
        ss = SkillSight().fit([], [])
    library = made(20)
    ss.add(*library)
    assert ss.n_features_in_ == 48
    assert ss.background_rank_ == 0
    assert ss.refresh().rank(QUERY, embed(QUERY)) == library.fit().rank(QUERY, embed(QUERY))


def test_adding_and_removing_nothing_is_nothing():
    ss = made(20).fit()
    before = ss.rank(QUERY, embed(QUERY), k=20)
    ss.add([], [], []).add([], np.zeros((0, 48))).remove([])
    assert ss.rank(QUERY, embed(QUERY), k=20) == before


def test_who_holds_the_old_state_keeps_seeing_it():
    library = made(60)
    ss = library.take(range(30)).fit()
    old = ss._state
    before = (old.library.ids, old.library.statistics.threshold, dict(learned_df(ss)))
    ss.add(*library.take(range(30, 60)))
    ss.remove(library.ids[:10])
    ss.refresh()
    fresh = SkillSight(**ss.get_params())
    fresh._state = old
    assert (fresh.ids_, fresh.idf_threshold_, learned_df(fresh)) == before
    assert fresh.rank(QUERY, embed(QUERY), k=99) == library.take(range(30)).fit().rank(
        QUERY, embed(QUERY), k=99
    )


# -- properties ----------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(texts_of_words, st.lists(words_asked, max_size=5), words_asked)
def test_adding_then_removing_gives_back_the_same_words(texts, more, query):
    library = of_texts(texts)
    ss = library.fit()
    before = (learned_df(ss), ss.n_skills_, ss.idf_threshold_, evidence(ss, query))
    added = [f"new{i}" for i in range(len(more))]
    ss.add(more, of_texts(more).vectors, added).remove(added)
    assert (learned_df(ss), ss.n_skills_, ss.idf_threshold_, evidence(ss, query)) == before


@settings(max_examples=40, deadline=None)
@given(texts_of_words, texts_of_words, words_asked, st.booleans())
def test_fit_and_add_give_the_words_of_one_fit(texts, more, query, refresh):
    library = of_texts(texts + more)
    ss = library.take(range(len(texts))).fit()
    ss.add(*library.take(range(len(texts), len(library.ids))))
    if refresh:
        ss.refresh()
    whole = library.fit()
    assert_same_words(ss, whole)
    assert evidence(ss, query) == evidence(whole, query)


@settings(max_examples=40, deadline=None)
@given(texts_of_words, st.data())
def test_any_history_equals_a_fit_of_what_is_left(texts, data):
    library = of_texts(texts)
    start = data.draw(st.integers(6, len(texts)))
    ss = library.take(range(start)).fit()
    alive = list(range(start))
    for _ in range(data.draw(st.integers(1, 8))):
        missing = [i for i in range(len(texts)) if i not in alive]
        step = data.draw(st.sampled_from(["add", "remove", "refresh"]))
        if step == "add" and missing:
            i = data.draw(st.sampled_from(missing))
            ss.add(*library.take([i]))
            alive.append(i)
        elif step == "remove" and len(alive) > 6:
            i = data.draw(st.sampled_from(alive))
            ss.remove([library.ids[i]])
            alive.remove(i)
        elif step == "refresh":
            ss.refresh()
    assert_same_words(ss, library.take(alive).fit())


# -- threads -------------------------------------------------------------------------------------


def together(*loops) -> None:
    """Run each function in a thread of its own until the first, which ends, has ended."""
    done = threading.Event()
    errors: list[BaseException] = []

    def guarded(loop, last: bool) -> None:
        try:
            loop(done)
        except BaseException as error:
            errors.append(error)
        finally:
            if last:
                done.set()

    threads = [
        threading.Thread(target=guarded, args=(loop, i == 0)) for i, loop in enumerate(loops)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


def test_readers_never_fail_and_never_see_what_was_removed_before_they_asked():
    library = made(120)
    ss = library.take(range(60)).fit()
    removed: set[str] = set()
    read = 0

    def writer(done):
        for i in range(60):
            ss.add(
                [f"{library.texts[60 + i]} fresh{i}"], library.vectors[60 + i : 61 + i], [f"n{i}"]
            )
            ss.remove([f"s{i % 50}"]) if i < 50 else ss.remove([f"n{i - 50}"])
            removed.add(f"s{i}" if i < 50 else f"n{i - 50}")
            if i % 10 == 9:
                ss.refresh()

    def reader(done):
        nonlocal read
        while not done.is_set():
            gone = set(removed)
            for hits in (
                ss.rank(QUERY, embed(QUERY), k=200),
                *ss.rank_batch([QUERY], [embed(QUERY)], k=200),
                ss.rank(QUERY, embed(QUERY), k=3),
            ):
                assert not gone & {*ids(hits)}
                assert len({*ids(hits)}) == len(hits)
            assert not gone & {*ss.ids_, *ss.lexical_candidates(QUERY)}
            assert {"use", "this"} & ss.generic_tokens_
            read += 1

    together(writer, reader, reader)
    assert read > 0
    assert_same_words(ss, ss.__class__().fit(*surviving(library)))


def surviving(library):
    """What the writer above leaves, in order of insertion."""
    texts = [*library.texts[50:60], *(f"{library.texts[60 + i]} fresh{i}" for i in range(10, 60))]
    names = [*(f"s{i}" for i in range(50, 60)), *(f"n{i}" for i in range(10, 60))]
    return texts, library.vectors[[*range(50, 60), *range(70, 120)]], names


def test_saving_while_another_thread_adds_gives_whole_libraries(tmp_path):
    library = made(200)
    ss = library.take(range(100)).fit()
    ss.remove(["s0"])

    def writer(done):
        for i in range(100, 200):
            words = " ".join(f"w{i}x{j}" for j in range(200))
            ss.add([f"{library.texts[i]} {words}"], library.vectors[i : i + 1], [library.ids[i]])

    def saver(done):
        while not done.is_set():
            ss.save(tmp_path / "lib")
            loaded = SkillSight.load(tmp_path / "lib")
            held = loaded._state.library
            assert len(held.vocabulary) == len(held.statistics.df)
            assert loaded.ids_ == ss.ids_[: loaded.n_skills_]

    together(writer, saver)


def test_two_threads_that_add_lose_nothing():
    library = made(120)
    ss = library.take(range(20)).fit()

    def adder(rows):
        def loop(done):
            for i in rows:
                ss.add(*library.take([i]))

        return loop

    together(adder(range(20, 70)), adder(range(70, 120)))
    assert sorted(ss.ids_) == sorted(library.ids)
    assert learned_df(ss) == learned_df(library.fit())
