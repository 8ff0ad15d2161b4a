"""A library of skills for an agent."""

from __future__ import annotations

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import Field

from skillsight_core import Skill
from skillsight_langchain import SkillSightRetriever, skill_documents, skill_tools
from tests.langchain.conftest import CountingEmbeddings

SKILLS = [
    Skill("pdf/merge", "merge-pdf", "Merge PDF files into one.", "Open each file and append it."),
    Skill("git/review", "review", "Review a pull request.", "Read the diff from the top."),
    Skill("mail/reply", "reply", "Reply to a customer.", "Be friendly."),
    Skill("mail/archive", "archive", "Archive old mails.", ""),
    Skill("sql/tune", "tune", "Tune a slow database query.", "Look at the plan."),
    Skill("web/form", "form", "Build a form for a web page.", "Label every field."),
    Skill("web/table", "tables", "Build a table for a web page.", "Sort by a column."),
    Skill("data/table", "tables", "Read tables from a file.", "Guess the types."),
]


@pytest.fixture
def tools():
    store = InMemoryVectorStore(CountingEmbeddings())
    store.add_documents(skill_documents(SKILLS))
    return {
        tool.name: tool for tool in skill_tools(SKILLS, SkillSightRetriever.from_vectorstore(store))
    }


class Scripted(BaseChatModel):
    """Makes the calls of a script one after another, then answers."""

    calls: list[tuple[str, dict[str, str]]]
    shown: list[list[str]] = Field(default_factory=list)

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        self.shown.append([tool.name for tool in tools])
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        made = sum(message.type == "tool" for message in messages)
        message = AIMessage("done")
        if made < len(self.calls):
            name, arguments = self.calls[made]
            call = {"name": name, "args": arguments, "id": str(made)}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


@pytest.mark.parametrize("use_async", [False, True])
async def test_an_agent_searches_and_then_reads_one_skill(tools, use_async):
    script = [
        ("search_skills", {"query": "merge PDF files"}),
        ("load_skill", {"id": "pdf/merge"}),
    ]
    model = Scripted(calls=script)
    agent = create_agent(model, list(tools.values()))
    state = {"messages": [("human", "merge these")]}
    state = await agent.ainvoke(state) if use_async else agent.invoke(state)
    offered, loaded = (message for message in state["messages"] if message.type == "tool")
    lines = offered.text.splitlines()
    assert lines[0] == "- pdf/merge: Merge PDF files into one."
    assert len(lines) == 3
    assert not any(skill.body in offered.text for skill in SKILLS if skill.body)
    assert loaded.text == "Open each file and append it."
    assert state["messages"][-1].text == "done"
    assert model.shown[0] == ["search_skills", "load_skill"]


def test_only_the_query_and_the_id_are_asked_of_the_model(tools):
    assert list(tools["search_skills"].args) == ["query"]
    assert list(tools["load_skill"].args) == ["id"]


def test_a_skill_can_be_read_by_a_name_that_only_it_has(tools):
    load = tools["load_skill"]
    assert load.invoke({"id": "tune"}) == "Look at the plan."
    assert load.invoke({"id": "tables"}).startswith("There is no skill 'tables'.")


def test_an_unknown_id_gets_the_nearest_ones(tools):
    answer = tools["load_skill"].invoke({"id": "pdf-merge"})
    assert answer == "There is no skill 'pdf-merge'. Similar ids: pdf/merge." or (
        answer.startswith("There is no skill 'pdf-merge'. Similar ids: pdf/merge,")
    )


def test_a_skill_without_a_body_gives_its_description(tools):
    assert tools["load_skill"].invoke({"id": "mail/archive"}) == "Archive old mails."


def test_documents_of_other_things_are_not_offered(tools):
    store = InMemoryVectorStore(CountingEmbeddings())
    store.add_texts([f"another thing {n}" for n in range(8)])
    search, _ = skill_tools(SKILLS, SkillSightRetriever.from_vectorstore(store))
    assert search.invoke({"query": "thing"}) == "No skill fits this task."
