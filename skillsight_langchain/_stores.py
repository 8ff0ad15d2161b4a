"""What a vector store must be able to do, in one shape for all of them."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from numpy.typing import ArrayLike, NDArray

from skillsight_langchain._scoring import by_id

PAGE = 1000  # documents that are read at once; below every limit met so far
METRICS = ("cosine", "ip", "l2")
_UNIT = 1e-3  # how far from 1 a length may be; the error it makes in a score


class Page(NamedTuple):
    """Some documents of a store."""

    ids: list[str]
    texts: list[str]
    vectors: Sequence[ArrayLike]


Found = dict[str, Document | None]
"""What a search found, best first, by id; None for what `Store.fetch` has to bring."""


class Store(ABC):
    """A vector store as the retriever uses it.

    Parameters
    ----------
    vectorstore : VectorStore
        The store.
    """

    # Search arguments under which `passing` returns what a search could have returned.
    conditions: ClassVar[frozenset[str]] = frozenset({"filter"})

    def __init__(self, vectorstore: VectorStore) -> None:
        self.vectorstore: Any = vectorstore

    @abstractmethod
    def metric(self) -> str:
        """One of `METRICS`, under which the projected query gives the right order, or another."""

    @abstractmethod
    def pages(self) -> Iterator[Page]:
        """Everything that the store holds."""

    @abstractmethod
    def fetch(self, ids: Sequence[str]) -> list[Document]:
        """Those of these documents that exist, in any order."""

    async def afetch(self, ids: Sequence[str]) -> list[Document]:
        return await asyncio.to_thread(self.fetch, ids)

    def passing(self, ids: Sequence[str], **options: Any) -> Found:
        """Those that exist and pass the `conditions` of a search; here there are none."""
        return {**by_id(self.fetch(ids))}

    async def apassing(self, ids: Sequence[str], **options: Any) -> Found:
        return await asyncio.to_thread(self.passing, ids, **options)

    def can_fetch(self, options: dict[str, Any]) -> bool:
        return self.conditions.issuperset(options)

    def search(self, vector: list[float], k: int, **options: Any) -> Found:
        """The k documents nearest to a vector."""
        return {**by_id(self.vectorstore.similarity_search_by_vector(vector, k=k, **options))}

    async def asearch(self, vector: list[float], k: int, **options: Any) -> Found:
        found = await self.vectorstore.asimilarity_search_by_vector(vector, k=k, **options)
        return {**by_id(found)}


class OtherStore(Store):
    """A store without an adapter: what LangChain promises of every store and no more."""

    conditions = frozenset()

    def metric(self) -> str:
        return "cosine"  # not known

    def pages(self) -> Iterator[Page]:
        raise ValueError(
            "SkillSightRetriever.from_vectorstore: what a "
            f"{type(self.vectorstore).__name__} holds cannot be listed; pass documents=, all that "
            "were added to it, or wrap its embeddings with SkillSightEmbeddings"
        )

    def fetch(self, ids: Sequence[str]) -> list[Document]:
        try:
            found: list[Document] = self.vectorstore.get_by_ids(ids)
        except NotImplementedError:
            return []
        return found

    def search(self, vector: list[float], k: int, **options: Any) -> Found:
        try:
            return super().search(vector, k, **options)
        except NotImplementedError as error:
            raise self._no_search() from error

    async def asearch(self, vector: list[float], k: int, **options: Any) -> Found:
        try:
            return await super().asearch(vector, k, **options)
        except NotImplementedError as error:
            raise self._no_search() from error

    def _no_search(self) -> ValueError:
        return ValueError(
            f"SkillSightRetriever: a {type(self.vectorstore).__name__} cannot be searched by "
            "vector; wrap its embeddings with SkillSightEmbeddings instead"
        )


def contents(store: Store, *, of: str) -> tuple[list[str], list[str], NDArray[np.float32]]:
    """Ids, texts and vectors of everything in a store.

    Raises
    ------
    ValueError
        The metric is none that the projected query gives the right order under, or it depends on
        the length of the vectors and some are not of unit length.
    """
    metric = store.metric()
    name = type(store.vectorstore).__name__
    if metric not in METRICS:
        raise ValueError(f"{of}: the metric of a {name} must be cosine, ip or l2, got {metric!r}")
    ids: list[str] = []
    texts: list[str] = []
    parts = []
    for page in store.pages():
        ids += page.ids
        texts += page.texts
        parts.append(np.asarray(page.vectors, dtype=np.float32))
    vectors = np.concatenate(parts) if ids else np.zeros((0, 0), np.float32)
    if metric != "cosine":
        norms = np.linalg.norm(vectors, axis=1)
        bad = np.flatnonzero(~(np.abs(norms - 1.0) <= _UNIT))
        if len(bad):
            raise ValueError(
                f"{of}: vectors in a {name} with the metric {metric} must have length 1, got "
                f"{norms[bad[0]]:.4g} for id {ids[bad[0]]!r}"
                + (f" (and {len(bad) - 1} more)" if len(bad) > 1 else "")
                + "; use normalised embeddings or the cosine metric"
            )
    return ids, texts, vectors
