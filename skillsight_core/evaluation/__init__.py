"""Evaluation: labelled benchmarks, methods to compare, measures, reports."""

from skillsight_core.evaluation._beir import load_beir
from skillsight_core.evaluation._benchmark import Benchmark, ready_embeddings
from skillsight_core.evaluation._catalogue import ABLATIONS, DEFAULT_METHODS
from skillsight_core.evaluation._metrics import MEASURES
from skillsight_core.evaluation._published import load_skillret, load_skillrouter, load_sra_bench
from skillsight_core.evaluation._report import markdown, write_all, write_sr_agents, write_trec
from skillsight_core.evaluation._results import Comparison, Evaluation, MethodResult
from skillsight_core.evaluation._run import evaluate

__all__ = [
    "ABLATIONS",
    "DEFAULT_METHODS",
    "MEASURES",
    "Benchmark",
    "Comparison",
    "Evaluation",
    "MethodResult",
    "evaluate",
    "load_beir",
    "load_skillret",
    "load_skillrouter",
    "load_sra_bench",
    "markdown",
    "ready_embeddings",
    "write_all",
    "write_sr_agents",
    "write_trec",
]
