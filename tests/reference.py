"""An independent, slow derivation of the method: plain loops, one function for each definition.

Nothing comes from the package but the tokenizer. Documents are rows of a matrix of unit vectors.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from skillsight_core import tokenize

POOL = 300
WEIGHT = 0.48  # of lexical evidence in "robust"
SHORT = 9  # words that a shorter query counts as there


class Hit(NamedTuple):
    id: str
    score: float
    semantic: float
    lexical: float
    semantic_z: float
    lexical_z: float


def unit(vectors) -> np.ndarray:
    rows = np.asarray(vectors, dtype=np.float64)
    return rows / np.sqrt((rows**2).sum(axis=-1, keepdims=True))


def document_frequencies(texts: Sequence[str]) -> dict[str, int]:
    df: dict[str, int] = {}
    for text in texts:
        for token in set(tokenize(text)):
            df[token] = df.get(token, 0) + 1
    return df


def idf(df: int, n: int) -> float:
    return math.log((n + 1) / (df + 1)) + 1


def between_class_variances(df: dict[str, int], n: int) -> list[tuple[float, float]]:
    """(candidate threshold, variance between the classes), over all token occurrences."""
    occurrences = np.array([idf(count, n) for count in df.values() for _ in range(count)])
    borders = []
    for border in np.unique(occurrences)[1:]:
        low, high = occurrences[occurrences < border], occurrences[occurrences >= border]
        borders.append((float(border), len(low) * len(high) * (low.mean() - high.mean()) ** 2))
    return borders


def threshold(df: dict[str, int], n: int) -> float:
    borders = between_class_variances(df, n)
    return max(borders, key=lambda border: border[1])[0] if borders else -math.inf


def directions(texts: Sequence[str], vectors: np.ndarray, tokens) -> np.ndarray:
    """G: the unit mean of the documents with each token, and of all documents."""
    sets = [set(tokenize(text)) for text in texts]
    rows = [
        np.mean([vector for vector, words in zip(vectors, sets, strict=True) if token in words], 0)
        for token in tokens
    ]
    return unit([*rows, vectors.mean(axis=0)])


def rank_of(sigma: np.ndarray) -> int:
    share = [s * s / sum(sigma**2) for s in sigma]
    entropy = -sum(p * math.log(p) for p in share if p > 0)
    return math.ceil(math.exp(entropy) - 1e-9)


class Reference:
    """The published method, or "robust", over one library."""

    def __init__(self, texts, vectors, ids, *, fusion="rectified", beta=1.0, pool=POOL) -> None:
        self.ids, self.fusion, self.beta, self.pool = list(ids), fusion, beta, pool
        self.vectors = unit(vectors)
        self.n = len(self.ids)
        self.df = document_frequencies(texts)
        self.threshold = threshold(self.df, self.n)
        self.generic = {t for t, df in self.df.items() if idf(df, self.n) < self.threshold}
        self.counts = [Counter(tokenize(text)) for text in texts]
        self.names = [name_of(text) for text in texts]
        self.ties = [tie_of(text) for text in texts]
        self.G = directions(texts, self.vectors, sorted(self.generic))
        _, self.sigma, right = np.linalg.svd(self.G, full_matrices=False)
        self.rank_ = rank_of(self.sigma)
        self.B = right[: self.rank_].T
        self.projector = np.eye(self.vectors.shape[1]) - self.B @ self.B.T
        self.projected = np.array([self.projector @ d for d in self.vectors])

    def energy(self, vector) -> float:
        return float(((self.B.T @ unit(vector)) ** 2).sum())

    def weight(self, token: str) -> float:
        df = self.df.get(token, 0)
        return idf(df, self.n) * (1 - df / self.n) ** self.beta

    def evidence_tokens(self, query: str) -> list[str]:
        distinct = list(dict.fromkeys(tokenize(query)))
        if self.fusion == "robust":
            return distinct
        return [token for token in distinct if token not in self.generic]

    def coverage(self, query: str) -> list[float]:
        tokens = self.evidence_tokens(query)
        weights = {token: self.weight(token) for token in tokens}
        total = sum(weights.values())
        if total == 0:
            return [0.0] * self.n
        return [sum(w for t, w in weights.items() if t in c) / total for c in self.counts]

    def bm25(self, query: str) -> list[float]:
        k1, b = 1.5, 0.75
        mean = max(sum(c.total() for c in self.counts) / self.n, 1)
        scores = []
        for counts in self.counts:
            score = 0.0
            for token in self.evidence_tokens(query):
                df, tf = self.df.get(token, 0), counts[token]
                norm = k1 * (1 - b + b * counts.total() / mean)
                rarity = math.log(1 + (self.n - df + 0.5) / (df + 0.5))
                score += rarity * tf * (k1 + 1) / (tf + norm)
            scores.append(score)
        return scores

    def focus(self, i: int) -> float:
        """Below 1 for texts broader than twice the 99th percentile (lower of two neighbours)."""
        breadths = sorted(len(counts) for counts in self.counts)
        usual = 2 * breadths[math.floor(0.99 * (self.n - 1))]
        return min(1.0, max(usual, 1) / max(len(self.counts[i]), 1))

    def rank(self, query: str, embedding) -> list[Hit]:
        """All candidates, best first."""
        q = unit(embedding)
        semantic = (self.projected @ (self.projector @ q)).tolist()
        dense = (self.vectors @ q).tolist()
        lexical = self.coverage(query)
        rows = first(self.pool, semantic, range(self.n), self.ties)
        if self.fusion == "robust":
            bm25 = self.bm25(query)
            named = [name != "" and name == name_of(query) for name in self.names]
            best = [math.inf if named[i] else bm25[i] for i in range(self.n)]
            found = (i for i in range(self.n) if lexical[i] > 0 or named[i])
            rows |= first(self.pool, best, found, self.ties)
        pool = sorted(rows)
        if self.fusion == "robust":
            z_s = z([(dense[i] + semantic[i]) / 2 for i in pool])
            focused = [lexical[i] * self.focus(i) for i in pool]
            words = max(len(self.evidence_tokens(query)), SHORT)
            damping = WEIGHT * max(focused, default=0) * math.sqrt(words)
            z_l = [
                damping * max(pair)
                for pair in zip(z([bm25[i] for i in pool]), z(focused), strict=True)
            ]
            fused = [s + max(word, 0) for s, word in zip(z_s, z_l, strict=True)]
            called = [place for place, i in enumerate(pool) if named[i]]
            gap = max(fused) - min((fused[place] for place in called), default=0) + 1
            for place in called:
                z_l[place] = max(z_l[place], 0) + gap
        else:
            z_s, z_l = z([semantic[i] for i in pool]), z([lexical[i] for i in pool])
        hits = [
            Hit(self.ids[i], s + max(word, 0), semantic[i], lexical[i], s, word)
            for i, s, word in zip(pool, z_s, z_l, strict=True)
        ]
        return sorted(hits, key=lambda hit: (-hit.score, -hit.semantic))


def name_of(text: str) -> str:
    """Letters and digits of the first line."""
    line = unicodedata.normalize("NFKC", text.lstrip().split("\n")[0])
    return "".join(character for character in line.casefold() if character.isalnum())


def tie_of(text: str) -> bytes:
    """What decides between candidates with equal values: 64 bits of the text's SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8] if text else b""


def first(size: int, values: Sequence[float], rows, ties: Sequence[bytes]) -> set[int]:
    return set(sorted(rows, key=lambda i: (-values[i], ties[i], i))[:size])


def z(values: Sequence[float]) -> list[float]:
    if not values:
        return []
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))
    return [(v - mean) / deviation if deviation > 1e-9 else 0.0 for v in values]
