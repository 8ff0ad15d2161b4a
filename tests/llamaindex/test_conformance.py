"""Our postprocessor and retriever against the conformance kit, over each store."""

from __future__ import annotations

from typing import ClassVar

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore

from skillsight_core import SkillSight
from skillsight_llamaindex import SkillSightPostprocessor, SkillSightRetriever, fit_index
from tests.llamaindex.conformance import PostprocessorConformance, RetrieverConformance
from tests.llamaindex.parts import QUERY, STORES, hash_embedding, make_index, make_nodes


class _OverStore:
    index: ClassVar[VectorStoreIndex]
    calibrator: ClassVar[SkillSight]

    @pytest.fixture(scope="class", params=STORES, autouse=True)
    @staticmethod
    def _store(request: pytest.FixtureRequest) -> None:
        request.cls.index = make_index(request.param, make_nodes(), hash_embedding())
        request.cls.calibrator = fit_index(request.cls.index)

    def query(self) -> str:
        return QUERY


class TestSkillSightRetriever(_OverStore, RetrieverConformance):
    def retriever(self, k: int = 3) -> SkillSightRetriever:
        return SkillSightRetriever(self.index, self.calibrator, k=k)


class TestSkillSightPostprocessor(_OverStore, PostprocessorConformance):
    def postprocessor(self, top_n: int = 3) -> SkillSightPostprocessor:
        return SkillSightPostprocessor(
            self.calibrator, top_n=top_n, embed_model=self.index._embed_model
        )

    def nodes(self) -> list[NodeWithScore]:
        return self.index.as_retriever(similarity_top_k=300).retrieve(QUERY)
