"""BEIR folders: the common exchange format of retrieval benchmarks."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from skillsight_core.evaluation._benchmark import (
    Benchmark,
    existing,
    joined,
    json_lines,
    labelled,
    opened,
)


def load_beir(
    path: str | PathLike[str],
    *,
    distractors: Iterable[str | PathLike[str]] = (),
    split: str = "test",
) -> Benchmark:
    """Read a benchmark in BEIR layout.

    Parameters
    ----------
    path : path-like
        Folder with ``corpus.jsonl`` (``_id``, ``title``, ``text``), ``queries.jsonl`` (``_id``,
        ``text``) and ``qrels/<split>.tsv`` (a header, then query id, document id, score), each
        plain or with ``.gz``. A document's text is its title and its text, a line break between.
    distractors : iterable of path-like, optional
        More folders, of which only the corpus is read: documents that answer nothing.
    split : str, default "test"
        Which labels.

    Returns
    -------
    Benchmark
        Queries without a document of positive score are left out.

    Raises
    ------
    FileNotFoundError
        A folder has not these files.
    ValueError
        A line is not as said, two documents have one id, or no query is labelled.
    """
    folders = [Path(path), *map(Path, distractors)]
    corpora = [_corpus(folder) for folder in folders]
    queries = {
        str(record["_id"]): str(record["text"])
        for record in json_lines(existing(folders[0] / "queries.jsonl"), "_id", "text")
    }
    relevance = _qrels(existing(folders[0] / "qrels" / f"{split}.tsv"))
    asked, gold = labelled(queries, relevance)
    return Benchmark(
        name=" + ".join(folder.resolve().name for folder in folders),
        ids=tuple(id_ for corpus in corpora for id_, _ in corpus),
        texts=tuple(text for corpus in corpora for _, text in corpus),
        sizes=tuple(map(len, corpora)),
        queries=asked,
        gold=gold,
        relevance=relevance,
    )


def _corpus(folder: Path) -> list[tuple[str, str]]:
    return [
        (str(record["_id"]), joined(record.get("title"), record["text"]))
        for record in json_lines(existing(folder / "corpus.jsonl"), "_id", "text")
    ]


def _qrels(file: Path) -> dict[str, dict[str, int]]:
    relevance: dict[str, dict[str, int]] = {}
    with opened(file) as lines:
        rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(rows, None)  # the header
        for number, row in enumerate(rows, 2):
            try:
                query, document, score = row
                relevance.setdefault(query, {})[document] = int(score)
            except ValueError:
                raise ValueError(
                    f"{file}:{number}: a line must be a query id, a document id and an integer, "
                    f"separated by tabs, got {row!r}"
                ) from None
    return relevance
