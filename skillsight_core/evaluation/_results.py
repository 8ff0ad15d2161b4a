"""What an evaluation found, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skillsight_core.evaluation._benchmark import Benchmark
from skillsight_core.evaluation._significance import paired_randomisation

DECISIVE = "MRR@10"  # what wins and losses are counted by, unless it was not measured


@dataclass(frozen=True)
class MethodResult:
    """How one method did.

    Attributes
    ----------
    method : str
        Its name.
    values : mapping of str to ndarray of shape (queries,), float64
        Each measure for each query, in [0, 1], in the order of the benchmark.
    run : mapping of str to sequence of (str, float)
        For each query the ids and scores found, best first.
    setup_seconds : float
        What was done once before the first query. What methods share (vectors, the library's
        words) counts for the first of them that needs it.
    ms_per_query : float
        Milliseconds from an encoded query to its ranking, mean over the queries.
    """

    method: str
    values: Mapping[str, NDArray[np.float64]] = field(repr=False)
    run: Mapping[str, Sequence[tuple[str, float]]] = field(repr=False)
    setup_seconds: float
    ms_per_query: float

    @property
    def metrics(self) -> dict[str, float]:
        """Mean of each measure over the queries."""
        return {measure: float(values.mean()) for measure, values in self.values.items()}


@dataclass(frozen=True)
class Comparison:
    """One method against the baseline on the same queries, by one measure.

    Attributes
    ----------
    measure : str
        What is compared.
    wins, losses : int
        On how many queries the method is better, and worse.
    p_value : float
        Of the paired randomisation test, two-sided, not corrected for the number of methods.
    """

    measure: str
    wins: int
    losses: int
    p_value: float


@dataclass(frozen=True)
class Evaluation:
    """Several methods on one benchmark.

    Attributes
    ----------
    benchmark : Benchmark
        What was asked of what, as it was evaluated.
    results : tuple of MethodResult
        In the order asked for.
    baseline : str or None
        The method that the others are compared with; None when it was not among them.
    conditions : mapping of str to str, int or None
        What else the figures depend on.
    """

    benchmark: Benchmark
    results: tuple[MethodResult, ...]
    baseline: str | None
    conditions: Mapping[str, str | int | None]

    def __getitem__(self, method: str) -> MethodResult:
        for result in self.results:
            if result.method == method:
                return result
        raise KeyError(method)

    def __iter__(self) -> Iterator[MethodResult]:
        return iter(self.results)

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(self.results[0].values)

    def compared(self, method: str) -> Comparison | None:
        """Compare a method with the baseline; None for the baseline itself, or without one."""
        if self.baseline in (None, method):
            return None
        measure = DECISIVE if DECISIVE in self.measures else self.measures[0]
        values = self[method].values[measure]
        others = self[str(self.baseline)].values[measure]
        return Comparison(
            measure,
            int((values > others).sum()),
            int((values < others).sum()),
            paired_randomisation(values, others),
        )

    def only(self, methods: Sequence[str], measures: Sequence[str]) -> Self:
        """The same evaluation with some of the methods and measures."""
        chosen = [self[method] for method in methods]
        results = tuple(
            replace(result, values={m: result.values[m] for m in measures}) for result in chosen
        )
        baseline = self.baseline if self.baseline in methods else None
        return replace(self, results=results, baseline=baseline)

    def as_dict(self) -> dict[str, Any]:
        """Everything but the single queries, as plain JSON types; measures in [0, 1]."""
        methods = []
        for result in self.results:
            compared = self.compared(result.method)
            methods.append(
                {
                    "method": result.method,
                    "metrics": {m: round(value, 6) for m, value in result.metrics.items()},
                    "ms_per_query": round(result.ms_per_query, 3),
                    "setup_seconds": round(result.setup_seconds, 3),
                    "against_baseline": None if compared is None else vars(compared),
                }
            )
        return {
            "benchmark": self.benchmark.name,
            "documents": len(self.benchmark.ids),
            "queries": len(self.benchmark.queries),
            "baseline": self.baseline,
            "conditions": dict(self.conditions),
            "methods": methods,
        }
