"""Seeded stand-ins for what is slow or far away."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


class HashEncoder:
    """Bag of words: each word has a random direction of its own, a text is their unit sum.

    Texts with common words are similar, others nearly orthogonal. The same on every machine.
    Counts its calls and the texts in them.
    """

    def __init__(self, dim: int = 64, seed: int = 0) -> None:
        self.dim = dim
        self.seed = seed
        self.name = f"hash-{dim}-{seed}"
        self.calls = 0
        self.texts_encoded = 0

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        self.calls += 1
        self.texts_encoded += len(texts)
        rows = [self._vector(text) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), self.dim)

    def _vector(self, text: str) -> NDArray[np.float64]:
        words = re.findall(r"\w+", text.lower()) or [""]
        total = np.sum([_direction(word, self.dim, self.seed) for word in words], axis=0)
        unit: NDArray[np.float64] = total / np.linalg.norm(total)
        return unit


@lru_cache(maxsize=1 << 14)
def _direction(word: str, dim: int, seed: int) -> NDArray[np.float64]:
    digest = hashlib.sha256(f"{seed}:{word}".encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng(int.from_bytes(digest, "big")).standard_normal(dim)
