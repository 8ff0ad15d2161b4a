"""Calibration inside an Embeddings, for stores that nothing else is known about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from langchain_core.embeddings import Embeddings

from skillsight_core import SkillSight
from skillsight_langchain._encoder import LangChainEncoder, check_same_model

_NOTHING = 1e-6  # length below which a projected query has no direction


class SkillSightEmbeddings(Embeddings):
    """Embeddings that make any store, untouched, rank by the calibrated semantic score.

    Queries lose the library's background, documents are embedded as ever: a store of unit vectors
    that ranks by cosine, inner product or L2 distance needs nothing else. Lexical evidence is not
    part of this route; `SkillSightRetriever` has both.

    Parameters
    ----------
    embeddings : Embeddings
        The model. Its documents must have unit length where the store ranks by inner product or
        L2 distance.
    calibrator : SkillSight
        Fitted on vectors of the same model.

    Raises
    ------
    NotFittedError
        The calibrator has not been fitted.
    ValueError
        The calibrator was fitted with another model.
    """

    def __init__(self, embeddings: Embeddings, calibrator: SkillSight) -> None:
        check_same_model(calibrator, embeddings, of="SkillSightEmbeddings")
        self.embeddings = embeddings
        self.calibrator = calibrator

    @classmethod
    def from_texts(cls, embeddings: Embeddings, texts: Iterable[str], **options: Any) -> Self:
        """Embed the texts of a library and learn its background.

        Parameters
        ----------
        embeddings : Embeddings
            The model.
        texts : iterable of str
            The library, or a fair sample of it.
        **options
            Parameters of `skillsight_core.SkillSight`.
        """
        encoder = LangChainEncoder(embeddings)
        texts = list(texts)
        calibrator = SkillSight(**options).fit(texts, encoder.encode(texts), encoder=encoder)
        return cls(embeddings, calibrator)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of texts, as the model gives them."""
        return self.embeddings.embed_documents(texts)

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of texts, as the model gives them."""
        return await self.embeddings.aembed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        """Vector of a query without the library's background; shorter than the model gives it."""
        return searched_with(self.calibrator, self.embeddings.embed_query(text))

    async def aembed_query(self, text: str) -> list[float]:
        """Vector of a query without the library's background; shorter than the model gives it."""
        return searched_with(self.calibrator, await self.embeddings.aembed_query(text))


def searched_with(calibrator: SkillSight, embedding: list[float]) -> list[float]:
    """The vector to search a store with: the query projected, unless nothing of it is left."""
    projected = calibrator.project(embedding)
    if np.linalg.norm(projected) <= _NOTHING * np.linalg.norm(embedding):
        return embedding  # cosine is not defined for a vector of zeros
    vector: list[float] = projected.tolist()
    return vector
