"""Queries and labels as users have them, brought to one form."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from skillsight_core import _validation
from skillsight_core._errors import SkillSightWarning
from skillsight_core._library import Library, Rows

Queries = Sequence[str] | Mapping[str, str]
Gold = Iterable[str] | Mapping[str, float]
Qrels = Sequence[Gold] | Mapping[str, Gold]


class Asked(NamedTuple):
    """The text of each query, and the rows of its gold skills (None where it has no label)."""

    texts: list[str]
    gold: list[Rows | None]


def read(queries: Queries, qrels: Qrels | None, library: Library, *, of: str) -> Asked:
    """Check queries and labels, and look the gold skills up.

    Labels of other queries are passed over; gold skills that are not in the library are, too,
    with a warning.
    """
    keys: list[str] | None = None
    if isinstance(queries, Mapping):
        keys, queries = list(queries), list(queries.values())
    elif isinstance(queries, str):
        raise TypeError(f"{of}: queries must be a sequence or a mapping of str, got one str")
    texts = [_validation.check_query(text, of=of) for text in queries]
    if qrels is None:
        return Asked(texts, [None] * len(texts))
    if isinstance(qrels, Mapping):
        if keys is None:
            raise TypeError(
                f"{of}: qrels must be a sequence with one entry for each query where queries is a "
                "sequence, got a mapping"
            )
        golds: list[Gold] = [qrels.get(key, ()) for key in keys]
    else:
        golds = list(qrels)
        if len(golds) != len(texts):
            raise ValueError(
                f"{of}: qrels must have one entry for each query, got {len(golds)} entries "
                f"for {len(texts)} queries"
            )
    named = [_relevant(gold, of=of) for gold in golds]
    found = [[library.row(id_) for id_ in ids] for ids in named]
    unknown = dict.fromkeys(
        id_
        for ids, rows in zip(named, found, strict=True)
        for id_, row in zip(ids, rows, strict=True)
        if row is None
    )
    if unknown:
        warnings.warn(
            f"{of}: qrels name {len(unknown)} skills that are not in the library and are left "
            f"out: {_validation.some(list(unknown))}",
            SkillSightWarning,
            stacklevel=3,
        )
    gold = [np.array([r for r in rows if r is not None], np.intp) for rows in found]
    if qrels and not any(map(len, gold)):
        raise ValueError(
            f"{of}: qrels must name skills of the library for some of the queries, got none"
        )
    return Asked(texts, [rows if len(rows) else None for rows in gold])


def _relevant(gold: Gold, *, of: str) -> list[str]:
    """Ids of the gold skills of one query, from grades by id or from the ids alone."""
    if isinstance(gold, str):
        raise TypeError(f"{of}: qrels must give the ids of each query, got one str: {gold!r}")
    if isinstance(gold, Mapping):
        return [id_ for id_, grade in gold.items() if grade > 0]
    return list(dict.fromkeys(gold))
