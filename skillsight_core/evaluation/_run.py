"""The evaluation itself: every method ranks every query, side by side."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import TypeVar

from numpy.typing import ArrayLike

from skillsight_core._cache import CachedEncoder
from skillsight_core._encoders import Encoder, SentenceTransformerEncoder, encoder_name
from skillsight_core._errors import require
from skillsight_core._validation import check_count
from skillsight_core.evaluation._beir import load_beir
from skillsight_core.evaluation._benchmark import Benchmark
from skillsight_core.evaluation._catalogue import DEFAULT_METHODS, find_method
from skillsight_core.evaluation._methods import Rank, Ranking, Setting
from skillsight_core.evaluation._metrics import MEASURES, measured, parsed
from skillsight_core.evaluation._results import Evaluation, MethodResult

Step = TypeVar("Step")

_BLOCK = 64  # queries that one method ranks before it is the next one's turn


def evaluate(
    benchmark: Benchmark | str | PathLike[str],
    methods: Sequence[str] = DEFAULT_METHODS,
    *,
    encoder: Encoder | None = None,
    embeddings: ArrayLike | None = None,
    query_embeddings: ArrayLike | None = None,
    query_prompt: str | None = None,
    measures: Sequence[str] = MEASURES,
    baseline: str = "dense",
    depth: int = 20,
    limit: int | None = None,
) -> Evaluation:
    """Rank the queries of a benchmark by several methods and measure the rankings.

    Parameters
    ----------
    benchmark : Benchmark or path-like
        What to rank; a path is read by `load_beir`.
    methods : sequence of str
        Names of methods. Of SkillSight "dense" (plain), "sbc", "lec", "dense+lec", "paper" and
        "default", each also with parameters, as "paper:beta=2,pool_size=100"; the baselines
        "bm25", "rrf", "abtt" and "bm25+sbc"; the neural systems "embed", "rerank", "splade",
        "colbert" and "bge-m3", each also with a model, as "rerank:Qwen/Qwen3-Reranker-0.6B".
    encoder : Encoder, optional
        Encodes what has no ready embeddings; by default all-MiniLM-L6-v2 with a cache.
    embeddings : array-like of shape (n, m), optional
        Vectors of the documents, in their order.
    query_embeddings : array-like of shape (q, m), optional
        Vectors of the queries, in their order, those beyond ``limit`` left out or not.
    query_prompt : str, optional
        What stands before each query when it is encoded; none by default. For "embed" by default
        the prompt that the model has.
    measures : sequence of str
        "Recall@k", "Hit@k", "MRR@k", "nDCG@k", or what ir-measures calls its own.
    baseline : str, default "dense"
        The method that the others are compared with.
    depth : int, default 20
        How many documents a method returns; also how many "rerank" reads.
    limit : int, optional
        Evaluate the first so many queries only.

    Returns
    -------
    Evaluation
        Results of every method, in the order of ``methods``.

    Raises
    ------
    ValueError
        A method, a measure or a number is not as said, or embeddings do not fit.
    MissingDependencyError
        A method needs a package that is not installed.
    OSError
        The model of a neural system is not there.

    Notes
    -----
    Times are taken in turns: the methods rank 64 queries each, then the next 64, and another one
    begins each time, so that whatever else the machine does meets them all alike. The encoding of
    the query is not in them, since it is the same for all.
    """
    if not isinstance(benchmark, Benchmark):
        benchmark = load_beir(benchmark)
    n_queries = len(benchmark.queries)
    benchmark = benchmark.limited(limit)
    depth = check_count(depth, "depth", at_least=1, of="evaluate")
    prepare = {name: find_method(name) for name in methods}
    if not prepare or not measures:
        raise ValueError("evaluate: methods and measures must not be empty")
    for measure in measures:
        parsed(measure)
    if query_embeddings is not None and len(query_embeddings) == n_queries:  # type: ignore[arg-type]
        query_embeddings = query_embeddings[: len(benchmark.queries)]  # type: ignore[index]
    setting = Setting(
        benchmark,
        lambda: encoder or CachedEncoder(SentenceTransformerEncoder()),
        embeddings,
        query_embeddings,
        query_prompt,
        depth,
    )
    ranks: dict[str, Rank] = {}
    setup: dict[str, float] = {}
    for name, method in _watched(list(prepare.items()), "Preparing"):
        start = time.perf_counter()
        ranks[name] = method(setting)
        setup[name] = time.perf_counter() - start
    runs, seconds = _ranked(ranks, len(setting.queries))
    results = []
    for name in ranks:
        run = dict(zip(benchmark.queries, runs[name], strict=True))
        per_query = seconds[name] / len(setting.queries)
        values = measured(benchmark, run, measures)
        results.append(MethodResult(name, values, run, setup[name], per_query * 1000.0))
    used = "encoder" in vars(setting)
    return Evaluation(
        benchmark,
        tuple(results),
        baseline if baseline in prepare else None,
        {
            "encoder": encoder_name(setting.encoder) if used else "ready embeddings",
            "query_prompt": query_prompt,
            "depth": depth,
        },
    )


def _ranked(
    ranks: dict[str, Rank], n_queries: int
) -> tuple[dict[str, list[Ranking]], dict[str, float]]:
    """Rankings of every query by every method, and the seconds each method took."""
    runs: dict[str, list[Ranking]] = {name: [] for name in ranks}
    seconds = dict.fromkeys(ranks, 0.0)
    names = list(ranks)
    for start in _watched(range(0, n_queries, _BLOCK), "Ranking"):
        part = slice(start, start + _BLOCK)
        for name in names:
            begin = time.perf_counter()
            ranked = ranks[name](part)
            seconds[name] += time.perf_counter() - begin
            runs[name] += ranked
        names = [*names[1:], names[0]]
    return runs, seconds


def _watched(steps: Sequence[Step], doing: str) -> Iterator[Step]:
    """The steps, with a bar on stderr when someone is watching."""
    if not sys.stderr.isatty():
        yield from steps
        return
    rich = require("rich.progress", purpose="progress bars")
    console = require("rich.console", purpose="progress bars").Console(stderr=True)
    yield from rich.track(steps, doing, console=console, transient=True)
