"""Time of one query: SkillSight against a plain exact dense top-k in numpy, side by side.

    make bench

Both rank the same vectors in one process, alternating query by query, so that the ratio holds on
any machine although the times do not. Uses the 24,886 skills of ../shared/data where they are, and
else as many made of random words; then four times as many, each skill with three near copies.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from skillsight_core import SkillSight
from tests.fakes import HashEncoder

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
QUERIES, ROUNDS = 200, 3


def corpus() -> tuple[list[str], np.ndarray, str]:
    """Texts, unit vectors and what they are."""
    folder = DATA / "skills-registry24k"
    if folder.is_dir():
        with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
            entries = [json.loads(line) for line in lines]
        texts = [f"{entry['title']}\n{entry['text']}" for entry in entries]
        vectors = np.load(folder / "corpus.minilm.f16.npy").astype(np.float32)
        return texts, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), folder.name
    random = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(20_000)])
    chosen = np.minimum(random.zipf(1.3, (25_000, 40)) - 1, len(words) - 1)
    texts = [" ".join(words[row]) for row in chosen]
    return texts, HashEncoder(384).encode(texts), "25,000 texts of random words"


def with_copies(texts: list[str], vectors: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Four times as many skills: the same texts, with vectors close by."""
    random = np.random.default_rng(2)
    copies = [vectors]
    for _ in range(3):
        noise = 0.05 * random.standard_normal(vectors.shape, dtype=np.float32)
        copies.append((vectors + noise) / np.linalg.norm(vectors + noise, axis=1, keepdims=True))
    return texts * 4, np.concatenate(copies)


def queries(texts: list[str], vectors: np.ndarray) -> tuple[list[str], np.ndarray]:
    """A dozen words from the middle of some texts, with the vectors of others near them."""
    random = np.random.default_rng(1)
    rows = random.choice(len(texts), QUERIES, replace=False)
    asked = [" ".join(texts[row].split()[4:16]) for row in rows]
    noise = random.standard_normal((QUERIES, vectors.shape[1])).astype(np.float32)
    near = vectors[rows] + 0.5 * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    return asked, near / np.linalg.norm(near, axis=1, keepdims=True)


def dense_by_partition(vectors: np.ndarray, query: np.ndarray, k: int) -> np.ndarray:
    """Plain exact dense retrieval that sorts no more than it must."""
    scores = vectors @ query
    rows = np.argpartition(-scores, k)[:k]
    return rows[np.argsort(-scores[rows], kind="stable")]


def dense_by_sorting(vectors: np.ndarray, query: np.ndarray, k: int) -> np.ndarray:
    """Plain exact dense retrieval as it is mostly written."""
    return np.argsort(-(vectors @ query))[:k]


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    texts, vectors, name = corpus()
    asked, points = queries(texts, vectors)
    print(f"{name}, {QUERIES} queries, k = 3")
    for library in ((texts, vectors), with_copies(texts, vectors)):
        for label, estimator in (("default", SkillSight()), ("published", SkillSight.paper())):
            measure(label, estimator, *library, asked, points)


def measure(
    label: str,
    estimator: SkillSight,
    texts: list[str],
    vectors: np.ndarray,
    asked: list[str],
    points: np.ndarray,
) -> None:
    fitted = estimator.fit(texts, vectors, list(map(str, range(len(texts)))))
    rounds = [
        (
            seconds(partial(dense_by_partition, vectors, point, 3)),
            seconds(partial(dense_by_sorting, vectors, point, 3)),
            seconds(partial(fitted.rank, query, point, k=3)),
        )
        for query, point in list(zip(asked, points, strict=True)) * ROUNDS
    ]
    partition, sorting, ours = np.median(rounds, axis=0)
    print(
        f"{len(texts):7,} x {vectors.shape[1]} {label:10s} ratio {ours / partition:.2f} to the "
        f"product and a partition, {ours / sorting:.2f} to the product and a sort"
    )


if __name__ == "__main__":
    main()
