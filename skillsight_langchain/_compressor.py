"""Calibrated ranking of what another retriever returned."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from pydantic import ConfigDict, PrivateAttr, model_validator

from skillsight_core import SkillSight
from skillsight_core._steps import Ask, Steps, arun, run
from skillsight_core._validation import check_count
from skillsight_langchain._encoder import check_same_model
from skillsight_langchain._scoring import (
    Vectors,
    by_id,
    described,
    embedded,
    guest_texts,
    ranked,
)


class SkillSightCompressor(BaseDocumentCompressor):
    """Rerank the documents of any retriever, for ``ContextualCompressionRetriever``.

    It can only choose among what it is given: a retriever that returns few documents found by
    plain similarity has lost the others. `SkillSightRetriever` searches the store itself.

    Parameters
    ----------
    calibrator : SkillSight
        Fitted on the library. Documents are known by their id, or by their text where the
        calibrator was fitted without ids; others are scored from their own text and embedding.
    embeddings : Embeddings
        The model of the calibrator's vectors.
    top_n : int, default 3
        How many documents to return.
    """

    calibrator: SkillSight
    embeddings: Embeddings
    top_n: int = 3

    _vectors: Vectors = PrivateAttr(default_factory=dict)

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    @model_validator(mode="after")
    def _check(self) -> SkillSightCompressor:
        check_count(self.top_n, "top_n", at_least=0, of="SkillSightCompressor")
        check_same_model(self.calibrator, self.embeddings, of="SkillSightCompressor")
        return self

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks = None
    ) -> Sequence[Document]:
        """Return the best documents as new ones, with scores and reasons in their metadata.

        Of documents with the same id, the first is kept.
        """
        return run(self._steps(documents, query))

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks = None
    ) -> Sequence[Document]:
        """Return the best documents as `compress_documents` does."""
        return await arun(self._steps(documents, query))

    def _steps(self, documents: Sequence[Document], query: str) -> Steps[list[Document]]:
        if not documents or self.top_n == 0:
            return []
        embedding = yield Ask(self.embeddings, "embed_query", query)
        found = by_id(documents)
        guests = guest_texts(self.calibrator, found)
        yield from embedded(self.embeddings, guests.values(), self._vectors)
        vectors, k = self._vectors, self.top_n
        hits = ranked(self.calibrator, query, embedding, list(found), guests, vectors, k)
        return [described(hit, found[hit.id]) for hit in hits]
