"""The command ``skillsight evaluate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from skillsight_core._cache import CachedEncoder
from skillsight_core._encoders import SentenceTransformerEncoder
from skillsight_core.evaluation._beir import load_beir
from skillsight_core.evaluation._benchmark import Benchmark, ready_embeddings
from skillsight_core.evaluation._catalogue import ABLATIONS, DEFAULT_METHODS
from skillsight_core.evaluation._metrics import MEASURES
from skillsight_core.evaluation._published import load_skillret, load_skillrouter, load_sra_bench
from skillsight_core.evaluation._report import footnote, table, write_all
from skillsight_core.evaluation._results import Evaluation
from skillsight_core.evaluation._run import evaluate

_K_MEASURES = tuple(f"Recall@{k}" for k in range(1, 11))  # what the ablation of k looks at


def _option(help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, show_default=False, **more)


def command(
    beir: Annotated[Path | None, _option("Folder in BEIR layout, plain or gzipped.")] = None,
    distractors: Annotated[
        list[Path] | None, _option("Folder whose corpus is added; with --beir, repeatable.")
    ] = None,
    sra_bench: Annotated[str | None, _option("SRA-Bench: folder, or name on the hub.")] = None,
    skillrouter: Annotated[
        str | None, _option("SkillRouter's evaluation set: folder, or name on the hub.")
    ] = None,
    skillret: Annotated[str | None, _option("SkillRet: folder, or name on the hub.")] = None,
    part: Annotated[
        str | None,
        _option(
            "Which labels of BEIR or SkillRet (test), tier of SkillRouter (easy), data set of "
            "SRA-Bench (all)."
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        _option(
            f"Repeatable, as in bm25, paper:beta=2 or rerank:MODEL. [{', '.join(DEFAULT_METHODS)}]"
        ),
    ] = None,
    ablation: Annotated[
        list[str] | None,
        _option(f"Repeatable: {', '.join(ABLATIONS)} or all; instead of --method."),
    ] = None,
    measure: Annotated[list[str] | None, _option(f"Repeatable. [{', '.join(MEASURES)}]")] = None,
    embeddings: Annotated[
        list[Path] | None,
        _option("Ready vectors of the documents, .npy; one file for each corpus, in their order."),
    ] = None,
    query_embeddings: Annotated[Path | None, _option("Ready vectors of the queries, .npy.")] = None,
    model: Annotated[
        str | None, _option("Model for what has no vectors. [all-MiniLM-L6-v2]")
    ] = None,
    query_prompt: Annotated[
        str | None, _option("What stands before each query when it is encoded.")
    ] = None,
    limit: Annotated[int | None, _option("Evaluate the first so many queries only.")] = None,
    depth: Annotated[int, typer.Option(help="How many documents each method returns.")] = 20,
    output: Annotated[
        Path | None,
        _option(
            "Folder to write results.json, every query, and the runs for TREC and SR-Agents to.",
            "-o",
            "--output",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Compare ways of ranking on labelled queries.

    Give exactly one of --beir, --sra-bench, --skillrouter and --skillret.
    """
    groups = _groups(method, ablation, measure)
    benchmark = _benchmark(beir, distractors, sra_bench, skillrouter, skillret, part)
    evaluation = evaluate(
        benchmark,
        list(dict.fromkeys(name for methods, _ in groups.values() for name in methods)),
        encoder=CachedEncoder(SentenceTransformerEncoder(model)),
        embeddings=ready_embeddings(embeddings, benchmark) if embeddings else None,
        query_embeddings=np.load(query_embeddings) if query_embeddings else None,
        query_prompt=query_prompt,
        measures=list(dict.fromkeys(name for _, measures in groups.values() for name in measures)),
        depth=depth,
        limit=limit,
    )
    tables = {title: evaluation.only(*chosen) for title, chosen in groups.items()}
    if output is not None:
        write_all(evaluation, output)
    if as_json:
        found = {title: one.as_dict() for title, one in tables.items()}
        typer.echo(json.dumps(found if ablation else found["methods"], indent=2))
    else:
        _show(evaluation, tables)


Groups = dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
"""Methods and measures of each table."""


def _groups(
    method: list[str] | None, ablation: list[str] | None, measure: list[str] | None
) -> Groups:
    measures = tuple(measure or MEASURES)
    if not ablation:
        return {"methods": (tuple(dict.fromkeys(method or DEFAULT_METHODS)), measures)}
    if method:
        raise ValueError("evaluate: give --method or --ablation, got both")
    names = list(ABLATIONS) if "all" in ablation else ablation
    unknown = [name for name in names if name not in ABLATIONS]
    if unknown:
        raise ValueError(
            f"evaluate: --ablation must be one of {', '.join(ABLATIONS)} or all, got {unknown[0]!r}"
        )
    return {name: (ABLATIONS[name], _K_MEASURES if name == "k" else measures) for name in names}


def _benchmark(
    beir: Path | None,
    distractors: list[Path] | None,
    sra_bench: str | None,
    skillrouter: str | None,
    skillret: str | None,
    part: str | None,
) -> Benchmark:
    given = [one for one in (beir, sra_bench, skillrouter, skillret) if one is not None]
    if len(given) != 1 or (distractors and beir is None):
        raise ValueError(
            "evaluate: give one of --beir, --sra-bench, --skillrouter and --skillret, and "
            f"--distractors with --beir only, got {len(given)} of them"
        )
    if beir is not None:
        return load_beir(beir, distractors=distractors or (), split=part or "test")
    if sra_bench is not None:
        return load_sra_bench(sra_bench, datasets=[part] if part else ())
    if skillrouter is not None:
        return load_skillrouter(skillrouter, tier=part or "easy")
    return load_skillret(str(skillret), split=part or "test")


def _show(evaluation: Evaluation, tables: dict[str, Evaluation]) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, 100))
    benchmark = evaluation.benchmark
    console.print(
        f"{benchmark.name}: {len(benchmark.ids):,} documents, {len(benchmark.queries):,} queries",
        highlight=False,
    )
    for title, one in tables.items():
        console.print(table(one, None if title == "methods" else title))
    console.print(footnote(evaluation), highlight=False)
