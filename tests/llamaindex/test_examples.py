"""The examples run, offline, and print what they promise."""

from __future__ import annotations

import runpy

import pytest

from tests.conftest import ROOT

EXAMPLES = {
    "llamaindex_offline": "168 skills;",
    "llamaindex_retriever": "devops/kubernetes-pod-debugging  matched:",
    "llamaindex_query_engine": "devops/kubernetes-pod-debugging",
    "llamaindex_workflow": "add an index for this slow query -> databases/sql-query-tuning",
}


@pytest.mark.usefixtures("minilm")
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_runs_and_prints(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert EXAMPLES[name] in capsys.readouterr().out
