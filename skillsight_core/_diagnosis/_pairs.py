"""Pairs of skills that are easily taken for one another, and the words that tell them apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skillsight_core._background import Background, Floats
from skillsight_core._diagnosis._model import Pair, Pairs
from skillsight_core._diagnosis._words import vocabulary
from skillsight_core._library import Library

NEAR = 0.95  # cosine without background from which two skills count as near-duplicates

_BLOCK = 512  # rows compared at once: 25,000 skills take 50 MB
_WORDS = 5  # named on each side


def measure(library: Library, background: Background, *, beta: float, most: int) -> Pairs:
    """Pair every skill of a compact library with its nearest other one."""
    if library.n_rows < 2:
        return Pairs((), 0, (), NEAR)
    (segment,) = library.segments
    rest = background.project(segment.embeddings)
    norms = np.linalg.norm(rest, axis=1, keepdims=True)
    rest = np.divide(rest, norms, out=np.zeros_like(rest), where=norms > 1e-6)
    others, cosines = _nearest(rest)
    rows = np.arange(len(rest))
    ends = np.sort(np.stack([rows, others], axis=1), axis=1)
    ends, first = np.unique(ends, axis=0, return_index=True)
    cosines = cosines[first]
    order = np.lexsort((ends[:, 1], ends[:, 0], -cosines))
    near = cosines[order] >= NEAR
    weights = library.statistics.weight(library.statistics.df, beta)
    tokens = vocabulary(library)

    def described(which: NDArray[np.intp]) -> tuple[Pair, ...]:
        return tuple(
            _pair(library, tokens, weights, (int(ends[i, 0]), int(ends[i, 1])), float(cosines[i]))
            for i in which[:most]
        )

    return Pairs(described(order[near]), int(near.sum()), described(order[~near]), NEAR)


def _nearest(vectors: Floats) -> tuple[NDArray[np.intp], Floats]:
    """The nearest other row of each row, of equal ones the first, and its cosine."""
    others = np.empty(len(vectors), np.intp)
    cosines = np.empty(len(vectors), np.float32)
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK] @ vectors.T
        mine = np.arange(len(block))
        block[mine, start + mine] = -np.inf
        others[start : start + len(block)] = best = block.argmax(axis=1)
        cosines[start : start + len(block)] = block[mine, best]
    return others, cosines


def _pair(
    library: Library,
    tokens: list[str],
    weights: NDArray[np.float64],
    rows: tuple[int, int],
    cosine: float,
) -> Pair:
    (segment,) = library.segments
    first, second = (segment.tokens[segment.bounds[row] : segment.bounds[row + 1]] for row in rows)

    def heaviest(numbers: NDArray[np.int32]) -> tuple[str, ...]:
        order = np.lexsort((numbers, -weights[numbers]))[:_WORDS]
        return tuple(tokens[n] for n in numbers[order].tolist())

    a, b = rows
    return Pair(
        ids=(segment.ids[a], segment.ids[b]),
        cosine=cosine,
        dense=float(segment.embeddings[a] @ segment.embeddings[b]),
        identical=bool(segment.digests[a, 0] == segment.digests[b, 0]),
        only_first=heaviest(np.setdiff1d(first, second)),
        only_second=heaviest(np.setdiff1d(second, first)),
    )
