"""Evaluations for people and for other programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skillsight_core._errors import require
from skillsight_core.evaluation._results import Evaluation, MethodResult


def table(evaluation: Evaluation, title: str | None = None) -> Any:
    """A table for `rich`: measures in percent, best of each column bold."""
    heads, rows = _cells(evaluation)
    best = {
        column: max(float(row[column]) for row in rows)
        for column in range(1, 1 + len(evaluation.measures))
    }
    rich = require("rich.table", purpose="tables")
    drawn = rich.Table(title=title, title_justify="left", box=rich.box.SIMPLE, padding=(0, 1, 0, 0))
    for column, head in enumerate(heads):
        drawn.add_column(head, justify="left" if column == 0 else "right", no_wrap=True)
    for row in rows:
        drawn.add_row(
            *(
                f"[bold]{cell}[/]" if column in best and float(cell) == best[column] else cell
                for column, cell in enumerate(row)
            )
        )
    return drawn


def markdown(evaluation: Evaluation) -> str:
    """The same table in Markdown."""
    heads, rows = _cells(evaluation)
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [heads, rule, *rows])


def footnote(evaluation: Evaluation) -> str:
    """What the columns of the tables mean."""
    lines = [
        "Measures in percent, R: Recall; ms: milliseconds for one query that is encoded already."
    ]
    compared = [evaluation.compared(result.method) for result in evaluation]
    measure = next((one.measure for one in compared if one), None)
    if measure:
        lines.append(
            f"won:lost: queries on which {measure} is better and worse than with "
            f"{evaluation.baseline}; p: paired randomisation test of that difference, two-sided."
        )
    return " ".join(lines)


def _cells(evaluation: Evaluation) -> tuple[list[str], list[list[str]]]:
    heads = ["method", *(m.replace("Recall", "R") for m in evaluation.measures), "ms"]
    if evaluation.baseline is not None:
        heads += ["won:lost", "p"]
    return heads, [_row(evaluation, result) for result in evaluation]


def _row(evaluation: Evaluation, result: MethodResult) -> list[str]:
    cells = [result.method, *(f"{100 * value:.1f}" for value in result.metrics.values())]
    cells.append(f"{result.ms_per_query:.1f}")
    compared = evaluation.compared(result.method)
    if compared is not None:
        cells += [f"{compared.wins}:{compared.losses}", f"{compared.p_value:.4f}"]
    elif evaluation.baseline is not None:
        cells += ["", ""]
    return cells


# -- files ---------------------------------------------------------------------------------------


def write_all(evaluation: Evaluation, folder: Path) -> None:
    """Write everything there is to a folder.

    ``results.json`` (what `Evaluation.as_dict` gives), ``queries.jsonl`` (every query with what
    each method made of it), ``trec/<method>.run`` and ``sr-agents/<method>.json``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(_json(evaluation.as_dict()), encoding="utf-8")
    with (folder / "queries.jsonl").open("w", encoding="utf-8") as file:
        for record in per_query(evaluation):
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    for result in evaluation:
        name = re.sub(r"[^\w.+=,-]+", "_", result.method)
        write_trec(result, folder / "trec" / f"{name}.run")
        write_sr_agents(evaluation, result, folder / "sr-agents" / f"{name}.json")


def per_query(evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    """Every query with its measures, the rank of the first gold document and the first three."""
    benchmark = evaluation.benchmark
    for number, (query, text) in enumerate(benchmark.queries.items()):
        gold = set(benchmark.gold[query])
        methods = {}
        for result in evaluation:
            ids = [id_ for id_, _ in result.run[query]]
            ranks = (rank for rank, id_ in enumerate(ids, 1) if id_ in gold)
            methods[result.method] = {
                "gold_rank": next(ranks, None),
                "first": ids[:3],
                **{m: round(float(v[number]), 6) for m, v in result.values.items()},
            }
        yield {"id": query, "query": text, "gold": sorted(gold), "methods": methods}


def write_trec(result: MethodResult, path: Path) -> None:
    """Write a run in the format of trec_eval: ``query Q0 document rank score method``.

    The score is the negative rank: trec_eval orders by score and breaks ties by id, and the order
    is to stay.

    Raises
    ------
    ValueError
        An id or the name has white space, which the format cannot carry.
    """
    tag = result.method
    lines = []
    for query, ranking in result.run.items():
        for rank, (document, _) in enumerate(ranking, 1):
            fields = [query, "Q0", document, str(rank), str(-rank), tag]
            if len(" ".join(fields).split()) != len(fields):
                raise ValueError(
                    f"write_trec: ids must have no white space in a TREC run, got query {query!r}, "
                    f"document {document!r}"
                )
            lines.append(" ".join(fields) + "\n")
    _parent_of(path).write_text("".join(lines), encoding="utf-8")


def write_sr_agents(evaluation: Evaluation, result: MethodResult, path: Path) -> None:
    """Write a run as SR-Agents' retrieval stage does, for its later stages to read."""
    benchmark = evaluation.benchmark
    records = [
        {
            "instance_id": query,
            "gold_skill_ids": list(benchmark.gold[query]),
            "retrieved": [{"skill_id": id_, "score": score} for id_, score in ranking],
        }
        for query, ranking in result.run.items()
    ]
    metadata = {
        "dataset": benchmark.name,
        "retriever": result.method,
        "top_k": evaluation.conditions["depth"],
        "corpus_size": len(benchmark.ids),
        "n_queries": len(records),
        "extra": dict(evaluation.conditions),
    }
    content = {"metadata": metadata, "metrics": result.metrics, "results": records}
    _parent_of(path).write_text(_json(content), encoding="utf-8")


def _json(content: object) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _parent_of(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
