"""From a pool of nodes to the best of them, as new objects with the reasons for their place."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle

from skillsight_core import RankedSkill, SkillSight, SkillSightWarning
from skillsight_llamaindex._encoder import LlamaIndexEncoder

Pool = dict[str, NodeWithScore]

_ADDED = ["retrieval_score", "skillsight"]  # keys of metadata, kept from language models


def node_text(node: BaseNode) -> str:
    """The text that LlamaIndex embeds; here it is tokenised, too."""
    return node.get_content(metadata_mode=MetadataMode.EMBED)


def by_id(nodes: Sequence[NodeWithScore]) -> Pool:
    """Nodes by their ids; of those with one id the first counts."""
    return {hit.node.node_id: hit for hit in reversed(nodes)}


def rank(
    calibrator: SkillSight,
    bundle: QueryBundle,
    embedding: Sequence[float],
    pool: Pool,
    others: Sequence[str] = (),
    *,
    k: int | None,
    embed_model: BaseEmbedding | None,
) -> list[RankedSkill]:
    """The k best of a pool, or all, best first.

    Nodes that the calibrator does not know are scored from their own text and embedding. Those
    without an embedding are embedded by one batched call where there is a model. ``others`` are
    candidates whose nodes have not been read; the calibrator knows them.
    """
    guests = {id_: hit.node for id_, hit in pool.items() if id_ not in calibrator}
    texts = {id_: node_text(node) for id_, node in guests.items()}
    vectors = {id_: node.embedding for id_, node in guests.items()}
    bare = sorted(id_ for id_, vector in vectors.items() if vector is None and texts[id_].strip())
    if bare and embed_model is not None:
        encoded = LlamaIndexEncoder(embed_model).encode([texts[id_] for id_ in bare])
        vectors.update(zip(bare, encoded.tolist(), strict=True))
    ids = [*pool, *others]
    return calibrator.score_candidates(
        bundle.query_str,
        embedding,
        ids,
        texts=[texts.get(id_) for id_ in ids],
        embeddings=[vectors.get(id_) for id_ in ids],
        k=k,
    )


def described(
    pool: Pool, ranked: Sequence[RankedSkill], k: int, *, unique_documents: bool
) -> list[NodeWithScore]:
    """The first k as new nodes with the reasons for their place."""
    found = [(pool[skill.id], skill) for skill in ranked]
    if unique_documents:
        found = list(_first_of_documents(found))
    return [_described(*pair) for pair in found[:k]]


def warn_of_small_pool(calibrator: SkillSight, n_nodes: int, *, of: str) -> bool:
    """Say that a pool is smaller than the calibration's; whether there was reason to."""
    wanted = min(calibrator.pool_size, calibrator.n_skills_)
    if n_nodes >= wanted:
        return False
    warnings.warn(
        f"{of}: the pool has {n_nodes} nodes, calibration is made for {wanted}, so good nodes may "
        f"be missing; retrieve with similarity_top_k={calibrator.pool_size}, or use "
        "SkillSightRetriever over the index (this is said once)",
        SkillSightWarning,
        stacklevel=2,
    )
    return True


def _first_of_documents(
    found: list[tuple[NodeWithScore, RankedSkill]],
) -> Iterator[tuple[NodeWithScore, RankedSkill]]:
    seen = set()
    for hit, skill in found:
        document = hit.node.ref_doc_id or hit.node.node_id
        if document not in seen:
            seen.add(document)
            yield hit, skill


def _described(hit: NodeWithScore, skill: RankedSkill) -> NodeWithScore:
    node = hit.node
    reasons = {name: _plain(value) for name, value in asdict(skill).items() if name != "id"}
    added = {"retrieval_score": hit.score, "skillsight": reasons}
    copy = node.model_copy(
        update={
            "metadata": {**node.metadata, **added},
            "excluded_embed_metadata_keys": [*node.excluded_embed_metadata_keys, *_ADDED],
            "excluded_llm_metadata_keys": [*node.excluded_llm_metadata_keys, *_ADDED],
            "relationships": dict(node.relationships),
        }
    )
    return NodeWithScore(node=copy, score=skill.score)


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
