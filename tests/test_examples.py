"""The example library, and every example run as a user would."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from skillsight_core import load_skills
from tests.conftest import ROOT

EXAMPLES = ROOT / "examples"


def test_the_example_library_is_large_varied_and_sound(example_library):
    library = load_skills(example_library)  # warnings are errors here
    assert len(library) >= 150
    assert len({skill.id.split("/")[0] for skill in library}) >= 10
    assert all(skill.name == skill.id.split("/")[1] for skill in library)
    assert len({skill.description for skill in library}) == len(library)
    assert all(len(skill.body.split()) >= 80 for skill in library)


def test_every_label_of_the_queries_is_a_skill(example_library):
    ids = set(load_skills(example_library).ids)
    lines = (EXAMPLES / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = [json.loads(line) for line in lines]
    assert len({query["query"] for query in queries}) == len(queries) >= 60
    for query in queries:
        assert query["skills"]
        assert ids.issuperset(query["skills"])


def output_of(name):
    """What an example prints."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("minilm")
@pytest.mark.parametrize(
    ("name", "promised"),
    [
        ("langchain_store", "devops/kubernetes-pod-debugging"),
        ("langchain_async", "add an index for this slow query -> databases/sql-query-tuning"),
        ("langchain_agent", "calls load_skill{'id': 'devops/kubernetes-pod-debugging'}"),
        ("llamaindex_offline", "168 skills;"),
        ("llamaindex_retriever", "devops/kubernetes-pod-debugging  matched:"),
        ("llamaindex_query_engine", "devops/kubernetes-pod-debugging"),
        ("llamaindex_workflow", "add an index for this slow query -> databases/sql-query-tuning"),
        ("tools_mcp", "called convert_currency: 20.00 USD are 22.00 EUR"),
    ],
)
def test_the_example_prints_what_it_promises(name, promised):
    assert promised in output_of(name)


@pytest.mark.usefixtures("minilm")
@pytest.mark.parametrize("name", ["tools_langchain", "tools_llamaindex"])
def test_the_agent_runs_every_tool_of_its_script_at_a_fraction_of_the_tokens(name):
    shown = output_of(name)
    for ran in ("weather__get_forecast", "jira__jira_create_issue", "kitchen__brew_coffee"):
        assert f"ran {ran}: " in shown
    tokens = (int(number.replace(",", "")) for number in re.findall(r"~([\d,]+) tok", shown))
    everything, *selected = tokens
    assert len(selected) == 4
    assert max(selected) < everything / 50


@pytest.mark.usefixtures("minilm")
def test_the_demo_shows_gains_losses_and_both_figures():
    shown = output_of("demo")
    better = shown.index("Where SkillSight does better")
    worse = shown.index("Where SkillSight does worse")
    figures = dict(re.findall(r"^ *(dense retrieval|SkillSight) +([\d.]+% +[\d.]+%)", shown, re.M))
    assert better < worse < shown.index("All queries")
    assert "specific: " in shown
    dense, ours = (list(map(float, re.findall(r"[\d.]+", figures[name]))) for name in figures)
    assert len(dense) == len(ours) == 2
    assert ours[0] > dense[0]
    assert ours[1] > dense[1]
