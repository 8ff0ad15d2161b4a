"""SkillSight for LangChain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillsight_core._errors import require
from skillsight_langchain._compressor import SkillSightCompressor
from skillsight_langchain._embeddings import SkillSightEmbeddings
from skillsight_langchain._encoder import EncoderEmbeddings, LangChainEncoder
from skillsight_langchain._retriever import SkillSightRetriever
from skillsight_langchain._skill_tools import skill_documents, skill_tools
from skillsight_langchain._tools import select_tools

if TYPE_CHECKING:
    from skillsight_langchain._middleware import SkillSightToolSelectorMiddleware

__all__ = [
    "EncoderEmbeddings",
    "LangChainEncoder",
    "SkillSightCompressor",
    "SkillSightEmbeddings",
    "SkillSightRetriever",
    "SkillSightToolSelectorMiddleware",
    "select_tools",
    "skill_documents",
    "skill_tools",
]


def __getattr__(name: str) -> Any:
    """Import the middleware, which alone needs ``langchain``, when it is asked for."""
    if name != "SkillSightToolSelectorMiddleware":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require("langchain.agents.middleware", extra="langchain-agents", purpose="agent middleware")
    from skillsight_langchain._middleware import SkillSightToolSelectorMiddleware

    return SkillSightToolSelectorMiddleware
