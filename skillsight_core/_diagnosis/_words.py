"""The words of a library: which are generic, and how their IDF is spread."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skillsight_core._diagnosis._model import Word, Words
from skillsight_core._library import Library

_BINS = 40


def measure(library: Library) -> Words:
    """Measure the words of a compact library."""
    statistics = library.statistics
    df = statistics.df
    tokens = vocabulary(library)
    idf = statistics.idf(df)
    generic = np.flatnonzero(statistics.is_generic(df))
    generic = generic[np.lexsort((generic, -df[generic]))]
    total = int(df.sum())
    edges = _edges(idf, statistics.threshold) if total else np.empty(0)
    counts = np.histogram(idf, edges, weights=df)[0] if total else np.empty(0)
    return Words(
        n_tokens=len(tokens),
        threshold=statistics.threshold if total else None,
        generic=tuple(Word(tokens[n], int(df[n]), float(idf[n])) for n in generic.tolist()),
        generic_share=float(df[generic].sum() / total) if total else 0.0,
        edges=tuple(edges.tolist()),
        occurrences=tuple(map(int, counts)),
    )


def _edges(idf: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """Borders of about forty bins, the threshold among them: no bin is of both kinds."""
    low, high = float(idf.min()), float(idf.max())
    if low == high:
        return np.array([low, low + 1.0])
    below = min(max(round(_BINS * (threshold - low) / (high - low)), 1), _BINS - 1)
    lower = np.linspace(low, threshold, below, endpoint=False)
    if threshold == high:  # a bin may not be empty of width
        return np.append(lower, [threshold, high + 1.0 / _BINS])
    return np.append(lower, np.linspace(threshold, high, _BINS - below + 1))


def vocabulary(library: Library) -> list[str]:
    """Tokens by number."""
    return list(library.vocabulary)[: len(library.statistics.df)]
