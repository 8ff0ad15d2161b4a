"""From two channels to one score: how semantic and lexical evidence are put together.

Both recipes standardise over the candidates, since only that is free of the embedding's scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


class Channels(NamedTuple):
    """What is known of each candidate, arrays of shape (candidates,).

    ``dense`` is q . d, ``semantic`` is q_perp . d, ``coverage`` is s_lex, ``bm25`` is BM25,
    ``focus`` is 1 for texts of usual breadth and smaller for broader ones, ``named`` says whether
    the query is the candidate's name.
    """

    dense: Values
    semantic: Values
    coverage: Values
    bm25: Values
    focus: Values
    named: NDArray[np.bool_]


class Standardised(NamedTuple):
    """The two channels of each candidate; the score is ``semantic + max(lexical, 0)``."""

    semantic: Values
    lexical: Values

    @property
    def score(self) -> Values:
        return self.semantic + np.maximum(self.lexical, 0.0)


def z_scores(values: Values) -> Values:
    """Standardise each row with the population's deviation; one without any contributes 0.

    Deviations below what rounding leaves of equal values count as none.
    """
    size = values.shape[-1]
    if size == 0:
        return np.zeros(values.shape)
    centred = values - values.sum(axis=-1, keepdims=True) / size
    deviation = np.sqrt((centred * centred).sum(axis=-1, keepdims=True) / size)
    least = 1e-9 * np.abs(values).max(axis=-1, keepdims=True, initial=1.0)
    return cast(Values, np.where(deviation > least, centred, 0.0) / np.maximum(deviation, least))


def rectified(channels: Channels, n_tokens: int) -> Standardised:
    """Put the channels together as published: ``z(s_perp) + max(z(s_lex), 0)``."""
    return Standardised(z_scores(channels.semantic), z_scores(channels.coverage))


# Of lexical against semantic evidence. The mean over 13 runs is flat from 0.4 to 0.6; with this
# none of them falls below plain cosine, with more small tool sets do (examples/results/ranking.md).
_WEIGHT = 0.48
_SHORT = 9  # words that a shorter query counts as: one word, if it is there, says much


def robust(channels: Channels, n_tokens: int) -> Standardised:
    """Put the channels together so that neither can mislead alone.

    ``z((q.d + q_perp.d) / 2) + 0.48 c sqrt(t) max(z(BM25), z(s), 0)`` with
    ``s = s_lex * focus``, ``c = max s`` over the candidates, and t the number of distinct words of
    the query, or 9 if they are fewer. A candidate whose name the query is comes first.

    Half of the background is left in, since removing it whole costs a little where a library is
    small and uniform. BM25 and coverage fail on different libraries (BM25 where short texts stand
    among long ones, coverage where all are long), and the better of the two speaks. Where even the
    best candidate covers little of the query, one accidental rare word would have an enormous
    z-score, so the channel is damped by its absolute evidence. Of t words about c t are there, and
    chance alone moves such a count by about sqrt(t): c sqrt(t) is how much more than chance it is.
    """
    coverage = channels.coverage * channels.focus
    halfway = (channels.dense + channels.semantic) / 2.0
    semantic, bm25, covered = z_scores(np.stack([halfway, channels.bm25, coverage]))
    damping = _WEIGHT * float(coverage.max(initial=0.0)) * np.sqrt(max(n_tokens, _SHORT))
    fused = Standardised(semantic, damping * np.maximum(bm25, covered))
    return _lifted(fused, channels.named) if channels.named.any() else fused


def _lifted(fused: Standardised, named: NDArray[np.bool_]) -> Standardised:
    """Put what is called by its name above the rest, in the order it has."""
    evidence = np.maximum(fused.lexical, 0.0)
    gap = fused.score.max() - fused.score[named].min() + 1.0
    return Standardised(fused.semantic, np.where(named, evidence + gap, fused.lexical))


@dataclass(frozen=True)
class Fusion:
    """A recipe: which words count, where candidates come from, how the channels are combined.

    Attributes
    ----------
    combine : callable
        From `Channels` and the number of the query's words that count to `Standardised`.
    specific_only : bool
        Whether generic tokens of the query are left out of the evidence.
    lexical_candidates : bool
        Whether the candidates with the most lexical evidence join those of the semantic channel.
    """

    combine: Callable[[Channels, int], Standardised]
    specific_only: bool
    lexical_candidates: bool


FUSIONS = {
    "rectified": Fusion(rectified, specific_only=True, lexical_candidates=False),
    "robust": Fusion(robust, specific_only=False, lexical_candidates=True),
}
