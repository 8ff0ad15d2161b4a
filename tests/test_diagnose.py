"""What `diagnose` measures, against the definitions and slow ways to the same numbers."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from skillsight_core import (
    Diagnosis,
    NotFittedError,
    Skill,
    SkillSight,
    SkillSightWarning,
    diagnose,
    tokenize,
)
from skillsight_core._diagnosis import _pairs
from skillsight_core._diagnosis._phrases import Phrases
from tests.fakes import HashEncoder

TOPICS = (
    "merge pdf files", "split pdf pages", "review pull requests", "write unit tests",
    "plan a budget", "forecast sales", "label images", "translate letters", "tune sql queries",
    "rotate access keys", "resize photos", "draft contracts",
)  # fmt: skip
TEXTS = [f"Use this skill when the user asks to {topic}." for topic in TOPICS]
IDS = [f"skill-{i}" for i in range(len(TOPICS))]
QUERIES = ["merge two pdf files", "the user forecasts sales", "keys of the user", "unknown words"]
GOLD = [["skill-0"], ["skill-5"], ["skill-9", "skill-2"], ["skill-7"]]
ENCODER = HashEncoder()


@pytest.fixture
def ss() -> SkillSight:
    return SkillSight().fit(TEXTS, ENCODER.encode(TEXTS), IDS)


@pytest.fixture
def skills() -> list[Skill]:
    return [Skill(id_, "", text) for id_, text in zip(IDS, TEXTS, strict=True)]


@pytest.fixture
def found(ss: SkillSight, skills: list[Skill]) -> Diagnosis:
    return diagnose(ss, QUERIES, GOLD, encoder=ENCODER, skills=skills)


# -- energies --------------------------------------------------------------------------------------


def test_energies_are_the_squared_length_inside_the_basis(ss, found):
    inside = ENCODER.encode(TEXTS) @ ss.basis_
    expected = [float(sum(x * x for x in row)) for row in inside.astype(float)]
    assert found.energies.skills == pytest.approx(expected, abs=1e-6)
    assert found.energies.skill_mean == pytest.approx(sum(expected) / len(expected), abs=1e-6)
    of_queries = [float(sum(x * x for x in row)) for row in ENCODER.encode(QUERIES) @ ss.basis_]
    assert found.energies.queries == pytest.approx(of_queries, abs=1e-6)
    assert found.energies.query_mean == pytest.approx(sum(of_queries) / 4, abs=1e-6)
    assert found.energies.chance == ss.background_rank_ / 64
    assert found.energies.singular_values == tuple(ss.singular_values_.tolist())


def test_points_set_each_query_beside_its_gold_skills(found):
    energies = found.energies
    assert [point.query for point in energies.points] == list(energies.queries)
    assert energies.points[0].skill == energies.skills[0]
    assert energies.points[2].skill == pytest.approx((energies.skills[9] + energies.skills[2]) / 2)


def test_points_without_labels_take_the_nearest_skill(ss):
    energies = diagnose(ss, QUERIES, encoder=ENCODER).energies
    nearest = (ENCODER.encode(QUERIES) @ ENCODER.encode(TEXTS).T).argmax(axis=1)
    assert [p.skill for p in energies.points] == [energies.skills[row] for row in nearest]


def test_only_labelled_queries_become_points_and_count_in_retrieval(ss):
    found = diagnose(ss, QUERIES, [["skill-0"], [], [], []], encoder=ENCODER)
    assert len(found.energies.queries) == 4
    assert len(found.energies.points) == found.labelled.n_queries == 1


# -- words -----------------------------------------------------------------------------------------


def test_generic_words_come_with_their_document_frequency_and_idf(ss, found):
    assert {word.token for word in found.words.generic} == ss.generic_tokens_
    for word in found.words.generic:
        df = sum(word.token in tokenize(text) for text in TEXTS)
        assert word.df == df
        assert word.idf == pytest.approx(np.log(13 / (df + 1)) + 1)
    frequencies = [word.df for word in found.words.generic]
    assert frequencies == sorted(frequencies, reverse=True)


def test_histogram_counts_every_occurrence_on_its_side_of_the_threshold(found):
    words = found.words
    occurrences = sum(len(set(tokenize(text))) for text in TEXTS)
    assert sum(words.occurrences) == occurrences
    below = sum(
        n for n, low in zip(words.occurrences, words.edges, strict=False) if low < words.threshold
    )
    assert below == sum(word.df for word in words.generic)
    assert words.generic_share == pytest.approx(below / occurrences)
    assert words.threshold in words.edges
    assert list(words.edges) == sorted(set(words.edges))


# -- phrases and offenders -------------------------------------------------------------------------


def test_a_phrase_is_a_longest_run_of_shared_words():
    texts = {f"t{i}": f"Open the file now. Read {'abcdef'[i]} and stop here" for i in range(5)}
    texts["t5"] = "open the file"
    phrases = Phrases(texts)
    assert [(p.text, p.n_skills) for p in phrases.most_shared(9)] == [
        ("open the file", 6),
        ("and stop here", 5),
    ]
    assert [(p.text, p.n_skills) for p in phrases.of("t0", 9)] == [
        ("open the file now", 5),
        ("and stop here", 5),
    ]


def test_a_phrase_does_not_run_over_the_end_of_a_sentence_or_item():
    texts = {f"t{i}": "go now. then stop\n- at once\n\nand wait" for i in range(4)}
    assert Phrases(texts).most_shared(9) == ()


def test_phrases_of_few_skills_are_not_named():
    texts = {f"t{i}": "one two three" if i < 2 else f"text {i}" for i in range(9)}
    assert Phrases(texts).most_shared(9) == ()
    large = {f"t{i}": "one two three" if i < 4 else f"text {i}" for i in range(100)}
    assert Phrases(large).most_shared(9) == ()  # 4 of 100 are less than 5 %


def test_offenders_are_the_skills_with_most_background_worst_first(ss, found):
    energies = dict(zip(IDS, found.energies.skills, strict=True))
    worst = sorted(energies, key=lambda id_: -energies[id_])[:10]
    assert [offender.id for offender in found.offenders] == worst
    first = found.offenders[0]
    tokens = set(tokenize(TEXTS[IDS.index(first.id)]))
    assert first.energy == energies[first.id]
    assert first.generic_share == pytest.approx(len(tokens & ss.generic_tokens_) / len(tokens))
    assert [p.text for p in first.phrases] == ["use this skill when the user asks to"]


# -- pairs -----------------------------------------------------------------------------------------


def test_pairs_are_each_skill_with_its_nearest_by_cosine_without_background(ss, monkeypatch):
    monkeypatch.setattr(_pairs, "_BLOCK", 5)
    rest = ss.project(ENCODER.encode(TEXTS)).astype(float)
    expected = {}
    for i in range(len(rest)):
        cosines = [
            -2.0
            if i == j
            else rest[i] @ rest[j] / np.linalg.norm(rest[i]) / np.linalg.norm(rest[j])
            for j in range(len(rest))
        ]
        j = int(np.argmax(cosines))
        expected[IDS[min(i, j)], IDS[max(i, j)]] = cosines[j]
    border = float(np.median(list(expected.values()))) + 1e-4
    monkeypatch.setattr(_pairs, "NEAR", border)
    pairs = diagnose(ss).pairs
    listed = [*pairs.near_duplicates, *pairs.confusable]
    assert {pair.ids for pair in listed} == set(expected)
    assert [p.cosine for p in listed] == pytest.approx(sorted(expected.values())[::-1], abs=1e-5)
    assert pairs.n_near_duplicates == len(pairs.near_duplicates) > 0
    assert all(pair.cosine >= border for pair in pairs.near_duplicates)
    assert all(pair.cosine < border for pair in pairs.confusable)


def test_a_pair_names_the_heaviest_words_that_only_one_of_them_has():
    texts = [*TEXTS, TEXTS[0], "Use this skill when the user asks to merge pdf files quickly"]
    ids = [*IDS, "copy", "variant"]
    pairs = diagnose(SkillSight().fit(texts, ENCODER.encode(texts), ids)).pairs
    copies = next(p for p in pairs.near_duplicates if p.ids == ("skill-0", "copy"))
    assert copies.identical
    assert copies.cosine == pytest.approx(1.0, abs=1e-5)
    assert copies.only_first == copies.only_second == ()
    other = next(p for p in (*pairs.near_duplicates, *pairs.confusable) if "variant" in p.ids)
    assert not other.identical
    assert other.only_first == ()
    assert other.only_second == ("quickly",)


# -- texts -----------------------------------------------------------------------------------------


def diagnosed(*texts: str) -> Diagnosis:
    listed = [*TEXTS, *texts]
    ids = [f"s{i}" for i in range(len(listed))]
    skills = [Skill(id_, "", text) for id_, text in zip(ids, listed, strict=True)]
    return diagnose(SkillSight().fit(listed, ENCODER.encode(listed), ids), skills=skills)


@pytest.mark.parametrize("word", ["p\u0430ypal", "\u03bfffice", "p\u03b1ypal", "\u043f\u0440oxy"])
def test_words_of_two_alphabets_are_found_without_their_texts(word):
    mixed = diagnosed(f"log in to {word}").texts.mixed_scripts
    assert [(finding.what, finding.ids) for finding in mixed] == [(word, ("s12",))]


@pytest.mark.parametrize(
    "text",
    [
        "5 \u03bcm",
        "TGF-\u03b2 and PPAR\u03b3",
        "\u041c\u043e\u0441\u043a\u0432\u0430",
        "PDF\u3092\u7d50\u5408",
        "na\u00efve caf\u00e9",
        "email-\u043c\u0430\u0440\u043a\u0435\u0442\u0438\u043d\u0433",
    ],
)
def test_signs_and_pure_words_of_other_scripts_are_not_mixed(text):
    assert diagnosed(text).texts.mixed_scripts == ()


def test_invisible_characters_are_named_with_their_skills():
    (finding,) = diagnosed("pay\u200bpal", "fine").texts.invisible
    assert finding.what == "U+200B zero width space"
    assert finding.ids == ("s12",)
    (joined,) = diagnosed("pay\u200dpal").texts.invisible
    assert joined.what == "U+200D zero width joiner"


@pytest.mark.parametrize(
    "text",
    [
        "\u26a0\ufe0f careful",
        "\U0001f469\u200d\U0001f4bb codes",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    ],
)
def test_joiners_of_emoji_and_persian_are_not_suspect(text):
    assert diagnosed(text).texts.invisible == ()


def test_skills_without_description_or_words_are_named(ss, skills):
    skills[0] = Skill("skill-0", "merge", "", "Merge files.")
    skills[1] = Skill("skill-1", "split", "Split pages.", "# Split\n\nSplit pages.\n\nMore.")
    found = diagnose(ss, skills=[*skills, Skill("stranger", "", "")])
    assert found.texts.without_description == ("skill-0", "skill-1")
    assert diagnosed("...").texts.without_words == ("s12",)


def test_without_skills_what_needs_texts_is_none(ss):
    found = diagnose(ss)
    assert found.phrases is found.texts.invisible is found.texts.without_description is None


# -- labels ----------------------------------------------------------------------------------------


def test_both_rankings_agree_with_the_ranks_that_users_see(ss, found):
    vectors = ENCODER.encode(QUERIES)
    ranked = ss.rank_batch(QUERIES, vectors, k=10**6)
    after = [[hit.id for hit in hits] for hits in ranked]
    before = [
        [hit.id for hit in sorted(hits, key=lambda h: (-h.dense, IDS.index(h.id)))]
        for hits in ranked
    ]
    for measured, orders in ((found.labelled.before, before), (found.labelled.after, after)):
        wrong = [
            min(order.index(id_) for id_ in gold) / (len(IDS) - len(gold))
            for order, gold in zip(orders, GOLD, strict=True)
        ]
        assert measured.hard_negatives == pytest.approx(sum(wrong) / 4)
        recall = {
            k: sum(
                len(set(order[:k]) & set(gold)) / len(gold)
                for order, gold in zip(orders, GOLD, strict=True)
            )
            / 4
            for k in range(1, 13)
        }
        assert measured.recall == pytest.approx([recall[k] for k in found.labelled.depths])
        assert measured.depth_for == tuple(
            min(k for k in recall if recall[k] >= wanted) for wanted in found.labelled.recalls
        )


def test_gold_rates_count_words_in_common_by_kind(ss, found):
    ranked = ss.rank_batch(QUERIES, ENCODER.encode(QUERIES), k=3)
    firsts = [[hit.id for hit in hits] for hits in ranked]
    for rates, chosen in (
        (found.labelled.anywhere, [IDS] * 4),
        (found.labelled.after.gold_rates, firsts),
    ):
        counts = {(generic, right): 0 for generic in (0, 1) for right in (0, 1)}
        for query, ids, gold in zip(QUERIES, chosen, GOLD, strict=True):
            for id_ in ids:
                for word in set(tokenize(query)) & set(tokenize(TEXTS[IDS.index(id_)])):
                    counts[word in ss.generic_tokens_, id_ in gold] += 1
        for rate, generic in ((rates.generic, 1), (rates.other, 0)):
            all_of_them = counts[generic, 0] + counts[generic, 1]
            assert rate == pytest.approx(counts[generic, 1] / all_of_them)


def test_hard_negatives_worked_by_hand():
    vectors = np.eye(4) + 0.01
    ss = SkillSight(background="none").fit(["a", "b", "c", "d"], vectors, list("abcd"))
    queries = [[0.9, 0.5, 0.3, 0.1], [0.1, 0.2, 0.3, 0.4]]
    found = diagnose(ss, ["?", "?"], [["c"], ["b", "d"]], query_embeddings=queries)
    # c stands behind a and b, two of three wrong ones; d stands first.
    assert found.labelled.before.hard_negatives == pytest.approx((2 / 3 + 0) / 2)
    # After 1: 0 and 1/2; after 3: all of c, and d and b.
    assert found.labelled.before.recall == pytest.approx([0.25, 0.25, 1.0, 1.0])
    assert found.labelled.before.depth_for == (3, 3, 3, 3)


def test_labels_may_come_as_ids_grades_or_by_query_id(ss, found):
    graded = [{**dict.fromkeys(gold, 2), "skill-11": 0} for gold in GOLD]
    by_id = {f"q{i}": text for i, text in enumerate(QUERIES)}
    labels = {**{f"q{i}": gold for i, gold in enumerate(graded)}, "of another query": ["skill-3"]}
    assert diagnose(ss, QUERIES, graded, encoder=ENCODER).labelled == found.labelled
    assert diagnose(ss, by_id, labels, encoder=ENCODER).labelled == found.labelled


# -- what users do wrong ---------------------------------------------------------------------------


def test_gold_skills_that_are_not_in_the_library_are_left_out_with_a_warning(ss):
    with pytest.warns(SkillSightWarning, match="qrels name 1 skills that are not .* 'gone'"):
        found = diagnose(ss, QUERIES, [["skill-0", "gone"], ["gone"], [], []], encoder=ENCODER)
    assert found.labelled.n_queries == 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"queries": "one"}, TypeError, "queries must be a sequence or a mapping of str, got one"),
        ({"queries": [1]}, TypeError, "diagnose: query must be str, got int"),
        ({"queries": ["a"], "qrels": {"a": []}}, TypeError, "qrels must be a sequence with one"),
        ({"queries": ["a"], "qrels": []}, ValueError, "got 0 entries for 1 queries"),
        ({"queries": ["a"], "qrels": ["skill-0"]}, TypeError, "got one str: 'skill-0'"),
        ({"queries": ["a"], "qrels": [[]]}, ValueError, "qrels must name skills of the library"),
        ({"qrels": [["skill-0"]]}, ValueError, "queries must be given with qrels"),
        ({"queries": ["a"], "encoder": None}, ValueError, "queries need query_embeddings or an"),
        ({"queries": ["a"], "query_embeddings": np.eye(64)}, ValueError, "got 64 rows for 1 quer"),
        ({"queries": ["a"], "query_embeddings": np.eye(3)[:1]}, ValueError, r"shape \(64,\)"),
    ],
)
def test_wrong_arguments_are_named(ss, arguments, error, message):
    with pytest.raises(error, match=message):
        diagnose(ss, **{"encoder": ENCODER, **arguments})


def test_an_estimator_that_was_not_fitted_is_refused():
    with pytest.raises(NotFittedError, match="diagnose: call fit first"):
        diagnose(SkillSight())


# -- the edges -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 6])
@pytest.mark.parametrize("text", ["", "the same text", None])
def test_small_and_empty_libraries_are_diagnosed(n, text):
    texts = [TEXTS[i] if text is None else text for i in range(n)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkillSightWarning)
        ss = SkillSight().fit(texts, ENCODER.encode(texts) if n else np.zeros((0, 64)))
    skills = [Skill(id_, "", t) for id_, t in zip(ss.ids_, texts, strict=True)]
    gold = [list(ss.ids_[:1])] if n else None
    found = diagnose(ss, ["a query"], gold, encoder=ENCODER, skills=skills)
    json.dumps(found.as_dict(), allow_nan=False)
    assert len(found.energies.skills) == n
    assert f"{n} skill" in str(found)
    assert "</html>" in found.as_html()


def test_removed_skills_are_gone_and_the_library_is_as_it_was(ss):
    before = ss.rank(QUERIES[0], ENCODER.encode(QUERIES)[0], k=20)
    ss.remove(["skill-3"])
    kept = [i for i, id_ in enumerate(IDS) if id_ != "skill-3"]
    found = diagnose(ss, QUERIES, GOLD, encoder=ENCODER)
    assert found.ids == tuple(IDS[i] for i in kept)
    assert found.words.n_tokens == len({t for i in kept for t in tokenize(TEXTS[i])})
    assert "unit" not in {w for p in found.pairs.confusable for w in p.only_first + p.only_second}
    ss.add([TEXTS[3]], ENCODER.encode([TEXTS[3]]), ["skill-3"])
    again = {hit.id: hit.score for hit in ss.rank(QUERIES[0], ENCODER.encode(QUERIES)[0], k=20)}
    assert again == pytest.approx({hit.id: hit.score for hit in before})


def test_skills_are_more_background_than_their_tasks_in_the_example_library(
    minilm, example_library
):
    from skillsight_core import load_skills
    from skillsight_core._diagnosis._command import read_queries

    library = load_skills(example_library, fields=("name", "description"))  # quick to encode
    queries, gold = read_queries(example_library.parent / "queries.jsonl")
    ss = SkillSight().fit(library.texts, minilm.encode(library.texts), library.ids, encoder=minilm)
    found = diagnose(ss, queries, gold, encoder=minilm, skills=library)
    assert found.energies.skill_mean > 2 * found.energies.query_mean
    assert found.labelled.anywhere.other > 2 * found.labelled.anywhere.generic
    assert "this skill should be used whenever" in {phrase.text for phrase in found.phrases}
