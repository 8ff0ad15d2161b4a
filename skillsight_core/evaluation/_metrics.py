"""Measures of a ranking, computed by ir-measures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skillsight_core._errors import require
from skillsight_core.evaluation._benchmark import Benchmark

MEASURES = ("Recall@1", "Recall@3", "Recall@5", "Recall@10", "Hit@5", "MRR@10", "nDCG@10")

Run = Mapping[str, Sequence[tuple[str, float]]]
"""For each query its documents, best first, with their scores."""

_NAMES = {"Recall": "R", "Hit": "Success", "MRR": "RR"}  # as ir-measures calls them


def parsed(measure: str) -> Any:
    """The measure of ir-measures that a name stands for.

    Raises
    ------
    ValueError
        There is none.
    """
    library = require("ir_measures", extra="eval", purpose="measures of a ranking")
    name, at, cutoff = measure.partition("@")
    try:
        found = library.parse_measure(f"{_NAMES.get(name, name)}{at}{cutoff}")
        found.validate_params()
        return found
    except (ValueError, NameError, AssertionError):
        raise ValueError(
            f"evaluate: measures must be like 'Recall@5', 'Hit@5', 'MRR@10', 'nDCG@10' or another "
            f"name of ir-measures, got {measure!r}"
        ) from None


def measured(
    benchmark: Benchmark, run: Run, measures: Sequence[str]
) -> dict[str, NDArray[np.float64]]:
    """Value of each measure for each query, in the order of the benchmark, in [0, 1].

    nDCG takes the graded relevance as gain; every other measure counts gold documents. A query
    without any result counts 0.
    """
    library = require("ir_measures", extra="eval", purpose="measures of a ranking")
    position = {query: i for i, query in enumerate(benchmark.queries)}
    values = {measure: np.zeros(len(position)) for measure in measures}
    # The order of a run is its meaning: scores that tie, or differ only beyond single precision,
    # would be put in another order by their documents' ids.
    ranked = {
        query: {document: -float(place) for place, (document, _) in enumerate(run.get(query, ()))}
        for query in position
    }
    binary = {query: dict.fromkeys(ids, 1) for query, ids in benchmark.gold.items()}
    for graded, labels in ((True, benchmark.relevance), (False, binary)):
        wanted = {parsed(m): m for m in measures if bool(re.match("nDCG", m)) is graded}
        qrels = {query: dict(labels[query]) for query in position}
        for metric in library.iter_calc(list(wanted), qrels, ranked) if wanted else ():
            values[wanted[metric.measure]][position[metric.query_id]] = metric.value
    return values
