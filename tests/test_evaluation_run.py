"""The evaluation as a whole: results, files, the command."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from skillsight_core import SkillSightWarning
from skillsight_core._cli import app
from skillsight_core.evaluation import (
    ABLATIONS,
    DEFAULT_METHODS,
    MEASURES,
    Benchmark,
    evaluate,
    load_beir,
    load_sra_bench,
    markdown,
    write_all,
    write_sr_agents,
    write_trec,
)
from tests.fakes import HashEncoder

ir_measures = pytest.importorskip("ir_measures")
pytest.importorskip("bm25s")

TEXTS = {
    "merge": "merge pdf files into one file",
    "split": "split a pdf file into pages",
    "review": "review a pull request",
    "deploy": "deploy a service to the cluster",
    "chart": "draw a chart of the sales",
    "forecast": "forecast the sales of next week",
    "invoice": "write an invoice to a customer",
}
QUERIES = {
    "q1": "merge two pdf files",
    "q2": "forecast sales for me",
    "q3": "please write an invoice",
    "q4": "review it",
}
GOLD = {"q1": ["merge"], "q2": ["forecast", "chart"], "q3": ["invoice"], "q4": ["review"]}


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    folder = tmp_path / "office"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": id_, "title": id_, "text": text} for id_, text in TEXTS.items()]
    queries = [{"_id": id_, "text": text} for id_, text in QUERIES.items()]
    for name, records in (("corpus", corpus), ("queries", queries)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines)
    rows = "".join(f"{q}\t{id_}\t1\n" for q, ids in GOLD.items() for id_ in ids)
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows)
    return folder


@pytest.fixture
def vectors(beir: Path, tmp_path: Path) -> dict[str, Path]:
    """Ready vectors, as files."""
    loaded = load_beir(beir)
    files = {"documents": tmp_path / "documents.npy", "queries": tmp_path / "queries.npy"}
    np.save(files["documents"], HashEncoder().encode(list(loaded.texts)))
    np.save(files["queries"], HashEncoder().encode(list(loaded.queries.values())))
    return files


# -- evaluate ------------------------------------------------------------------------------------


def test_a_folder_is_evaluated_by_all_methods_unless_told_otherwise(beir: Path) -> None:
    found = evaluate(beir, encoder=HashEncoder())
    assert tuple(result.method for result in found) == DEFAULT_METHODS
    assert found.measures == MEASURES
    for result in found:
        assert list(result.run) == list(QUERIES)
        assert all(len(values) == len(QUERIES) for values in result.values.values())
        assert result.ms_per_query > 0


def test_metrics_are_the_means_over_the_queries(beir: Path) -> None:
    result = evaluate(beir, ["bm25"])["bm25"]
    assert result.metrics["MRR@10"] == pytest.approx(np.mean(result.values["MRR@10"]))
    assert result.values["Recall@1"].tolist() == [1.0, 0.5, 1.0, 1.0]


def test_words_alone_need_no_encoder(beir: Path) -> None:
    class Refusing:
        def encode(self, texts: list[str], /) -> Any:
            raise AssertionError

    found = evaluate(beir, ["bm25"], encoder=Refusing())
    assert found.conditions["encoder"] == "ready embeddings"


def test_ready_embeddings_are_used_in_place_of_the_encoder(beir: Path) -> None:
    encoder = HashEncoder()
    loaded = load_beir(beir)
    documents = encoder.encode(list(loaded.texts))
    queries = encoder.encode(list(loaded.queries.values()))
    calls = encoder.calls
    ready = evaluate(
        loaded, ["paper"], encoder=encoder, embeddings=documents, query_embeddings=queries
    )
    assert encoder.calls == calls
    assert ready["paper"].run == evaluate(loaded, ["paper"], encoder=encoder)["paper"].run


def test_embeddings_that_do_not_fit_are_refused(beir: Path) -> None:
    with pytest.raises(ValueError, match="embeddings must have one row for each text, got 3 rows"):
        evaluate(beir, ["dense"], encoder=HashEncoder(), embeddings=np.eye(3, 64))
    with pytest.raises(ValueError, match="evaluate, queries: embeddings must have 7 dimensions"):
        evaluate(beir, ["dense"], encoder=HashEncoder(), embeddings=np.eye(7))


def test_the_query_prompt_stands_before_each_query_and_no_document(beir: Path) -> None:
    seen: list[str] = []

    class Listening(HashEncoder):
        def encode(self, texts: list[str], /) -> Any:
            seen.extend(texts)
            return super().encode(texts)

    evaluate(beir, ["dense"], encoder=Listening(), query_prompt="query: ")
    assert seen == [*load_beir(beir).texts, *(f"query: {text}" for text in QUERIES.values())]


def test_a_limit_evaluates_the_first_queries_also_with_ready_vectors_of_all(beir: Path) -> None:
    queries = HashEncoder().encode(list(QUERIES.values()))
    whole = evaluate(beir, ["dense"], encoder=HashEncoder())
    part = evaluate(beir, ["dense"], encoder=HashEncoder(), query_embeddings=queries, limit=2)
    assert list(part["dense"].run) == ["q1", "q2"]
    assert all(part["dense"].run[q] == whole["dense"].run[q] for q in ("q1", "q2"))


def test_depth_is_how_many_documents_each_method_returns(beir: Path) -> None:
    deep, shallow = (evaluate(beir, encoder=HashEncoder(), depth=depth) for depth in (100, 3))
    for method in DEFAULT_METHODS:
        for query in QUERIES:
            assert shallow[method].run[query] == deep[method].run[query][:3]
            assert len(deep[method].run[query]) <= len(TEXTS)


def test_many_queries_get_the_same_rankings_as_few(beir: Path) -> None:
    """Queries are ranked in blocks, in turns; each still gets its own ranking."""
    loaded = load_beir(beir)
    rounds = 40
    repeated = Benchmark(
        name="repeated",
        ids=loaded.ids,
        texts=loaded.texts,
        sizes=loaded.sizes,
        queries={f"{q}-{i}": text for i in range(rounds) for q, text in loaded.queries.items()},
        gold={f"{q}-{i}": ids for i in range(rounds) for q, ids in loaded.gold.items()},
        relevance={f"{q}-{i}": r for i in range(rounds) for q, r in loaded.relevance.items()},
    )
    methods = ["bm25", "dense", "default"]
    few, many = (evaluate(one, methods, encoder=HashEncoder()) for one in (loaded, repeated))
    for method, query, i in itertools.product(methods, QUERIES, (0, rounds - 1)):
        ranked = [id_ for id_, _ in many[method].run[f"{query}-{i}"]]
        assert ranked == [id_ for id_, _ in few[method].run[query]]
    assert many["bm25"].metrics == pytest.approx(few["bm25"].metrics)


def test_wins_and_losses_are_counted_against_the_baseline(beir: Path) -> None:
    found = evaluate(beir, ["dense", "bm25"], encoder=HashEncoder())
    dense, bm25 = (found[method].values["MRR@10"] for method in ("dense", "bm25"))
    compared = found.compared("bm25")
    assert compared is not None
    assert compared.measure == "MRR@10"
    assert (compared.wins, compared.losses) == (
        int((bm25 > dense).sum()),
        int((bm25 < dense).sum()),
    )
    assert 0 < compared.p_value <= 1
    assert found.compared("dense") is None


def test_without_its_baseline_nothing_is_compared(beir: Path) -> None:
    found = evaluate(beir, ["bm25", "rrf"], encoder=HashEncoder())
    assert found.baseline is None
    assert found.compared("rrf") is None
    assert evaluate(beir, ["bm25", "rrf"], encoder=HashEncoder(), baseline="bm25").compared("rrf")


def test_a_library_too_small_for_a_background_is_said_to_be(beir: Path) -> None:
    loaded = load_beir(beir)
    small = Benchmark(
        "small", loaded.ids[:3], loaded.texts[:3], (3,), {"q1": "merge"},
        {"q1": ("merge",)}, {"q1": {"merge": 1}},
    )  # fmt: skip
    with pytest.warns(SkillSightWarning, match="3 skills are too few to have a background"):
        evaluate(small, ["paper"], encoder=HashEncoder())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": []}, "methods and measures must not be empty"),
        ({"measures": []}, "methods and measures must not be empty"),
        ({"measures": ["Recall"]}, "measures must be like 'Recall@5'"),
        ({"depth": 0}, "evaluate: depth must be an integer >= 1, got 0"),
        ({"limit": -1}, "evaluate: limit must be an integer >= 1, got -1"),
    ],
)
def test_wrong_arguments_are_named_before_anything_is_encoded(
    options: dict[str, Any], message: str, beir: Path
) -> None:
    encoder = HashEncoder()
    with pytest.raises(ValueError, match=message):
        evaluate(beir, encoder=encoder, **options)
    assert encoder.calls == 0


def test_the_published_benchmarks_run_like_any_other(tmp_path: Path) -> None:
    skills = [{"skill_id": id_, "name": id_, "description": t} for id_, t in TEXTS.items()]
    asked = [
        {"instance_id": q, "question": text, "skill_annotations": GOLD[q]}
        for q, text in QUERIES.items()
    ]
    (tmp_path / "instances").mkdir()
    (tmp_path / "corpus.json").write_text(json.dumps(skills))
    (tmp_path / "instances" / "office.json").write_text(json.dumps(asked))
    found = evaluate(load_sra_bench(tmp_path), ["bm25"])
    assert found["bm25"].metrics["Hit@5"] == 1.0


# -- files ---------------------------------------------------------------------------------------


def test_a_trec_run_read_by_ir_measures_gives_the_same_measures(beir: Path, tmp_path: Path) -> None:
    found = evaluate(beir, ["rrf"], encoder=HashEncoder())
    write_trec(found["rrf"], tmp_path / "runs" / "rrf.run")
    lines = (tmp_path / "runs" / "rrf.run").read_text().splitlines()
    first = found["rrf"].run["q1"][0][0]
    assert lines[0] == f"q1 Q0 {first} 1 -1 rrf"
    run = ir_measures.read_trec_run(str(tmp_path / "runs" / "rrf.run"))
    qrels = {query: dict.fromkeys(ids, 1) for query, ids in GOLD.items()}
    read = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], qrels, run)
    assert read[ir_measures.nDCG @ 10] == pytest.approx(found["rrf"].metrics["nDCG@10"])


def test_a_trec_run_refuses_ids_with_white_space(beir: Path, tmp_path: Path) -> None:
    loaded = load_beir(beir)
    spaced = Benchmark(
        "spaced", tuple(f"the {id_}" for id_ in loaded.ids), loaded.texts, loaded.sizes,
        loaded.queries, {q: (f"the {ids[0]}",) for q, ids in loaded.gold.items()},
        loaded.relevance,
    )  # fmt: skip
    found = evaluate(spaced, ["bm25"], measures=["Hit@5"])
    with pytest.raises(ValueError, match=r"must have no white space .* document 'the merge'"):
        write_trec(found["bm25"], tmp_path / "bm25.run")


def test_sr_agents_finds_every_instance_with_its_gold_and_retrieved_skills(
    beir: Path, tmp_path: Path
) -> None:
    found = evaluate(beir, ["dense"], encoder=HashEncoder(), depth=3)
    write_sr_agents(found, found["dense"], tmp_path / "dense.json")
    content = json.loads((tmp_path / "dense.json").read_text())
    assert content["metadata"]["retriever"] == "dense"
    assert content["metadata"]["top_k"] == 3
    assert content["metadata"]["corpus_size"] == len(TEXTS)
    assert content["metrics"] == found["dense"].metrics
    lookup = {record["instance_id"]: record for record in content["results"]}
    assert list(lookup) == list(QUERIES)
    assert lookup["q2"]["gold_skill_ids"] == ["forecast", "chart"]
    for query, record in lookup.items():
        retrieved = [(one["skill_id"], one["score"]) for one in record["retrieved"]]
        assert retrieved == list(found["dense"].run[query])


def test_everything_is_written_to_one_folder(beir: Path, tmp_path: Path) -> None:
    found = evaluate(beir, ["dense", "paper:beta=2", "bm25"], encoder=HashEncoder())
    write_all(found, tmp_path / "out")
    files = {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.*")}
    names = ["dense", "paper_beta=2", "bm25"]
    kinds = (("trec", "run"), ("sr-agents", "json"))
    runs = {f"{kind}/{name}.{end}" for name in names for kind, end in kinds}
    assert files == {"results.json", "queries.jsonl", *runs}
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == found.as_dict()
    lines = (tmp_path / "out" / "queries.jsonl").read_text().splitlines()
    second = json.loads(lines[1])
    assert second["query"] == QUERIES["q2"]
    assert second["gold"] == ["chart", "forecast"]
    ranking = [id_ for id_, _ in found["bm25"].run["q2"]]
    assert second["methods"]["bm25"]["first"] == ranking[:3]
    assert second["methods"]["bm25"]["gold_rank"] == 1 + min(map(ranking.index, GOLD["q2"]))
    assert second["methods"]["bm25"]["MRR@10"] == 1 / second["methods"]["bm25"]["gold_rank"]


def test_the_markdown_table_has_a_row_for_each_method_in_percent(beir: Path) -> None:
    found = evaluate(beir, ["dense", "bm25"], encoder=HashEncoder(), measures=["Recall@1"])
    head, rule, *rows = markdown(found).splitlines()
    assert head == "| method | R@1 | ms | won:lost | p |"
    assert rule == "| --- | ---: | ---: | ---: | ---: |"
    assert [row.split(" | ")[0] for row in rows] == ["| dense", "| bm25"]
    assert rows[1].split(" | ")[1] == f"{100 * found['bm25'].metrics['Recall@1']:.1f}"


# -- the command ---------------------------------------------------------------------------------


def _command(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["evaluate", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_the_command_prints_a_table(beir: Path, vectors: dict[str, Path]) -> None:
    ready = ("--embeddings", vectors["documents"], "--query-embeddings", vectors["queries"])
    shown = _command("--beir", beir, *ready)
    assert "office: 7 documents, 4 queries" in shown
    for method in DEFAULT_METHODS:
        assert f"\n {method} " in shown
    assert "paired randomisation test" in shown


def test_the_command_prints_json_that_agrees_with_python(
    beir: Path, vectors: dict[str, Path]
) -> None:
    ready = ("--embeddings", vectors["documents"], "--query-embeddings", vectors["queries"])
    methods = ("--method", "dense", "--method", "paper")
    found = json.loads(_command("--beir", beir, *ready, *methods, "--json", "--limit", 3))
    expected = evaluate(beir, ["dense", "paper"], encoder=HashEncoder(), limit=3)
    assert (found["documents"], found["queries"]) == (7, 3)
    assert [one["method"] for one in found["methods"]] == ["dense", "paper"]
    assert found["methods"][1]["metrics"] == pytest.approx(expected["paper"].metrics, abs=1e-5)
    assert found["methods"][1]["against_baseline"]["measure"] == "MRR@10"


def test_the_command_takes_one_file_of_vectors_for_each_corpus(
    beir: Path, vectors: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "corpus.jsonl").write_text('{"_id": "x", "title": "y", "text": "z"}\n')
    np.save(tmp_path / "more.npy", HashEncoder().encode(["y\nz"]))
    found = _command(
        "--beir", beir, "--distractors", tmp_path / "more", "--embeddings", vectors["documents"],
        "--embeddings", tmp_path / "more.npy", "--query-embeddings", vectors["queries"],
        "--method", "dense", "--json",
    )  # fmt: skip
    assert json.loads(found)["documents"] == 8


def test_all_ablations_are_one_command(
    beir: Path, vectors: dict[str, Path], tmp_path: Path
) -> None:
    ready = ("--embeddings", vectors["documents"], "--query-embeddings", vectors["queries"])
    found = json.loads(
        _command("--beir", beir, *ready, "--ablation", "all", "--json", "-o", tmp_path / "out")
    )
    assert list(found) == list(ABLATIONS)
    for name, one in found.items():
        assert [method["method"] for method in one["methods"]] == list(ABLATIONS[name])
    assert list(found["k"]["methods"][0]["metrics"]) == [f"Recall@{k}" for k in range(1, 11)]
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert {one["method"] for one in written["methods"]} == {
        method for methods in ABLATIONS.values() for method in methods
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give one of --beir, --sra-bench, --skillrouter and --skillret"),
        (("--skillret", "a", "--sra-bench", "b"), "got 2 of them"),
        (("--skillret", "a/b", "--distractors", "c"), "--distractors with --beir only"),
        (("--beir", "x", "--ablation", "gamma"), "--ablation must be one of .*, got 'gamma'"),
        (
            ("--beir", "x", "--ablation", "k", "--method", "bm25"),
            "--method or --ablation, got both",
        ),
        (("--beir", "/nowhere"), r"/nowhere/corpus\.jsonl: no such file"),
    ],
)
def test_wrong_usage_of_the_command_is_one_line_and_status_2(
    arguments: tuple[str, ...], message: str
) -> None:
    code = "import sys; from skillsight_core._cli import main; sys.argv = sys.argv[1:]; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "skillsight", "evaluate", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert re.search(message, done.stderr)
