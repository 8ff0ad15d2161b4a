"""Benchmarks from their files, on small ones of the same form."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skillsight_core import MissingDependencyError
from skillsight_core.evaluation import (
    load_beir,
    load_skillret,
    load_skillrouter,
    load_sra_bench,
    ready_embeddings,
)


def _write(path: Path, content: object) -> None:
    """A list as JSON Lines or JSON by the file's name, a str as it is; gzipped where it says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    if ".jsonl" in path.name and isinstance(content, list):
        text = "".join(json.dumps(record) + "\n" for record in content)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


@pytest.fixture(params=["", ".gz"], ids=["plain", "gzipped"])
def beir(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    end = request.param
    folder = tmp_path / "set"
    corpus = [
        {"_id": "d1", "title": "merge", "text": "merge files"},
        {"_id": "d2", "title": "", "text": "no title"},
        {"_id": "d3", "text": "no title at all", "metadata": {}},
    ]
    queries = [
        {"_id": "q1", "text": "merge"},
        {"_id": "q2", "text": "unlabelled"},
        {"_id": "q3", "text": "labelled with nothing"},
        {"_id": "q4", "text": "two of them"},
    ]
    qrels = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq3\td1\t0\nq4\td2\t2\nq4\td3\t1\n"
    _write(folder / f"corpus.jsonl{end}", corpus)
    _write(folder / f"queries.jsonl{end}", queries)
    _write(folder / "qrels" / f"test.tsv{end}", qrels)
    return folder


def test_beir_keeps_the_queries_that_have_a_document_of_positive_score(beir: Path) -> None:
    loaded = load_beir(beir)
    assert loaded.name == "set"
    assert loaded.ids == ("d1", "d2", "d3")
    assert loaded.texts == ("merge\nmerge files", "no title", "no title at all")
    assert loaded.queries == {"q1": "merge", "q4": "two of them"}
    assert loaded.gold == {"q1": ("d1",), "q4": ("d2", "d3")}
    assert loaded.relevance["q4"] == {"d2": 2, "d3": 1}


def test_beir_adds_the_documents_of_distractors_and_nothing_else(
    beir: Path, tmp_path: Path
) -> None:
    _write(tmp_path / "more" / "corpus.jsonl", [{"_id": "x", "title": "t", "text": "more"}])
    loaded = load_beir(beir, distractors=[tmp_path / "more"])
    assert loaded.name == "set + more"
    assert loaded.ids == ("d1", "d2", "d3", "x")
    assert loaded.sizes == (3, 1)
    assert loaded.queries == load_beir(beir).queries


def test_beir_refuses_an_id_that_two_corpora_share(beir: Path, tmp_path: Path) -> None:
    _write(tmp_path / "more" / "corpus.jsonl", [{"_id": "d2", "text": "again"}])
    with pytest.raises(ValueError, match="ids must be distinct, got more than once: 'd2'"):
        load_beir(beir, distractors=[tmp_path / "more"])


def test_beir_reads_the_labels_of_another_split(beir: Path) -> None:
    _write(beir / "qrels" / "dev.tsv", "query-id\tcorpus-id\tscore\nq2\td3\t1\n")
    assert load_beir(beir, split="dev").gold == {"q2": ("d3",)}


def test_beir_names_the_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"corpus\.jsonl: no such file, nor .*\.gz"):
        load_beir(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("corpus.jsonl", '{"_id": "a", "text": "b"}\n{"_id": 1', r"corpus\.jsonl:2: not a line of"),
        ("corpus.jsonl", '\n{"_id": "a"}\n', r"corpus\.jsonl:2: a record must have .* 'text'"),
        ("corpus.jsonl", "[]\n", r"corpus\.jsonl:1: a record must be an object, got list"),
        ("qrels/test.tsv", "a\tb\tc\nq1\td1\thigh\n", r"test\.tsv:2: a line must be .* 'high'"),
        ("qrels/test.tsv", "a\tb\tc\nq1 d1 1\n", r"test\.tsv:2: a line must be a query id"),
        ("qrels/test.tsv", "a\tb\tc\n", "benchmark 'set': no query has a gold document"),
    ],
)
def test_beir_says_which_line_is_wrong(file: str, content: str, message: str, beir: Path) -> None:
    for old in beir.glob(f"{file}*"):
        old.unlink()
    _write(beir / file, content)
    with pytest.raises(ValueError, match=message):
        load_beir(beir)


def test_the_first_queries_are_those_of_the_file_that_are_labelled(beir: Path) -> None:
    loaded = load_beir(beir)
    assert list(loaded.limited(1).queries) == ["q1"]
    assert list(loaded.limited(None).queries) == ["q1", "q4"]
    with pytest.raises(ValueError, match="limit must be an integer >= 1, got 0"):
        loaded.limited(0)


def test_ready_embeddings_are_stacked_in_the_order_of_the_corpora(
    beir: Path, tmp_path: Path
) -> None:
    _write(tmp_path / "more" / "corpus.jsonl", [{"_id": "x", "text": "more"}])
    loaded = load_beir(beir, distractors=[tmp_path / "more"])
    files = [tmp_path / "a.npy", tmp_path / "b.npy"]
    np.save(files[0], np.eye(3, 4, dtype=np.float16))
    np.save(files[1], np.ones((1, 4), dtype=np.float16))
    assert ready_embeddings(files, loaded).tolist() == [*np.eye(3, 4).tolist(), [1.0] * 4]
    with pytest.raises(ValueError, match="one file for each of 2 corpora, got 1"):
        ready_embeddings(files[:1], loaded)
    with pytest.raises(ValueError, match=r"b\.npy: .* each of 3 documents, got the shape \(1, 4\)"):
        ready_embeddings(files[::-1], loaded)


# -- SRA-Bench -----------------------------------------------------------------------------------


@pytest.fixture(params=["corpus.json", "corpus/corpus.json"])
def sra(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    corpus = [
        {"skill_id": "math_0", "name": "newton", "description": "roots", "content": "iterate"},
        {"skill_id": "web_1", "name": "cook", "description": None, "content": "boil", "tools": []},
    ]
    _write(tmp_path / request.param, corpus)
    math = {"instance_id": "math_00", "dataset": "math", "question": "solve x", "eval_data": {}}
    logic = {"instance_id": "logic_00", "dataset": "logic", "question": "is it so", "eval_data": {}}
    _write(tmp_path / "instances" / "math.json", [{**math, "skill_annotations": ["math_0"]}])
    _write(
        tmp_path / "instances" / "logic.json",
        [
            {**logic, "skill_annotations": ["math_0", "web_1"]},
            {**logic, "instance_id": "logic_01", "skill_annotations": []},
        ],
    )
    return tmp_path


def test_sra_bench_has_questions_as_queries_and_annotations_as_gold(sra: Path) -> None:
    loaded = load_sra_bench(sra)
    assert loaded.ids == ("math_0", "web_1")
    assert loaded.texts == ("newton\nroots\niterate", "cook\nboil")
    assert loaded.queries == {"logic_00": "is it so", "math_00": "solve x"}
    assert loaded.gold == {"logic_00": ("math_0", "web_1"), "math_00": ("math_0",)}


def test_sra_bench_can_be_read_one_data_set_at_a_time(sra: Path) -> None:
    loaded = load_sra_bench(str(sra), datasets=["math"])
    assert loaded.name == "SRA-Bench math"
    assert list(loaded.queries) == ["math_00"]
    with pytest.raises(FileNotFoundError, match=r"chess\.json: no such file"):
        load_sra_bench(sra, datasets=["chess"])


# -- SkillRouter ---------------------------------------------------------------------------------


@pytest.fixture
def skillrouter(tmp_path: Path) -> Path:
    def skill(id_: str) -> dict[str, str]:
        return {"skill_id": id_, "name": id_.split("/")[1], "description": "d", "body": "b"}

    easy = [skill(id_) for id_ in ("gt/mesh", "gt/pdf", "gt/licence", "pool/other")]
    hard = [*easy, skill("degraded/mesh_1")]
    _write(tmp_path / "easy" / "part-00000.jsonl.gz", easy[:2])
    _write(tmp_path / "easy" / "part-00001.jsonl.gz", easy[2:])
    _write(tmp_path / "hard" / "part-00000.jsonl.gz", hard)
    tasks = [{"task_id": t, "instruction_text": f"do {t}"} for t in ("scan", "form", "gone")]
    _write(tmp_path / "tasks.jsonl", tasks)
    scan: dict[str, Any] = {
        "gt_skill_ids": ["gt/mesh", "gt/licence"],
        "core_gt_ids": ["gt/mesh"],
        "auxiliary_gt_ids": ["gt/licence"],
        "relevance": {"gt/mesh": 3, "gt/licence": 3, "degraded/mesh_1": 1},
        "task_type": "mixed",
    }
    form = {"gt_skill_ids": ["gt/pdf"], "core_gt_ids": [], "task_type": "generic_only"}
    gone = {"gt_skill_ids": ["gt/absent"], "core_gt_ids": ["gt/absent"], "task_type": "clean"}
    _write(tmp_path / "relevance.json", {"scan": scan, "form": form, "gone": gone})
    return tmp_path


def test_skillrouter_is_scored_as_published(skillrouter: Path) -> None:
    loaded = load_skillrouter(skillrouter)
    assert loaded.name == "SkillRouter easy"
    assert loaded.ids == ("gt/mesh", "gt/pdf", "gt/licence", "pool/other")
    assert loaded.texts[0] == "mesh\nd\nb"
    assert loaded.queries == {"scan": "do scan"}  # no generic tasks, none without a gold skill
    assert loaded.gold == {"scan": ("gt/mesh",)}
    assert loaded.relevance == {"scan": {"gt/mesh": 3, "gt/licence": 3}}


def test_skillrouters_hard_pool_has_the_degraded_skills_and_their_grades(skillrouter: Path) -> None:
    loaded = load_skillrouter(skillrouter, tier="hard")
    assert len(loaded.ids) == 5
    assert loaded.relevance["scan"]["degraded/mesh_1"] == 1
    assert loaded.gold == {"scan": ("gt/mesh",)}


def test_skillrouter_has_two_tiers(skillrouter: Path) -> None:
    with pytest.raises(ValueError, match="tier must be one of 'easy', 'hard', got 'medium'"):
        load_skillrouter(skillrouter, tier="medium")


# -- SkillRet ------------------------------------------------------------------------------------


@pytest.fixture
def skillret(tmp_path: Path) -> Path:
    skills = [
        {"id": "s1", "name": "commit", "description": "reviews", "skill_md": "# Commit"},
        {"id": "s2", "name": "deploy", "description": "ships", "skill_md": ""},
    ]
    queries = [
        {"id": "a", "query": "review it", "skill_ids": ["s1"]},
        {"id": "b", "query": "ship it", "labels": [{"id": "s2", "relevance": 1}]},
        {"id": "c", "query": "both", "labels": '[{"id": "s1", "relevance": 2}]'},
    ]
    _write(tmp_path / "skills" / "test.jsonl", skills)
    _write(tmp_path / "queries" / "test.jsonl", queries)
    return tmp_path


def test_skillret_takes_the_labels_that_queries_carry(skillret: Path) -> None:
    loaded = load_skillret(skillret)
    assert loaded.texts == ("commit\nreviews\n# Commit", "deploy\nships")
    assert loaded.gold == {"a": ("s1",), "b": ("s2",), "c": ("s1",)}
    assert loaded.relevance["c"] == {"s1": 2}


def test_skillret_prefers_graded_labels_of_their_own_file(skillret: Path) -> None:
    graded = [
        {"query_id": "a", "skill_id": "s1", "relevance": 2},
        {"query_id": "a", "skill_id": "s2", "relevance": 1},
    ]
    _write(skillret / "qrels" / "test.jsonl", graded)
    loaded = load_skillret(skillret)
    assert loaded.gold == {"a": ("s1", "s2")}
    assert loaded.relevance == {"a": {"s1": 2, "s2": 1}}


# -- the hub -------------------------------------------------------------------------------------


def test_a_hub_name_without_the_package_names_the_pip_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for load in (load_skillret, load_sra_bench, load_skillrouter):
        with pytest.raises(MissingDependencyError, match="hub: pip install datasets"):
            load("someone/a-benchmark")


@pytest.mark.parametrize("source", ["./someone/a-benchmark", "/nowhere", Path("someone", "else")])
def test_what_is_meant_as_a_path_is_never_looked_up_on_the_hub(source: str | Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        load_skillret(source)
