"""A library of skills for an agent: find some by name and description, then read one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool

from skillsight_core import Skill

_SEARCH = (
    "Find the skills that help with a task. Returns the id and the description of the best ones; "
    "read one with load_skill before you use it."
)
_LOAD = "Read the full instructions of one skill, by an id that search_skills returned."


def skill_documents(skills: Iterable[Skill]) -> list[Document]:
    """Skills as documents to add to a vector store.

    The text of a skill is the content, its id is ``Document.id`` and ``metadata["skill"]``; name
    and description are in the metadata, too.
    """
    return [
        Document(
            id=skill.id,
            page_content=skill.text,
            metadata={
                "skill": skill.id,
                "name": skill.name,
                "description": skill.description,
            },
        )
        for skill in skills
    ]


def skill_tools(library: Sequence[Skill], retriever: BaseRetriever) -> list[BaseTool]:
    """Make the tools ``search_skills`` and ``load_skill`` for an agent.

    A search costs the model's context some names and descriptions; only a skill that it loads
    costs a whole body.

    Parameters
    ----------
    library : sequence of Skill
        The skills, such as `skillsight_core.load_skills` returns.
    retriever : BaseRetriever
        Finds the documents of `skill_documents`; as many are offered as it returns.

    Returns
    -------
    list of BaseTool
        Both work in sync and async agents.
    """
    skills = {skill.id: skill for skill in library}

    def listed(documents: Iterable[Document]) -> str:
        ids = [str(d.metadata.get("skill", d.id)) for d in documents]
        lines = [f"- {id_}: {skills[id_].description}" for id_ in ids if id_ in skills]
        return "\n".join(lines) or "No skill fits this task."

    def search_skills(query: str, config: RunnableConfig) -> str:
        return listed(retriever.invoke(query, config))

    async def asearch_skills(query: str, config: RunnableConfig) -> str:
        return listed(await retriever.ainvoke(query, config))

    def load_skill(id: str) -> str:
        named = [skill for skill in skills.values() if skill.name == id]
        skill = skills.get(id) or (named[0] if len(named) == 1 else None)
        if skill is None:
            near = difflib.get_close_matches(id, skills, n=3, cutoff=0.3)
            hint = f" Similar ids: {', '.join(near)}." if near else ""
            return f"There is no skill {id!r}.{hint}"
        return skill.body or skill.description

    async def aload_skill(id: str) -> str:
        return load_skill(id)

    return [
        StructuredTool.from_function(
            search_skills, asearch_skills, name="search_skills", description=_SEARCH
        ),
        StructuredTool.from_function(load_skill, aload_skill, name="load_skill", description=_LOAD),
    ]
