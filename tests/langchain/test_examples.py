"""The examples run, offline, and print what they promise."""

from __future__ import annotations

import runpy

import pytest

from tests.conftest import ROOT

EXAMPLES = {
    "langchain_store": "devops/kubernetes-pod-debugging",
    "langchain_async": "add an index for this slow query -> databases/sql-query-tuning",
    "langchain_agent": "calls load_skill{'id': 'devops/kubernetes-pod-debugging'}",
}


@pytest.mark.usefixtures("minilm")
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_runs_and_prints(name, capsys):
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert EXAMPLES[name] in capsys.readouterr().out
