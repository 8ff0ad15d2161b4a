"""Between LangChain's Embeddings and the core's Encoder, in both directions."""

from __future__ import annotations

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from skillsight_core import Encoder, SentenceTransformerEncoder, SkillSight

# What integrations call the model they run.
_MODEL_ATTRIBUTES = ("model", "model_name", "model_id", "repo_id", "azure_deployment")


class LangChainEncoder:
    """Encoder of the core that embeds texts, not queries, with a LangChain Embeddings.

    Parameters
    ----------
    embeddings : Embeddings
        The model.
    """

    def __init__(self, embeddings: Embeddings) -> None:
        self.embeddings = embeddings

    @property
    def name(self) -> str | None:
        """Name of the model, e.g. "OpenAIEmbeddings:text-embedding-3-small".

        An Embeddings with an attribute ``name`` says it itself; otherwise its class and model
        make the name, and the number of dimensions where one was chosen. None without a model.
        """
        own = getattr(self.embeddings, "name", None)
        if isinstance(own, str):
            return own
        for attribute in _MODEL_ATTRIBUTES:
            model = getattr(self.embeddings, attribute, None)
            if isinstance(model, str) and model:
                dimensions = getattr(self.embeddings, "dimensions", None)
                suffix = f":{dimensions}" if isinstance(dimensions, int) else ""
                return f"{type(self.embeddings).__name__}:{model}{suffix}"
        return None

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n, m), in their order, by one call; (0, 0) for none."""
        if not texts:
            return np.zeros((0, 0), np.float32)
        return np.asarray(self.embeddings.embed_documents(texts), dtype=np.float32)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class EncoderEmbeddings(Embeddings):
    """Embeddings for any LangChain store, computed by an Encoder of the core.

    Parameters
    ----------
    encoder : Encoder, optional
        A `skillsight_core.SentenceTransformerEncoder` by default, which needs no network where
        ``skillsight[offline]`` is installed.
    """

    def __init__(self, encoder: Encoder | None = None) -> None:
        self.encoder: Encoder = SentenceTransformerEncoder() if encoder is None else encoder

    @property
    def name(self) -> str | None:
        """Name of the encoder."""
        return getattr(self.encoder, "name", None)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of texts."""
        vectors: list[list[float]] = np.asarray(self.encoder.encode(texts)).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Vector of a query; the encoder makes no difference between queries and texts."""
        return self.embed_documents([text])[0]


def check_same_model(calibrator: SkillSight, embeddings: Embeddings, *, of: str) -> None:
    """Refuse an Embeddings that is not the one that the calibrator's vectors came from."""
    expected, got = calibrator.encoder_name_, LangChainEncoder(embeddings).name
    if expected and got and expected != got:
        raise ValueError(
            f"{of}: embeddings must be the model of the calibrator, {expected!r}, got {got!r}"
        )
