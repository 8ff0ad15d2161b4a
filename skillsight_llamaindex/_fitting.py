"""Learning a calibrator from what LlamaIndex holds."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode
from numpy.typing import NDArray

from skillsight_core import SkillSight, SkillSightWarning
from skillsight_llamaindex._encoder import LlamaIndexEncoder
from skillsight_llamaindex._scoring import node_text
from skillsight_llamaindex._stores import adapter_of

_UNIT = 1e-2  # how far from 1 a norm may be; half precision is off by less


def fit_nodes(
    nodes: Iterable[BaseNode], *, embed_model: BaseEmbedding | None = None, **options: Any
) -> SkillSight:
    """Learn a library from nodes.

    The ids are the node ids; the texts are what LlamaIndex embeds, the content with the metadata
    that the node shows to the embedding model.

    Parameters
    ----------
    nodes : iterable of BaseNode
        Those with an embedding keep it, the others are embedded by one batched call. None is
        changed.
    embed_model : BaseEmbedding, optional
        The model of the embeddings; needed where nodes have none.
    **options
        Parameters of `skillsight_core.SkillSight`.

    Returns
    -------
    SkillSight
        Fitted; its encoder's name is the ``model_name``.

    Raises
    ------
    ValueError
        A node has no embedding and there is no model, or the nodes are refused by
        `skillsight_core.SkillSight.fit`.
    """
    listed = list(nodes)
    texts = [node_text(node) for node in listed]
    bare = [i for i, node in enumerate(listed) if node.embedding is None]
    vectors: list[Any] = [node.embedding for node in listed]
    if bare:
        if embed_model is None:
            raise ValueError(
                f"fit_nodes: embed_model must be given for nodes without an embedding, got None "
                f"and {len(bare)} such nodes, first {listed[bare[0]].node_id!r}"
            )
        encoded = LlamaIndexEncoder(embed_model).encode([texts[i] for i in bare])
        for i, vector in zip(bare, encoded, strict=True):
            vectors[i] = vector
    ids = [node.node_id for node in listed]
    return SkillSight(**options).fit(texts, vectors, ids, encoder=_encoder(embed_model))


def fit_index(
    index: VectorStoreIndex,
    *,
    nodes: Sequence[BaseNode] | None = None,
    embed_model: BaseEmbedding | None = None,
    **options: Any,
) -> SkillSight:
    """Learn a library from everything that an index holds, with the vectors stored there.

    Parameters
    ----------
    index : VectorStoreIndex
        Over a SimpleVectorStore, Chroma, Qdrant or Faiss; other stores need ``nodes``.
    nodes : sequence of BaseNode, optional
        The nodes of the index, for stores that cannot be listed; see `fit_nodes`.
    embed_model : BaseEmbedding, optional
        The model of the index by default.
    **options
        Parameters of `skillsight_core.SkillSight`.

    Returns
    -------
    SkillSight
        Fitted, with the node ids as ids.

    Raises
    ------
    ValueError
        The store cannot be listed and no nodes are given, or it compares vectors by a metric
        that projected queries cannot serve.
    TypeError
        ``index`` is not a VectorStoreIndex.

    Warns
    -----
    SkillSightWarning
        The store compares by distance or inner product and holds vectors that are not of unit
        length, which it cannot search right.
    """
    check_index(index, of="fit_index")
    model = embed_model or index._embed_model
    adapter = adapter_of(index.vector_store)
    metric = adapter.metric(index.vector_store)
    if metric not in ("cosine", "l2", "ip"):
        raise ValueError(
            f"fit_index: the store of the index must compare by cosine, inner product or "
            f"Euclidean distance, got {metric}"
        )
    if nodes is not None:
        return fit_nodes(nodes, embed_model=model, **options)
    texts: list[str] = []
    ids: list[str] = []
    pages: list[NDArray[np.float32]] = []
    for found, vectors in adapter.pages(index):
        texts += [node_text(node) for node in found]
        ids += [node.node_id for node in found]
        pages.append(vectors)
    embeddings = np.concatenate([page for page in pages if len(page)]) if ids else np.zeros((0, 0))
    if metric != "cosine":
        _warn_of_norms(embeddings, ids, metric)
    return SkillSight(**options).fit(texts, embeddings, ids, encoder=_encoder(model))


def check_index(index: object, *, of: str) -> None:
    if not isinstance(index, VectorStoreIndex):
        raise TypeError(f"{of}: index must be a VectorStoreIndex, got {type(index).__name__}")


def _encoder(embed_model: BaseEmbedding | None) -> LlamaIndexEncoder | None:
    return None if embed_model is None else LlamaIndexEncoder(embed_model)


def _warn_of_norms(embeddings: NDArray[np.floating], ids: list[str], metric: str) -> None:
    off = np.flatnonzero(np.abs(np.linalg.norm(embeddings, axis=1) - 1.0) > _UNIT)
    if len(off):
        first = ", ".join(repr(ids[i]) for i in off[:3])
        warnings.warn(
            f"fit_index: {len(off)} of {len(ids)} vectors are not of unit length, so the store, "
            f"which compares by {metric}, will not find the right candidates: {first}",
            SkillSightWarning,
            stacklevel=3,
        )
