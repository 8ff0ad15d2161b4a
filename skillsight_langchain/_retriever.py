"""The drop-in retriever over a LangChain vector store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from skillsight_core import RankedSkill, SkillSight
from skillsight_core._steps import Ask, Steps, arun, run
from skillsight_core._validation import check_count
from skillsight_langchain._adapters import store_of
from skillsight_langchain._embeddings import SkillSightEmbeddings, searched_with
from skillsight_langchain._encoder import LangChainEncoder, check_same_model
from skillsight_langchain._scoring import (
    Vectors,
    beyond,
    by_id,
    described,
    embedded,
    guest_texts,
    ranked,
)
from skillsight_langchain._stores import Found, Store, contents

_OF = "SkillSightRetriever"


class SkillSightRetriever(BaseRetriever):
    """Retriever that calibrates what a vector store finds; nothing is re-indexed.

    A call embeds the query once, searches the store once with the query without its background,
    and fuses what it finds with the lexical evidence of the calibrator. Candidates that words
    alone brought are fetched from the store under the same filter. What the store does not return
    does not exist; documents that the calibrator does not know, since they were added later, are
    scored from their own text, after one call of ``embed_documents`` for the new ones.

    Parameters
    ----------
    vectorstore : VectorStore
        Chroma, FAISS, InMemoryVectorStore, PGVectorStore, QdrantVectorStore, or another that can
        be searched by vector; ranking by cosine, or by inner product or L2 distance of unit
        vectors. An approximate index should be searched with its ``ef_search`` well above the
        calibrator's ``pool_size``.
    calibrator : SkillSight
        Fitted on the same documents by the same ids; see `from_vectorstore`.
    embeddings : Embeddings, optional
        The model of the store's vectors; the store's own by default.
    k : int, default 3
        How many documents to return; also an argument of ``invoke``.
    search_kwargs : dict, optional
        Passed on to every search of the store, such as ``filter``; so are further arguments of
        ``invoke``. Under arguments that documents cannot be fetched by id under, the store's own
        candidates are the only ones.

    Notes
    -----
    Documents are returned as new objects: id and metadata are kept, ``relevance_score`` and
    ``skillsight``, the decomposition of the score, are added to the metadata.

    Examples
    --------
    >>> retriever = SkillSightRetriever.from_vectorstore(store, k=3)  # doctest: +SKIP
    >>> retriever.invoke("merge two PDFs", filter={"team": "docs"})  # doctest: +SKIP
    """

    vectorstore: VectorStore
    calibrator: SkillSight
    embeddings: Embeddings | None = None
    k: int = 3
    search_kwargs: dict[str, Any] = Field(default_factory=dict)

    _vectors: Vectors = PrivateAttr(default_factory=dict)  # of documents that came later

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_count(self.k, "k", at_least=0, of=_OF)
        check_same_model(self.calibrator, self._model(), of=_OF)
        return self

    @classmethod
    def from_vectorstore(
        cls,
        vectorstore: VectorStore,
        *,
        embeddings: Embeddings | None = None,
        documents: Iterable[Document] | None = None,
        calibrator: SkillSight | None = None,
        k: int = 3,
        search_kwargs: dict[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Learn everything that a store holds and return the retriever over it.

        Parameters
        ----------
        vectorstore, embeddings, k, search_kwargs
            As for the retriever.
        documents : iterable of Document, optional
            What the store holds, where that cannot be listed; embedded here once more.
        calibrator : SkillSight, optional
            One that is fitted already is used as it is; one that is not is fitted.
        **options
            Parameters of a new `skillsight_core.SkillSight`.

        Raises
        ------
        ValueError
            There is no embedding model, the contents of the store cannot be listed, its metric
            cannot be served, or vectors do not have the length that its metric needs.
        """
        of = f"{_OF}.from_vectorstore"
        if calibrator is not None and options:
            raise ValueError(
                f"{of}: options are for a new calibrator and calibrator was passed, too, got "
                f"{sorted(options)}"
            )
        new = SkillSight(**options) if calibrator is None else calibrator
        if not new.__sklearn_is_fitted__():
            _learn(new, vectorstore, _model(vectorstore, embeddings), documents, of=of)
        return cls(
            vectorstore=vectorstore,
            calibrator=new,
            embeddings=embeddings,
            k=k,
            search_kwargs=search_kwargs or {},
        )

    def refresh(self, documents: Iterable[Document] | None = None) -> Self:
        """Learn again what the store holds now; calls go on meanwhile with what was learned.

        Parameters
        ----------
        documents : iterable of Document, optional
            As for `from_vectorstore`.
        """
        of = f"{_OF}.refresh"
        _learn(self.calibrator, self.vectorstore, self._model(), documents, of=of)
        self._vectors = {}
        return self

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        return run(self._steps(query, kwargs))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        return await arun(self._steps(query, kwargs))

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        return {
            **super()._get_ls_params(**kwargs),
            "ls_vector_store_provider": type(self.vectorstore).__name__,
            "ls_embedding_provider": type(self._model()).__name__,
        }

    def _steps(self, query: str, kwargs: dict[str, Any]) -> Steps[list[Document]]:
        options = {**self.search_kwargs, **kwargs}
        k = check_count(options.pop("k", self.k), "k", at_least=0, of=_OF)
        if k == 0:
            return []
        calibrator, model, store = self.calibrator, self._model(), store_of(self.vectorstore)
        size = calibrator.pool_size
        embedding = yield Ask(model, "embed_query", query)
        vector = searched_with(calibrator, embedding)
        found: Found = yield Ask(store, "search", vector, max(size, k), **options)
        pool = list(found)[:size]

        # By words alone. Whether these exist and pass a filter, only the store can tell.
        conditions = {name: value for name, value in options.items() if value is not None}
        lexical: list[str] = []
        if store.can_fetch(conditions):
            semantic = set(pool)
            lexical = [i for i in calibrator.lexical_candidates(query) if i not in semantic]
        if conditions:
            unseen = [id_ for id_ in lexical if id_ not in found]
            passing: Found = (yield Ask(store, "passing", unseen, **options)) if unseen else {}
            found |= passing
            lexical = [id_ for id_ in lexical if id_ in found]

        # Documents that came later are scored from their texts.
        new = [id_ for id_, doc in found.items() if doc is None and id_ not in calibrator]
        gone = yield from _bring(store, new, found)
        pool = [id_ for id_ in pool if id_ not in gone]
        guests = guest_texts(calibrator, found)
        yield from embedded(model, guests.values(), self._vectors)

        def best() -> list[RankedSkill]:
            candidates = dict.fromkeys(pool + lexical)
            hits = ranked(calibrator, query, embedding, [*candidates], guests, self._vectors, k)
            if k > len(hits):
                rest = [id_ for id_ in found if id_ not in candidates]
                more = ranked(calibrator, query, embedding, rest, guests, self._vectors, k)
                hits += beyond(hits, more)
            return hits[:k]

        # Nearly all exist, and only those that are returned are fetched.
        hits = best()
        while unseen := [hit.id for hit in hits if found.get(hit.id) is None]:
            if not (gone := (yield from _bring(store, unseen, found))):
                break
            others = [id_ for id_ in lexical if id_ not in found and id_ not in gone]
            gone |= yield from _bring(store, others, found)
            pool = [id_ for id_ in pool if id_ not in gone]
            lexical = [id_ for id_ in lexical if id_ not in gone]
            hits = best()
        return [described(hit, document) for hit in hits if (document := found[hit.id])]

    def _model(self) -> Embeddings:
        return _model(self.vectorstore, self.embeddings)


def _model(vectorstore: VectorStore, embeddings: Embeddings | None) -> Embeddings:
    """The model that queries and new documents are embedded with."""
    model = vectorstore.embeddings if embeddings is None else embeddings
    if model is None:
        raise ValueError(
            f"{_OF}: embeddings must be the model of the store's vectors, got None, and the "
            f"{type(vectorstore).__name__} has none of its own"
        )
    # One that projects already would hide the background part of the query.
    return model.embeddings if isinstance(model, SkillSightEmbeddings) else model


def _bring(store: Store, ids: list[str], found: Found) -> Steps[set[str]]:
    """Fetch documents into what was found; the ids of those that the store does not have."""
    fetched = by_id((yield Ask(store, "fetch", ids))) if ids else {}
    gone = set(ids).difference(fetched)
    for id_ in gone:
        found.pop(id_, None)
    found |= fetched
    return gone


def _learn(
    calibrator: SkillSight,
    vectorstore: VectorStore,
    model: Embeddings,
    documents: Iterable[Document] | None,
    *,
    of: str,
) -> None:
    encoder = LangChainEncoder(model)
    if documents is None:
        ids, texts, vectors = contents(store_of(vectorstore), of=of)
    else:
        listed = by_id(documents)
        ids, texts = list(listed), [document.page_content for document in listed.values()]
        vectors = encoder.encode(texts)
    calibrator.fit(texts, vectors, ids, encoder=encoder)
