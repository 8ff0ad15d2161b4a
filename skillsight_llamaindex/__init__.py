"""SkillSight for LlamaIndex: a retriever, a node postprocessor, and how they learn an index."""

from skillsight_llamaindex import _dependency  # noqa: F401  first: see there
from skillsight_llamaindex._encoder import LlamaIndexEncoder
from skillsight_llamaindex._fitting import fit_index, fit_nodes
from skillsight_llamaindex._postprocessor import SkillSightPostprocessor
from skillsight_llamaindex._retriever import SkillSightRetriever
from skillsight_llamaindex._tools import SkillSightToolRetriever

__all__ = [
    "LlamaIndexEncoder",
    "SkillSightPostprocessor",
    "SkillSightRetriever",
    "SkillSightToolRetriever",
    "fit_index",
    "fit_nodes",
]
