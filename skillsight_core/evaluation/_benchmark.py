"""A labelled retrieval task: documents, queries, and which documents answer each query."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import IO, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from skillsight_core._validation import check_count, distinct_ids, some


@dataclass(frozen=True)
class Benchmark:
    """Documents, queries and labels, as every loader of this package gives them.

    Attributes
    ----------
    name : str
        What the results are headed with.
    ids : tuple of n str
        Distinct ids of the documents.
    texts : tuple of n str
        Their whole texts, beginning with the name.
    sizes : tuple of int
        How many of the documents each corpus brought, in their order; sums to n.
    queries : mapping of str to str
        Text of each query by its id, only those that have a gold document.
    gold : mapping of str to tuple of str
        Ids of the documents that answer each query: what Recall, Hit and MRR count.
    relevance : mapping of str to mapping of str to int
        Graded relevance by query and document: the gains of nDCG. May name documents that are not
        gold (of lesser value).
    """

    name: str
    ids: tuple[str, ...]
    texts: tuple[str, ...] = field(repr=False)
    sizes: tuple[int, ...]
    queries: Mapping[str, str] = field(repr=False)
    gold: Mapping[str, tuple[str, ...]] = field(repr=False)
    relevance: Mapping[str, Mapping[str, int]] = field(repr=False)

    def __post_init__(self) -> None:
        distinct_ids(self.ids, of=f"benchmark {self.name!r}")
        if not self.queries:
            raise ValueError(f"benchmark {self.name!r}: no query has a gold document")

    def limited(self, limit: int | None) -> Self:
        """Keep the first queries only; all for None."""
        if limit is None:
            return self
        limit = check_count(limit, "limit", at_least=1, of="evaluate")
        return replace(self, queries=dict(list(self.queries.items())[:limit]))


def labelled(
    queries: Mapping[str, str], relevance: Mapping[str, Mapping[str, int]]
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Queries with at least one document of positive relevance, and those documents."""
    gold = {
        query: tuple(id_ for id_, grade in relevance.get(query, {}).items() if grade > 0)
        for query in queries
    }
    return (
        {query: text for query, text in queries.items() if gold[query]},
        {query: ids for query, ids in gold.items() if ids},
    )


def joined(*parts: object) -> str:
    """The parts that are there, a line each: the text of a document from its fields."""
    return "\n".join(str(part).strip() for part in parts if part)


def ready_embeddings(
    files: Sequence[str | PathLike[str]], benchmark: Benchmark
) -> NDArray[np.floating]:
    """Read ready embeddings, one ``.npy`` file for each corpus in their order.

    Raises
    ------
    ValueError
        There are not as many files as corpora, or a file has not a row for each document.
    """
    if len(files) != len(benchmark.sizes):
        raise ValueError(
            f"embeddings must be one file for each of {len(benchmark.sizes)} corpora, "
            f"got {len(files)}"
        )
    arrays = []
    for file, size in zip(files, benchmark.sizes, strict=True):
        array = np.load(file, allow_pickle=False)
        if array.ndim != 2 or len(array) != size:
            raise ValueError(
                f"{file}: embeddings must have one row for each of {size} documents, "
                f"got the shape {array.shape}"
            )
        arrays.append(array)
    return cast("NDArray[np.floating]", np.concatenate(arrays))


# -- files ---------------------------------------------------------------------------------------


def existing(*candidates: Path) -> Path:
    """The first of the files that is there, plain or gzipped."""
    for path in candidates:
        for file in (path, path.with_name(path.name + ".gz")):
            if file.is_file():
                return file
    first, *others = map(str, candidates)
    raise FileNotFoundError(
        f"{first}: no such file, nor {some([*others, first + '.gz'])}; "
        "is this a folder in the format of this benchmark?"
    )


def opened(file: Path) -> IO[str]:
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8")
    return file.open(encoding="utf-8")


def json_lines(file: Path, *keys: str) -> Iterator[dict[str, Any]]:
    """Objects of a JSON Lines file; each must have the keys."""
    with opened(file) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError as error:
                raise ValueError(f"{file}:{number}: not a line of JSON: {error}") from None
            yield with_keys(record, keys, where=f"{file}:{number}")


def json_file(file: Path) -> Any:
    with opened(file) as text:
        try:
            return json.load(text)
        except ValueError as error:
            raise ValueError(f"{file}: not JSON: {error}") from None


def with_keys(record: Any, keys: Sequence[str], *, where: str) -> dict[str, Any]:
    """A record that is an object and has the keys."""
    if not isinstance(record, dict):
        raise ValueError(f"{where}: a record must be an object, got {type(record).__name__}")
    missing = [key for key in keys if key not in record]
    if missing:
        raise ValueError(
            f"{where}: a record must have {some(keys)}, got one without {missing[0]!r}"
        )
    return record
