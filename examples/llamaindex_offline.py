"""What the LlamaIndex examples share: the example skills as nodes, and MiniLM without a network.

Run it to see how few words and dimensions make the background of the library.
"""

from __future__ import annotations

from pathlib import Path

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import TextNode

from skillsight_core import CachedEncoder, Encoder, SentenceTransformerEncoder, load_skills
from skillsight_llamaindex import fit_nodes


class MiniLM(BaseEmbedding):
    """The packaged all-MiniLM-L6-v2 as a LlamaIndex embedding model."""

    _encoder: Encoder = PrivateAttr()

    def __init__(self) -> None:
        encoder = CachedEncoder(SentenceTransformerEncoder())
        super().__init__(model_name=encoder.name)
        self._encoder = encoder

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._encoder.encode(texts).tolist()

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def skill_nodes() -> list[TextNode]:
    """One node for each skill of ``examples/library``; its area is the name of the folder."""
    return [
        TextNode(
            id_=skill.id,
            text=skill.text,
            metadata={"area": skill.id.partition("/")[0]},
            excluded_embed_metadata_keys=["area"],
        )
        for skill in load_skills(Path(__file__).parent / "library")
    ]


if __name__ == "__main__":
    calibrator = fit_nodes(skill_nodes(), embed_model=MiniLM())
    print(
        f"{calibrator.n_skills_} skills; {len(calibrator.generic_tokens_)} generic words span "
        f"{calibrator.background_rank_} of {calibrator.n_features_in_} dimensions"
    )
