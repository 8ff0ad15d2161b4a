"""Checks of what users hand in, each with one sentence when it fails.

Every function takes ``of``, the method that was called ("SkillSight.fit"), to name in the message.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skillsight_core._background import Floats
from skillsight_core._tokenizer import name_key

Float = TypeVar("Float", bound=np.floating)


def check_texts(texts: Iterable[str], *, of: str, name: str = "texts") -> list[str]:
    """Texts as a list."""
    if isinstance(texts, str):
        raise TypeError(f"{of}: {name} must be a sequence of str, got one str")
    listed = list(texts)
    for position, text in enumerate(listed):
        if not isinstance(text, str):
            raise TypeError(f"{of}: {name} must be str, got {_kind(text)} at position {position}")
    return listed


def check_ids(ids: Iterable[str] | None, digests: NDArray[np.uint64], *, of: str) -> list[str]:
    """Ids as a list, one for each text and none twice; by default digests of the texts."""
    if ids is None:
        return _default_ids(digests)
    listed = distinct_ids(ids, of=of)
    if len(listed) != len(digests):
        raise ValueError(
            f"{of}: ids must have one entry for each text, got {len(listed)} ids "
            f"for {len(digests)} texts"
        )
    return listed


def distinct_ids(ids: Iterable[str], *, of: str) -> list[str]:
    """Ids as a list, none twice."""
    if isinstance(ids, str):
        raise TypeError(f"{of}: ids must be a sequence of str, got one str: {ids!r}")
    listed = list(ids)
    for id_ in listed:
        if not isinstance(id_, str):
            raise TypeError(f"{of}: ids must be str, got {_kind(id_)}: {id_!r}")
    twice = [id_ for id_, count in Counter(listed).items() if count > 1]
    if twice:
        raise ValueError(f"{of}: ids must be distinct, got more than once: {some(twice)}")
    return listed


def check_embeddings(
    embeddings: ArrayLike | Sequence[ArrayLike],
    ids: Sequence[str],
    n_features: int | None,
    *,
    of: str,
) -> Floats:
    """Embeddings as new unit rows in float32, one for each id.

    ``n_features`` is the dimension they must have, None when any will do.
    """
    rows = _as_rows(embeddings, ids, n_features, of=of)
    if len(rows) != len(ids):
        raise ValueError(
            f"{of}: embeddings must have one row for each text, got {len(rows)} rows "
            f"for {len(ids)} texts"
        )
    if n_features is not None and len(rows) and rows.shape[1] != n_features:
        raise ValueError(_wrong_dimension(of, ids[0], n_features, rows.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(rows, axis=1)
    usable = np.isfinite(norms) & (norms > 0)
    if not usable.all():
        bad = np.flatnonzero(~usable)
        what = "zero" if norms[bad[0]] == 0 else "NaN or infinite"
        raise ValueError(
            f"{of}: embeddings must be finite and not zero, got a row that is {what} "
            f"for id {ids[bad[0]]!r}" + (f" (and {len(bad) - 1} more)" if len(bad) > 1 else "")
        )
    return np.asarray(rows / norms[:, None], dtype=np.float32)


def check_query_embedding(embedding: ArrayLike, n_features: int, *, of: str) -> Floats:
    """One query embedding as a new unit vector in float32."""
    vector = _numbers(embedding, np.float64, "query_embedding", of=of)
    if vector.ndim != 1 or (n_features and len(vector) != n_features):
        raise ValueError(
            f"{of}: query_embedding must have shape ({n_features},), the dimension of the "
            f"library, got {vector.shape}"
        )
    norm = float(np.linalg.norm(vector))
    if not np.isfinite(norm) or norm == 0.0:
        what = "zero" if norm == 0.0 else "NaN or infinite"
        raise ValueError(
            f"{of}: query_embedding must be finite and not zero, got one that is {what}"
        )
    return np.asarray(vector / norm, dtype=np.float32)


def check_vectors(vectors: ArrayLike, n_features: int, *, of: str) -> Floats:
    """Vectors of shape (m,) or (n, m), finite, not scaled."""
    array = _numbers(vectors, np.float32, "vectors", of=of)
    if array.ndim not in (1, 2) or (n_features and array.shape[-1] != n_features):
        raise ValueError(
            f"{of}: vectors must have shape ({n_features},) or (n, {n_features}), the dimension "
            f"of the library, got {array.shape}"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{of}: vectors must be finite, got one with NaN or infinite entries")
    return array


def check_query(query: str, *, of: str) -> str:
    if not isinstance(query, str):
        raise TypeError(f"{of}: query must be str, got {_kind(query)}")
    return query


def check_per_id(
    values: Sequence[Any] | None, name: str, ids: Sequence[str], *, of: str
) -> list[Any]:
    """What a host knows of each id, None where it knows nothing."""
    listed = [None] * len(ids) if values is None else list(values)
    if len(listed) != len(ids):
        raise ValueError(
            f"{of}: {name} must have one entry for each id, got {len(listed)} for {len(ids)} ids"
        )
    return listed


def check_count(value: int, name: str, *, at_least: int, of: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < at_least:
        raise ValueError(f"{of}: {name} must be an integer >= {at_least}, got {value!r}")
    return int(value)


def check_number(value: float, name: str, *, low: float, high: float, of: str) -> float:
    if not isinstance(value, int | float | np.number) or not low <= value <= high:
        allowed = f">= {low:g}" if high == np.inf else f"between {low:g} and {high:g}"
        raise ValueError(f"{of}: {name} must be a number {allowed}, got {value!r}")
    return float(value)


def check_choice(value: object, name: str, *, among: Iterable[object], of: str) -> None:
    allowed = list(among)
    if value not in allowed:
        listed = ", ".join(map(repr, allowed))
        raise ValueError(f"{of}: {name} must be one of {listed}, got {value!r}")


def text_digests(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Digests of each text and of the name it begins with, (n, 2)."""
    pairs = [(digest(text), digest(name_key(text))) for text in texts]
    return np.array(pairs, dtype=np.uint64).reshape(len(pairs), 2)


def digest(text: str) -> int:
    """The first 64 bits of the SHA-256 of a text; 0 for the empty one."""
    if not text:
        return 0
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")


def some(items: Sequence[str], most: int = 3) -> str:
    """The first items for a message, and how many there are beyond."""
    listed = ", ".join(map(repr, items[:most]))
    return listed + (f" and {len(items) - most} more" if len(items) > most else "")


def _default_ids(digests: NDArray[np.uint64]) -> list[str]:
    """The digests in hexadecimal; the second of two equal texts gets "-2", by order alone."""
    seen: Counter[str] = Counter()
    ids = []
    for digest in (f"{number:016x}" for number, _ in digests.tolist()):
        seen[digest] += 1
        ids.append(digest if seen[digest] == 1 else f"{digest}-{seen[digest]}")
    return ids


def _as_rows(
    embeddings: ArrayLike | Sequence[ArrayLike],
    ids: Sequence[str],
    n_features: int | None,
    *,
    of: str,
) -> NDArray[np.floating]:
    try:
        array = np.asarray(embeddings)
        wide = np.float64 if array.dtype == np.float64 else np.float32
        rows: NDArray[np.floating] = array.astype(wide, copy=False)
    except (TypeError, ValueError) as error:
        sizes = [np.size(row) for row in embeddings] if isinstance(embeddings, Sequence) else []
        expected = n_features or (sizes[0] if sizes else 0)
        for id_, size in zip(ids, sizes, strict=False):
            if size != expected:
                raise ValueError(_wrong_dimension(of, id_, expected, size)) from None
        raise TypeError(f"{of}: embeddings must be an array of numbers, got {error}") from None
    if rows.size == 0 and len(ids) == 0:
        return rows.reshape(0, rows.shape[1] if rows.ndim == 2 else n_features or 0)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"{of}: embeddings must have shape (n, m), got {rows.shape}")
    return rows


def _wrong_dimension(of: str, id_: str, expected: int, got: int) -> str:
    return (
        f"{of}: embeddings must have {expected} dimensions like the rest of the library, "
        f"got {got} for id {id_!r}"
    )


def _numbers(values: ArrayLike, dtype: type[Float], name: str, *, of: str) -> NDArray[Float]:
    try:
        return np.asarray(values, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{of}: {name} must be an array of numbers, got {error}") from None


def _kind(value: object) -> str:
    return type(value).__name__
