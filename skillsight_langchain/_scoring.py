"""From what a store or a retriever returned to the best of it, as new documents with reasons."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from skillsight_core import RankedSkill, SkillSight
from skillsight_core._steps import Ask, Steps
from skillsight_core._validation import digest

Vectors = dict[str, list[float]]  # by text


def by_id(documents: Iterable[Document]) -> dict[str, Document]:
    """Documents by the ids that the calibrator knows them by; of equal ids the first stays.

    The id is ``Document.id``, else what Qdrant keeps as ``metadata["_id"]``, else the digest of
    the text that `SkillSight.fit` gives to texts without ids.
    """
    found: dict[str, Document] = {}
    seen: Counter[str] = Counter()
    for document in documents:
        own = document.id if document.id is not None else document.metadata.get("_id")
        if own is None:
            content = f"{digest(document.page_content):016x}"
            seen[content] += 1
            own = content if seen[content] == 1 else f"{content}-{seen[content]}"
        found.setdefault(str(own), document)
    return found


def guest_texts(calibrator: SkillSight, found: Mapping[str, Document | None]) -> dict[str, str]:
    """Texts of the documents that the calibrator does not know, by id."""
    new = ((id_, doc) for id_, doc in found.items() if id_ not in calibrator)
    return {id_: doc.page_content for id_, doc in new if doc is not None}


def ranked(
    calibrator: SkillSight,
    query: str,
    embedding: Sequence[float],
    ids: Sequence[str],
    guests: Mapping[str, str],
    vectors: Vectors,
    k: int,
) -> list[RankedSkill]:
    """The k best candidates, best first; guests are scored from their texts and these vectors."""
    return calibrator.score_candidates(
        query,
        embedding,
        ids,
        texts=[guests.get(id_) for id_ in ids],
        embeddings=[_usable(vectors.get(guests[id_])) if id_ in guests else None for id_ in ids],
        k=k,
    )


def beyond(candidates: list[RankedSkill], rest: list[RankedSkill]) -> list[RankedSkill]:
    """What follows the candidates: all in semantic order, just below the last of them."""
    score = float(np.nextafter(candidates[-1].score if candidates else 0.0, -np.inf))
    return [
        replace(hit, rank=rank, score=score, semantic_z=score, lexical_z=0.0)
        for rank, hit in enumerate(
            sorted(rest, key=lambda hit: -hit.semantic), start=len(candidates) + 1
        )
    ]


def described(hit: RankedSkill, document: Document) -> Document:
    """A new document with its score and the reasons for it."""
    reasons: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(hit).items()
        if name != "id"
    }
    if "relevance_score" in document.metadata:  # of an earlier step
        reasons["previous_relevance_score"] = document.metadata["relevance_score"]
    added = {"relevance_score": hit.score, "skillsight": reasons}
    return Document(
        id=hit.id if document.id is None and "_id" in document.metadata else document.id,
        page_content=document.page_content,
        metadata={**copy.deepcopy(document.metadata), **added},
    )


def embedded(
    embeddings: Embeddings, texts: Iterable[str], vectors: dict[str, list[float]]
) -> Steps[None]:
    """Add the vectors of texts that are not there yet, by one call."""
    new = sorted(set(texts).difference(vectors))
    if new:
        vectors.update(zip(new, (yield Ask(embeddings, "embed_documents", new)), strict=True))


def _usable(vector: list[float] | None) -> list[float] | None:
    """The vector, unless it has no direction; such a text has only its words."""
    norm = np.linalg.norm(vector) if vector is not None else 0.0
    return vector if np.isfinite(norm) and norm > 0.0 else None
