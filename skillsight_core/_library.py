"""The skills themselves: unit vectors and an inverted index, in immutable segments.

A library is a tuple of segments. Adding skills appends a segment and merges neighbours of equal
size, so n additions cost O(n log n) and the segments stay few; removing skills marks their rows.
Every change gives a new `Library` and leaves the old one as it was: who reads one sees one moment.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from skillsight_core._background import Floats
from skillsight_core._statistics import Statistics

Rows = NDArray[np.intp]
Ints = NDArray[np.int32]
Scalar = TypeVar("Scalar", bound=np.generic)

_BROADEST, _MARGIN = 0.99, 2.0  # see Library.focus
_MOST_REPEATS = np.iinfo(np.uint16).max  # a repetition past this changes no score


class Postings(NamedTuple):
    """Occurrences of a few tokens: row ``rows[i]`` contains token ``slots[i]``, for each i."""

    rows: Ints
    slots: NDArray[np.intp]
    repeats: NDArray[np.uint16]


@dataclass(frozen=True)
class Segment:
    """A run of skills, never changed once made.

    Attributes
    ----------
    ids : tuple of str
        One for each of the n rows.
    embeddings : ndarray of shape (n, m), float32
        Unit rows.
    digests : ndarray of shape (n, 2), uint64
        Digest of each text, equal where the texts are byte-identical, and of the name that it
        begins with; 0 for none.
    lengths : ndarray of shape (n,), int32
        Number of tokens of each text, repetitions included.
    bounds, tokens, repeats : ndarrays
        By row: row i holds the tokens ``tokens[bounds[i]:bounds[i + 1]]``, each ``repeats`` times.
    terms, starts, rows, counts : ndarrays
        By token, the inverted index: token ``terms[j]`` (sorted) occurs in
        ``rows[starts[j]:starts[j + 1]]`` (ascending), each ``counts`` times.
    """

    ids: tuple[str, ...]
    embeddings: Floats
    digests: NDArray[np.uint64]
    lengths: Ints
    bounds: NDArray[np.int64]
    tokens: Ints
    repeats: NDArray[np.uint16]
    terms: Ints
    starts: NDArray[np.int64]
    rows: Ints
    counts: NDArray[np.uint16]

    @classmethod
    def build(
        cls,
        ids: Sequence[str],
        embeddings: Floats,
        digests: NDArray[np.uint64],
        token_lists: Iterable[Iterable[int]],
    ) -> Segment:
        """Index the tokens (as numbers, repetitions included) of each skill."""
        lists = [np.fromiter(tokens, np.int32) for tokens in token_lists]
        lengths = np.array([len(tokens) for tokens in lists], dtype=np.int32)
        pairs = [np.unique(tokens, return_counts=True) for tokens in lists]
        bounds = _offsets([len(tokens) for tokens, _ in pairs])
        tokens = _joined([tokens for tokens, _ in pairs], np.int32)
        repeats = _joined([np.minimum(counts, _MOST_REPEATS) for _, counts in pairs], np.uint16)
        return cls._indexed(tuple(ids), embeddings, digests, lengths, bounds, tokens, repeats)

    @classmethod
    def _indexed(
        cls,
        ids: tuple[str, ...],
        embeddings: Floats,
        digests: NDArray[np.uint64],
        lengths: Ints,
        bounds: NDArray[np.int64],
        tokens: Ints,
        repeats: NDArray[np.uint16],
    ) -> Segment:
        order = np.argsort(tokens, kind="stable")
        terms, starts = np.unique(tokens[order], return_index=True)
        rows = np.repeat(np.arange(len(ids), dtype=np.int32), np.diff(bounds))[order]
        starts = np.append(starts, len(tokens)).astype(np.int64)
        counts = repeats[order]
        return cls(
            ids, embeddings, digests, lengths, bounds, tokens, repeats, terms, starts, rows, counts
        )

    @classmethod
    def merge(
        cls, segments: Sequence[Segment], keep: NDArray[np.bool_], renumber: Ints | None = None
    ) -> Segment:
        """One segment of the kept rows; ``renumber`` maps old token numbers to new ones."""
        kept = np.flatnonzero(keep)
        ids = [id_ for segment in segments for id_ in segment.ids]
        bounds = _offsets(np.concatenate([np.diff(segment.bounds) for segment in segments]))
        chosen = np.repeat(keep, np.diff(bounds))
        tokens = np.concatenate([segment.tokens for segment in segments])[chosen]
        return cls._indexed(
            tuple(ids[row] for row in kept),
            np.concatenate([segment.embeddings for segment in segments])[kept],
            np.concatenate([segment.digests for segment in segments])[kept],
            np.concatenate([segment.lengths for segment in segments])[kept],
            _offsets(np.diff(bounds)[kept]),
            tokens if renumber is None else renumber[tokens],
            np.concatenate([segment.repeats for segment in segments])[chosen],
        )

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def row_of(self) -> dict[str, int]:
        return {id_: row for row, id_ in enumerate(self.ids)}

    @cached_property
    def rows_named(self) -> dict[int, list[int]]:
        """Rows by the digest of their name."""
        found: dict[int, list[int]] = {}
        for row, digest in enumerate(self.digests[:, 1].tolist()):
            found.setdefault(digest, []).append(row)
        return found

    @cached_property
    def _columns(self) -> dict[int, NDArray[np.uint16]]:
        return {}

    def column(self, where: slice) -> NDArray[np.uint16]:
        """How often every row contains the token at this place of the inverted index, (n,).

        Kept once made: for the few tokens that are everywhere it is read much faster than their
        long list of rows.
        """
        column = self._columns.get(where.start)
        if column is None:
            column = np.zeros(len(self), np.uint16)
            column[self.rows[where]] = self.counts[where]
            self._columns[where.start] = column
        return column

    def slices(self, tokens: Ints) -> Iterator[tuple[int, slice]]:
        """Where the inverted index holds each token that occurs: (position in tokens, slice)."""
        if len(self.terms) == 0:
            return iter(())
        at = np.searchsorted(self.terms, tokens)
        slots = np.flatnonzero(self.terms.take(at, mode="clip") == tokens)
        at = at[slots]
        starts, ends = self.starts[at].tolist(), self.starts[at + 1].tolist()
        return zip(slots.tolist(), map(slice, starts, ends), strict=True)


@dataclass(frozen=True)
class Library:
    """All skills at one moment.

    Attributes
    ----------
    n_features : int
        m, the dimension of the embeddings.
    vocabulary : dict of str to int
        Number of each token. Only ever appended to, and shared by the libraries that follow one
        another; numbers beyond ``len(statistics.df)`` belong to later ones.
    segments : tuple of Segment
        The rows, in order of insertion.
    alive : ndarray of shape (rows,), bool
        False for removed skills.
    statistics : Statistics
        Of the skills that are alive.
    """

    n_features: int
    vocabulary: dict[str, int]
    segments: tuple[Segment, ...]
    alive: NDArray[np.bool_]
    statistics: Statistics

    @classmethod
    def empty(cls, n_features: int) -> Library:
        statistics = Statistics(np.zeros(0, np.int32), 0, 0)
        return cls(n_features, {}, (), np.zeros(0, np.bool_), statistics)

    # -- what is there ---------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        return len(self.alive)

    @cached_property
    def offsets(self) -> list[int]:
        """First row of each segment, and the end."""
        return cast("list[int]", _offsets([len(segment) for segment in self.segments]).tolist())

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Ids of the skills that are alive, in order of insertion."""
        every = (id_ for segment in self.segments for id_ in segment.ids)
        return tuple(id_ for id_, alive in zip(every, self.alive.tolist(), strict=True) if alive)

    @cached_property
    def _newest_first(self) -> list[tuple[dict[str, int], int]]:
        """Where to look an id up: rows by id, and the first row, of each segment."""
        pairs = zip(self.segments, self.offsets, strict=False)
        return [(segment.row_of, start) for segment, start in pairs][::-1]

    def row(self, id_: str) -> int | None:
        """Row of a skill that is alive, or None."""
        for row_of, start in self._newest_first:
            row = row_of.get(id_)
            if row is not None and self.alive[start + row]:
                return start + row
        return None

    def id_at(self, row: int) -> str:
        segment, start = self._segment_of(row)
        return segment.ids[row - start]

    def tokens_of(self, row: int) -> Ints:
        """Numbers of the distinct tokens of one row, ascending."""
        segment, start = self._segment_of(row)
        first, end = segment.bounds[row - start : row - start + 2].tolist()
        return segment.tokens[first:end]

    def embeddings(self, rows: Rows) -> Floats:
        """Unit vectors of some rows, (len(rows), m)."""
        if len(self.segments) == 1:
            return self.segments[0].embeddings.take(rows, axis=0)
        which = np.searchsorted(self.offsets, rows, side="right") - 1
        out = np.empty((len(rows), self.n_features), np.float32)
        for number in np.unique(which).tolist():
            mine = which == number
            out[mine] = self.segments[number].embeddings[rows[mine] - self.offsets[number]]
        return out

    @cached_property
    def lengths(self) -> Ints:
        return _joined([segment.lengths for segment in self.segments], np.int32)

    @cached_property
    def relative_lengths(self) -> NDArray[np.float64]:
        """Length of each row as a multiple of the mean."""
        return self.lengths / self.statistics.mean_length

    def named(self, digest: int) -> Rows:
        """Rows of the name with this digest, removed ones included; none for 0."""
        rows = [
            start + row
            for segment, start in zip(self.segments, self.offsets, strict=False)
            for row in (segment.rows_named.get(digest, ()) if digest else ())
        ]
        return np.array(rows, dtype=np.intp)

    @cached_property
    def focus(self) -> NDArray[np.float64]:
        """``min(1, U / u)`` of each row: u its distinct tokens, U twice their 99th percentile.

        A text far broader than the library's broadest covers many queries by its breadth alone,
        usually because it was stuffed with other skills' words. The margin is for libraries where
        a few long texts stand among many short ones.
        """
        breadth = _joined([np.diff(segment.bounds) for segment in self.segments], np.int64)
        if not self.alive.any():
            return np.ones(len(breadth))
        usual = _MARGIN * float(np.quantile(breadth[self.alive], _BROADEST, method="lower"))
        return np.minimum(1.0, max(usual, 1.0) / np.maximum(breadth, 1))

    @cached_property
    def digests(self) -> NDArray[np.uint64]:
        """Digest of the text of each row."""
        return _joined([segment.digests[:, 0] for segment in self.segments], np.uint64)

    def _segment_of(self, row: int) -> tuple[Segment, int]:
        number = bisect_right(self.offsets, row) - 1
        return self.segments[number], self.offsets[number]

    # -- what a query reads ----------------------------------------------------------------------

    def similarities(self, queries: Floats) -> Floats:
        """Inner products of (b, m) queries with every row, (b, rows); removed rows get -inf."""
        out = np.empty((len(queries), self.n_rows), np.float32)
        for segment, start in zip(self.segments, self.offsets, strict=False):
            mine = out[:, start : start + len(segment)]
            if len(queries) == 1:  # the faster product for one
                np.matmul(segment.embeddings, queries[0], out=mine[0])
            else:
                np.matmul(queries, segment.embeddings.T, out=mine)
        if not self.alive.all():
            out[:, ~self.alive] = -np.inf
        return out

    def numbers(self, tokens: Sequence[str]) -> Ints:
        """Number of each token; -1 for what no skill contains."""
        known = len(self.statistics.df)
        found = (self.vocabulary.get(token, -1) for token in tokens)
        return np.array([n if n < known else -1 for n in found], dtype=np.int32)

    def df(self, numbers: Ints) -> Ints:
        """Document frequency of each numbered token."""
        if len(self.statistics.df) == 0:
            return np.zeros(len(numbers), np.int32)
        return np.where(numbers >= 0, self.statistics.df[numbers], 0).astype(np.int32)

    def repeats(self, numbers: Ints, rows: Rows) -> NDArray[np.uint16]:
        """How often each of the rows contains each token, (tokens, rows); for common tokens."""
        found = np.zeros((len(numbers), len(rows)), np.uint16)
        for segment, start in zip(self.segments, self.offsets, strict=False):
            mine = (rows >= start) & (rows < start + len(segment))
            for slot, where in segment.slices(numbers):
                found[slot, mine] = segment.column(where)[rows[mine] - start]
        return found

    def postings(self, numbers: Ints) -> Postings:
        """Every occurrence of the numbered tokens, removed rows included."""
        rows, slots, repeats = [], [], []
        for segment, start in zip(self.segments, self.offsets, strict=False):
            for slot, where in segment.slices(numbers):
                found = segment.rows[where]
                rows.append(found + np.int32(start) if start else found)
                slots.append(slot)
                repeats.append(segment.counts[where])
        return Postings(
            _joined(rows, np.int32),
            np.repeat(np.array(slots, dtype=np.intp), [len(found) for found in rows]),
            _joined(repeats, np.uint16),
        )

    # -- how it changes --------------------------------------------------------------------------

    def add(
        self,
        ids: Sequence[str],
        embeddings: Floats,
        digests: NDArray[np.uint64],
        token_lists: Iterable[list[str]],
    ) -> Library:
        """The library with more skills; ids and vectors are taken as checked."""
        if len(ids) == 0:
            return self
        number = self.vocabulary
        numbered = ([number.setdefault(t, len(number)) for t in tokens] for tokens in token_lists)
        segment = Segment.build(ids, embeddings, digests, numbered)
        df = np.zeros(len(number), np.int32)
        df[: len(self.statistics.df)] = self.statistics.df
        df[segment.terms] += np.diff(segment.starts).astype(np.int32)
        statistics = Statistics(
            df,
            self.statistics.n_skills + len(ids),
            self.statistics.total_length + int(segment.lengths.sum()),
        )
        alive = np.append(self.alive, np.ones(len(ids), np.bool_))
        segments = (*self.segments, segment)
        while len(segments) > 1 and len(segments[-2]) <= len(segments[-1]):
            last_two = segments[-2:]
            every = np.ones(sum(map(len, last_two)), np.bool_)
            segments = (*segments[:-2], Segment.merge(last_two, every))
        return Library(self.n_features, number, segments, alive, statistics)

    def with_guests(
        self,
        ids: Sequence[str],
        embeddings: Floats,
        digests: NDArray[np.uint64],
        token_lists: Iterable[list[str]],
    ) -> Library:
        """The library with more rows that are scored like skills and counted in no statistic."""
        private = replace(self, vocabulary=dict(self.vocabulary))
        joined = private.add(ids, embeddings, digests, token_lists)
        df = np.zeros_like(joined.statistics.df)
        df[: len(self.statistics.df)] = self.statistics.df
        return replace(joined, statistics=replace(self.statistics, df=df))

    def mean_embeddings(self, tokens: Ints) -> Floats:
        """Mean vector of the skills that contain each token, and of all of them in the last row.

        ``g_t = mean of d over the skills d with t in d``; (len(tokens) + 1, m). The library must be
        compact and every token must occur.
        """
        (segment,) = self.segments
        found = [(slot, segment.rows[where]) for slot, where in segment.slices(tokens)]
        rows = _joined([rows for _, rows in found], np.int32)
        slots = np.repeat([slot for slot, _ in found], [len(rows) for _, rows in found])
        contains = csr_array(
            (np.ones(len(rows), np.float32), (slots, rows)), shape=(len(tokens), len(segment))
        )
        sums = np.vstack([contains @ segment.embeddings, segment.embeddings.sum(axis=0)])
        counts = np.append(self.df(tokens), len(segment))
        return cast(Floats, (sums / counts[:, None]).astype(np.float32))

    def remove(self, rows: Rows) -> Library:
        """The library without these rows, which are alive."""
        df = self.statistics.df.copy()
        length = 0
        for row in rows.tolist():
            df[self.tokens_of(row)] -= 1
            length += int(self.lengths[row])
        alive = self.alive.copy()
        alive[rows] = False
        statistics = Statistics(
            df, self.statistics.n_skills - len(rows), self.statistics.total_length - length
        )
        return replace(self, alive=alive, statistics=statistics)

    def compact(self) -> Library:
        """The same skills in one segment, with no trace of removed skills and their words."""
        df = self.statistics.df
        if len(self.segments) <= 1 and self.alive.all() and df.all():
            return self
        if self.statistics.n_skills == 0:
            return Library.empty(self.n_features)
        renumber = (np.cumsum(df > 0) - 1).astype(np.int32)
        words = [token for token, n in self.vocabulary.copy().items() if n < len(df) and df[n]]
        return Library(
            self.n_features,
            {token: n for n, token in enumerate(words)},
            (Segment.merge(self.segments, self.alive, renumber),),
            np.ones(self.statistics.n_skills, np.bool_),
            replace(self.statistics, df=df[df > 0]),
        )


def _offsets(sizes: Sequence[int] | NDArray[np.integer]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _joined(parts: Sequence[NDArray[Any]], dtype: type[Scalar]) -> NDArray[Scalar]:
    """Concatenation that also knows what no parts at all give."""
    if not parts:
        return np.empty(0, dtype)
    return (parts[0] if len(parts) == 1 else np.concatenate(parts)).astype(dtype, copy=False)
