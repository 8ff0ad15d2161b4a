"""Small made-up libraries: a template that every text shares, and words of their own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from skillsight_core import SkillSight
from tests.fakes import HashEncoder

ENCODER = HashEncoder(48)
TEMPLATE = "Use this skill when the user wants to"
WORDS = [
    a + b
    for a in ["ba", "ke", "li", "mo", "nu", "po", "ra", "se", "ti", "vu"]
    for b in ["zar", "lin", "dop", "fek", "gum"]
]


class Made(NamedTuple):
    texts: list[str]
    vectors: np.ndarray
    ids: list[str]

    def fit(self, **options) -> SkillSight:
        return SkillSight(**options).fit(self.texts, self.vectors, self.ids)

    def take(self, rows) -> Made:
        rows = list(rows)
        return Made([self.texts[i] for i in rows], self.vectors[rows], [self.ids[i] for i in rows])


def of_texts(texts) -> Made:
    texts = list(texts)
    return Made(texts, ENCODER.encode(texts), [f"s{i}" for i in range(len(texts))])


def made(n: int = 60, seed: int = 0) -> Made:
    """n texts of most of the template and three to nine words, a few of which are frequent."""
    random = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, len(WORDS) + 1)
    weights /= weights.sum()
    texts = []
    for _ in range(n):
        opening = [word for word in TEMPLATE.split() if random.random() < 0.85]
        own = random.choice(WORDS, random.integers(3, 10), p=weights)
        texts.append(" ".join([*opening, *own]))
    return of_texts(texts)


def queries(n: int = 12, seed: int = 1) -> list[str]:
    """Of the same words, some with the template, some with words that no text has."""
    random = np.random.default_rng(seed)
    asked = [" ".join(random.choice(WORDS, random.integers(1, 6))) for _ in range(n)]
    asked[::3] = [f"use this skill for {query}" for query in asked[::3]]
    asked[1::3] = [f"{query} unheard" for query in asked[1::3]]
    return asked


def embed(query: str) -> np.ndarray:
    return ENCODER.encode([query])[0]


def numbers(hits) -> list[list[float]]:
    return [[h.score, h.semantic, h.lexical, h.semantic_z, h.lexical_z] for h in hits]


def ids(hits) -> list[str]:
    return [hit.id for hit in hits]


def evidence(ss: SkillSight, query: str) -> dict[str, tuple]:
    """What the words alone give each skill."""
    hits = ss.rank(query, embed(query), k=ss.n_skills_) if ss.n_skills_ else []
    return {h.id: (round(h.lexical, 12), h.matched_tokens, h.unmatched_tokens) for h in hits}


texts_of_words = st.lists(
    st.lists(st.sampled_from(WORDS[:12]), max_size=6).map(" ".join), min_size=6, max_size=14
)
words_asked = st.lists(st.sampled_from([*WORDS[:12], "unheard"]), max_size=5).map(" ".join)
