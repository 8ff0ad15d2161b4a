"""What people notice, with the real model on the example library."""

from __future__ import annotations

import json

import numpy as np
import pytest

from skillsight_core import SkillSight, load_skills, tokenize
from tests.conftest import ROOT

TEMPLATE = "Use this skill whenever the user asks for help with a task of this kind. "


@pytest.fixture(scope="module")
def library(example_library):
    return load_skills(example_library, fields=("name", "description"))


@pytest.fixture(scope="module")
def vectors(library, minilm):
    return minilm.encode(library.texts)


@pytest.fixture(scope="module")
def queries():
    lines = (ROOT / "examples" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["query"] for line in lines]


@pytest.fixture(scope="module")
def query_vectors(queries, minilm):
    return minilm.encode(queries)


@pytest.fixture(scope="module")
def fitted(library, vectors):
    return SkillSight().fit(library.texts, vectors, library.ids)


def top_three(fitted, queries, query_vectors):
    return [{hit.id for hit in hits} for hits in fitted.rank_batch(queries, query_vectors)]


def changed(before, after):
    return sum(a != b for a, b in zip(before, after, strict=True)) / len(before)


def test_a_template_in_every_text_moves_us_less_than_it_moves_the_model(
    library, fitted, vectors, queries, query_vectors, minilm
):
    texts = [f"{skill.name}\n{TEMPLATE}{skill.description}" for skill in library]
    with_template = minilm.encode(texts)
    ours = SkillSight().fit(texts, with_template, library.ids)
    cosine = SkillSight(background="none", lexical=False, fusion="rectified")
    plain = top_three(cosine.fit(library.texts, vectors, library.ids), queries, query_vectors)
    plain_after = top_three(cosine.fit(texts, with_template, library.ids), queries, query_vectors)
    ours_changed = changed(
        top_three(fitted, queries, query_vectors), top_three(ours, queries, query_vectors)
    )
    assert ours_changed <= changed(plain, plain_after)


def test_a_text_stuffed_with_other_skills_words_rarely_gets_in(
    library, vectors, queries, query_vectors, minilm
):
    chosen = np.random.default_rng(0).choice(len(library), 50, replace=False)
    words = dict.fromkeys(token for i in chosen for token in tokenize(library.texts[i]))
    stuffed = "do everything\n" + " ".join(words)
    ss = SkillSight().fit(
        [*library.texts, stuffed],
        np.vstack([vectors, minilm.encode([stuffed])]),
        [*library.ids, "stuffed"],
    )
    fooled = sum("stuffed" in top for top in top_three(ss, queries, query_vectors))
    assert fooled <= 0.03 * len(queries)


def test_an_exact_name_comes_first(fitted, library, minilm):
    for skill in library[::12]:
        asked = skill.name.replace("-", " ")
        (vector,) = minilm.encode([asked])
        assert fitted.rank(asked, vector, k=1)[0].id == skill.id


def test_a_query_in_another_script_keeps_the_semantic_order(fitted, minilm):
    query = "\u628a\u6263\u6b3e\u53d1\u7968\u5408\u5e76\u6210\u4e00\u4e2a\u6587\u4ef6"
    (vector,) = minilm.encode([query])
    hits = fitted.rank(query, vector, k=20)
    assert all(hit.lexical == 0 for hit in hits)
    strength = [hit.dense + hit.semantic for hit in hits]
    assert strength == sorted(strength, reverse=True)


TOOLS = [
    "list_projects\nList the projects of the current user.",
    "list_project_members\nList the members of a project.",
    "list_project_issues\nList the issues of a project.",
    "list_project_releases\nList the releases of a project.",
    "create_project\nCreate a project.",
    "get_accounts\nGet the accounts of the current user.",
    "get_account_limits\nGet the limits of an account.",
    "close_account\nClose an account.",
    "get_weather\nGet the weather of a place.",
    "send_message\nSend a message to a person.",
]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("list my projects", "list_projects"),
        ("list the members of the project", "list_project_members"),
        ("list my accounts", "get_accounts"),
        ("get_accounts", "get_accounts"),
        ("listProjectIssues", "list_project_issues"),
    ],
)
def test_a_parent_comes_before_its_sub_resources_unless_they_are_asked_for(query, wanted, minilm):
    names = [text.partition("\n")[0] for text in TOOLS]
    ss = SkillSight().fit(TOOLS, minilm.encode(TOOLS), names)
    (vector,) = minilm.encode([query])
    assert ss.rank(query, vector, k=1)[0].id == wanted
