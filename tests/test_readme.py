"""What the README shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_six_lines_print_what_the_readme_says(minilm):
    section = README.partition("## Six lines")[2].partition("\n## ")[0]
    code, shown = re.findall(r"```(?:python)?\n(.*?)```", section, re.DOTALL)[:2]
    assert len([line for line in code.splitlines() if line.strip()]) == 6
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    rows = [
        [line.split(maxsplit=1) for line in text.splitlines() if line]
        for text in (ran.stdout, shown)
    ]
    for (score, rest), (shown_score, shown_rest) in zip(*rows, strict=True):
        assert rest == shown_rest
        assert float(score) == pytest.approx(float(shown_score), abs=0.05)


def test_the_two_commands_are_targets_of_the_makefile():
    targets = re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    commands = re.findall(r"^\$ make (\w+)", README, re.MULTILINE)
    assert commands == ["demo", "test"]
    assert set(commands) <= set(targets)


def test_every_file_the_readme_links_to_is_there():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    local = [link for link in links if "://" not in link]
    assert len(local) >= 5
    assert all((ROOT / link).exists() for link in local)


def test_the_results_table_is_that_of_the_results_page():
    page = (ROOT / "examples" / "results" / "results.md").read_text(encoding="utf-8")
    for name, method in (
        ("dense retrieval", "dense"),
        ("BM25", "bm25"),
        ("`SkillSight()`", "default"),
    ):
        mrr, recall = re.search(rf"^\| {method} \| ([\d.]+) \| ([\d.]+) \|", page, re.M).groups()
        row = next(
            line for line in README.splitlines() if re.match(rf"\| \**{re.escape(name)}", line)
        )
        assert f"{mrr}" in row
        assert f"{recall}" in row
