"""A LlamaIndex embedding model as the core sees it, and as queries use it."""

from __future__ import annotations

import numpy as np
from llama_index.core import Settings
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import QueryBundle
from numpy.typing import NDArray

from skillsight_core import SkillSight
from skillsight_core._steps import Ask, Steps

_UNNAMED = "unknown"  # what LlamaIndex calls a model whose author gave it no name


class LlamaIndexEncoder:
    """Encoder of the core that embeds texts, not queries, with a LlamaIndex embedding model.

    Parameters
    ----------
    embed_model : BaseEmbedding
        The model.
    """

    def __init__(self, embed_model: BaseEmbedding) -> None:
        self.embed_model = embed_model

    @property
    def name(self) -> str | None:
        """The model's ``model_name``; None where it has none of its own."""
        name = self.embed_model.model_name
        return None if name == _UNNAMED else name

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n, m), in their order, by one batched call; (0, 0) for none."""
        if not texts:
            return np.zeros((0, 0), np.float32)
        return np.asarray(self.embed_model.get_text_embedding_batch(texts), dtype=np.float32)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


def check_same_model(calibrator: SkillSight, embed_model: BaseEmbedding | None, *, of: str) -> None:
    """Refuse a model that is not the one that the calibrator's vectors came from."""
    if embed_model is None:
        return
    expected, got = calibrator.encoder_name_, LlamaIndexEncoder(embed_model).name
    if expected and got and expected != got:
        raise ValueError(
            f"{of}: embed_model must be the model of the calibrator, {expected!r}, got {got!r}"
        )


def query_embedding(bundle: QueryBundle, embed_model: BaseEmbedding | None) -> Steps[list[float]]:
    """The embedding that came with the query, else a new one; ``Settings`` when there is no model.

    The bundle stays as it is.
    """
    if bundle.embedding is not None:
        return bundle.embedding
    texts = bundle.embedding_strs or [bundle.query_str]  # none for an empty query
    model = embed_model or Settings.embed_model
    embedding: list[float] = yield Ask(model, "get_agg_embedding_from_queries", texts)
    return embedding
