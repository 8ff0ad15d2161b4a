"""The example library and the demo of the README."""

from __future__ import annotations

import json
import re
import subprocess
import sys

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


def test_the_demo_shows_gains_losses_and_both_figures(minilm):
    shown = subprocess.run(
        [sys.executable, EXAMPLES / "demo.py"], capture_output=True, text=True, check=True
    ).stdout
    better = shown.index("Where SkillSight does better")
    worse = shown.index("Where SkillSight does worse")
    figures = dict(re.findall(r"^ *(dense retrieval|SkillSight) +([\d.]+% +[\d.]+%)", shown, re.M))
    assert better < worse < shown.index("All queries")
    assert "specific: " in shown
    dense, ours = (list(map(float, re.findall(r"[\d.]+", figures[name]))) for name in figures)
    assert len(dense) == len(ours) == 2
    assert ours[0] > dense[0]
    assert ours[1] > dense[1]
