"""What a ranking returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RankedSkill:
    """One skill of a ranking, with the reasons for its place.

    ``score == semantic_z + max(lexical_z, 0)`` under every fusion.

    Attributes
    ----------
    id : str
        Identity of the skill.
    rank : int
        1 for the best.
    score : float
        Higher is better; may be negative; comparable only within one query. The margin between
        the first two tells a clear answer from a guess better than any absolute number does.
    semantic : float
        Absolute semantic score: the query without background times the skill's unit vector,
        in [-1, 1].
    lexical : float
        Absolute lexical evidence: the weighted share of the query's words that the skill
        contains, in [0, 1].
    semantic_z, lexical_z : float
        The two channels as the fusion saw them, standardised over the candidates.
    dense : float
        Plain cosine similarity of query and skill, in [-1, 1]: what dense retrieval ranks by.
    matched_tokens, unmatched_tokens : tuple of str
        The query's words that count as evidence, by whether the skill contains them, in the
        order of the query.
    """

    id: str
    rank: int
    score: float
    semantic: float
    lexical: float
    semantic_z: float
    lexical_z: float
    dense: float
    matched_tokens: tuple[str, ...]
    unmatched_tokens: tuple[str, ...]
