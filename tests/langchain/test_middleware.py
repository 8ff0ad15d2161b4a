"""The middleware in real agents, with a scripted model; and the Runnable."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ModelCallLimitMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import StructuredTool, tool
from pydantic import BaseModel, Field

from skillsight_core import SkillSightWarning
from skillsight_langchain import SkillSightToolSelectorMiddleware, select_tools
from tests.conftest import ROOT
from tests.fakes import HashEncoder

TEXTS = {
    "get_weather": "Current weather in a city",
    "get_forecast": "Weather forecast for the coming days",
    "send_email": "Send an electronic mail to somebody",
    "search_web": "Search the web for pages",
    "create_invoice": "Draft an invoice for an order",
    "play_track": "Play a song on the speaker",
    "translate": "Translate a sentence into French",
}


def made(name: str, text: str, ran: list[str] | None = None) -> StructuredTool:
    def run(what: str = "") -> str:
        if ran is not None:
            ran.append(name)
        return f"{name} done"

    return StructuredTool.from_function(run, name=name, description=text)


def toolbox(ran: list[str] | None = None) -> list[StructuredTool]:
    return [made(name, text, ran) for name, text in TEXTS.items()]


def called(tool: dict[str, Any]) -> str:
    return tool.get("name") or tool["type"]


class ScriptedModel(BaseChatModel):
    """Calls the tools of a script, one for each turn of the model, and then answers.

    Remembers the names of the tools that it was shown each time.
    """

    script: list[str] = Field(default_factory=list)
    seen: list[list[str]] = Field(default_factory=list)
    choices: list[Any] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools, *, tool_choice=None, **kwargs):
        self.choices.append(tool_choice)
        names = [called(t) if isinstance(t, dict) else t.name for t in tools]
        return self.bind(names=names, **kwargs)

    def _generate(self, messages, stop=None, run_manager=None, names=(), **kwargs):
        self.seen.append(list(names))
        step = len(self.seen) - 1
        if step < len(self.script) and self.script[step]:
            call = {"name": self.script[step], "args": {}, "id": f"call-{step}"}
            message = AIMessage("", tool_calls=[call])
        else:
            message = AIMessage("finished")
        return ChatResult(generations=[ChatGeneration(message=message)])


def selecting(**options) -> SkillSightToolSelectorMiddleware:
    return SkillSightToolSelectorMiddleware(**{"encoder": HashEncoder(), "max_tools": 2, **options})


async def run(agent, text, *, use_async: bool, before=()):
    state = {"messages": [*before, HumanMessage(text)]}
    return await agent.ainvoke(state) if use_async else agent.invoke(state)


BOTH = pytest.mark.parametrize("use_async", [False, True], ids=["sync", "async"])


# -- selecting -----------------------------------------------------------------------------------


@BOTH
async def test_the_agent_sees_few_tools_and_runs_the_one_it_calls(use_async):
    ran: list[str] = []
    model = ScriptedModel(script=["play_track"])
    others = [
        TodoListMiddleware(),
        SummarizationMiddleware(ScriptedModel(), trigger=("messages", 100)),
        ModelCallLimitMiddleware(run_limit=5),
    ]
    agent = create_agent(model, toolbox(ran), middleware=[*others, selecting()])
    result = await run(agent, "play a song", use_async=use_async)
    assert ran == ["play_track"]
    assert result["messages"][-1].content == "finished"
    for seen in model.seen:
        assert {"play_track", "write_todos"} <= set(seen)
        assert len(seen) == 3


@BOTH
async def test_the_list_is_the_same_throughout_a_turn_and_in_the_agents_order(use_async):
    model = ScriptedModel(script=["get_forecast", "get_weather", "get_forecast"])
    agent = create_agent(model, toolbox(), middleware=[selecting()])
    await run(agent, "weather forecast in my city", use_async=use_async)
    assert model.seen == [["get_weather", "get_forecast"]] * 4


@BOTH
async def test_do_it_selects_for_what_was_asked_before(use_async):
    model = ScriptedModel()
    agent = create_agent(model, toolbox(), middleware=[selecting()])
    before = [HumanMessage("weather forecast for Paris"), AIMessage("Shall I look it up?")]
    await run(agent, "do it", use_async=use_async, before=before)
    assert "get_forecast" in model.seen[0]


@BOTH
async def test_tools_that_were_called_stay_bound_in_later_turns(use_async):
    model = ScriptedModel()
    agent = create_agent(model, toolbox(), middleware=[selecting(max_tools=1)])
    before = [
        HumanMessage("draft it"),
        AIMessage("", tool_calls=[{"name": "create_invoice", "args": {}, "id": "1"}]),
        ToolMessage("done", tool_call_id="1"),
        AIMessage("There it is."),
    ]
    question = "translate a sentence into French, and " + "please " * 100  # no room for context
    await run(agent, question, use_async=use_async, before=before)
    assert model.seen == [["create_invoice", "translate"]]


def test_a_named_tool_is_bound():
    model = ScriptedModel()
    create_agent(model, toolbox(), middleware=[selecting(max_tools=0)]).invoke(
        {"messages": [HumanMessage("use send_email now")]}
    )
    assert model.seen == [["send_email"]]


def test_query_from_messages_and_min_evidence_reach_the_selector():
    model = ScriptedModel()
    hooked = selecting(query_from_messages=lambda messages: "play a song", min_evidence=0.4)
    create_agent(model, toolbox(), middleware=[hooked]).invoke({"messages": [HumanMessage("x")]})
    assert model.seen == [["play_track"]]


def test_the_forced_tool_is_bound():
    class Force(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            return handler(request.override(tool_choice=choice))

    for choice in ("translate", {"type": "function", "function": {"name": "translate"}}):
        model = ScriptedModel()
        agent = create_agent(model, toolbox(), middleware=[Force(), selecting(max_tools=1)])
        agent.invoke({"messages": [HumanMessage("play a song")]})
        assert model.seen == [["play_track", "translate"]]
        assert model.choices == [choice]


# -- what passes through -------------------------------------------------------------------------


@tool
def note(text: str) -> str:
    """Keep a note."""
    return text


class Notes(AgentMiddleware):
    tools = [note]  # noqa: RUF012


def test_tools_of_other_middleware_pass_through():
    def ls(path: str) -> str:
        """List files."""
        return path

    def task(what: str) -> str:
        """Ask a subagent."""
        return what

    class Files(AgentMiddleware):
        def __init__(self):
            super().__init__()
            self.tools = [StructuredTool.from_function(f) for f in (ls, task)]

    ls.__module__ = task.__module__ = "deepagents.middleware.filesystem"
    model = ScriptedModel()
    stack = [TodoListMiddleware(), Files(), Notes(), selecting(max_tools=1)]
    create_agent(model, toolbox(), middleware=stack).invoke(
        {"messages": [HumanMessage("play a song")]}
    )
    assert model.seen == [["write_todos", "ls", "task", "note", "play_track"]]


def test_tools_that_the_provider_runs_and_always_included_ones_keep_their_places():
    model = ScriptedModel()
    tools = [*toolbox(), {"type": "web_search"}]
    middleware = selecting(max_tools=1, always_include=["get_weather"])
    agent = create_agent(model, tools, middleware=[middleware])
    agent.invoke({"messages": [HumanMessage("play a song")]})
    assert model.seen == [["get_weather", "play_track", "web_search"]]


@BOTH
async def test_a_missing_name_in_always_include_warns_and_the_agent_goes_on(use_async):
    model = ScriptedModel()
    agent = create_agent(model, toolbox(), middleware=[selecting(always_include=["nope"])])
    with pytest.warns(SkillSightWarning, match=r"always_include must be names of tools.*'nope'"):
        await run(agent, "play a song", use_async=use_async)
    assert len(model.seen[0]) == 2


def test_the_tool_of_a_structured_answer_stays():
    class Answer(BaseModel):
        """The answer."""

        text: str = "x"

    model = ScriptedModel(script=["play_track", "Answer"])
    agent = create_agent(
        model, toolbox(), middleware=[selecting(max_tools=1)], response_format=ToolStrategy(Answer)
    )
    result = agent.invoke({"messages": [HumanMessage("play a song")]})
    assert model.seen == [["play_track", "Answer"]] * 2
    assert result["structured_response"] == Answer()


# -- when something is wrong ---------------------------------------------------------------------


class Broken:
    def encode(self, texts):
        raise RuntimeError("out of memory")


@BOTH
async def test_all_tools_are_offered_when_selecting_fails(use_async):
    model = ScriptedModel(script=["play_track"])
    agent = create_agent(model, toolbox(), middleware=[selecting(encoder=Broken())])
    with pytest.warns(SkillSightWarning, match=r"all 7 tools are offered, .*out of memory"):
        result = await run(agent, "play a song", use_async=use_async)
    assert model.seen == [list(TEXTS)] * 2
    assert result["messages"][-1].content == "finished"


@BOTH
async def test_an_error_of_the_model_is_not_taken_for_one_of_selecting(use_async):
    class Failing(ScriptedModel):
        def _generate(self, *args, **kwargs):
            self.seen.append([])
            raise ConnectionError("no route")

    model = Failing()
    agent = create_agent(model, toolbox(), middleware=[selecting()])
    with pytest.raises(ConnectionError):
        await run(agent, "play a song", use_async=use_async)
    assert len(model.seen) == 1


def test_wrong_arguments_are_refused_at_once():
    with pytest.raises(ValueError, match=r"max_tools must be an integer >= 0, got -1"):
        selecting(max_tools=-1)
    with pytest.raises(TypeError, match=r"always_include must be a sequence of str, got one str"):
        selecting(always_include="x")


def test_an_agent_without_tools_is_left_alone():
    model = ScriptedModel()
    create_agent(model, [], middleware=[selecting()]).invoke({"messages": [HumanMessage("x")]})
    assert model.seen == [[]]


# -- indexing ------------------------------------------------------------------------------------


class Shelf(AgentMiddleware):
    """Offers tools that come and go while the agent runs, and runs them."""

    def __init__(self, tools):
        super().__init__()
        self.shelf = tools

    def wrap_model_call(self, request, handler):
        return handler(request.override(tools=list(self.shelf)))

    def wrap_tool_call(self, request, handler):
        tools = {tool.name: tool for tool in self.shelf}
        return handler(request.override(tool=tools[request.tool_call["name"]]))


def test_a_tool_that_is_added_while_the_agent_runs_is_found_and_run():
    ran: list[str] = []
    shelf = toolbox(ran)
    model = ScriptedModel(script=["", "water_plants"])
    encoder = HashEncoder(seed=11)
    middleware = selecting(encoder=encoder, max_tools=1)
    agent = create_agent(model, shelf, middleware=[Shelf(shelf), middleware])
    agent.invoke({"messages": [HumanMessage("water the plants")]})
    before = encoder.texts_encoded
    shelf.append(made("water_plants", "Water the plants in the garden", ran))
    agent.invoke({"messages": [HumanMessage("water the plants")]})
    assert model.seen[0] != ["water_plants"]
    assert model.seen[1:] == [["water_plants"]] * 2
    assert ran == ["water_plants"]
    assert encoder.texts_encoded - before == 2  # the new tool and the query


def test_tools_are_indexed_once_and_queries_embedded_once_a_turn():
    model = ScriptedModel(script=["play_track", "play_track", "", "play_track"])
    encoder = HashEncoder(seed=12)
    agent = create_agent(model, toolbox(), middleware=[selecting(encoder=encoder)])
    agent.invoke({"messages": [HumanMessage("play a song")]})
    assert (encoder.calls, encoder.texts_encoded) == (2, 8)
    agent.invoke({"messages": [HumanMessage("translate a sentence")]})
    assert (encoder.calls, encoder.texts_encoded) == (3, 9)


def test_one_middleware_may_serve_several_agents_at_once():
    middleware = selecting(max_tools=1)
    halves = [toolbox()[:4], toolbox()[3:]]
    expected = ["get_forecast", "play_track"]
    failures = []

    def work(which):
        model = ScriptedModel()
        agent = create_agent(model, halves[which], middleware=[middleware])
        for _ in range(5):
            agent.invoke({"messages": [HumanMessage("forecast for the coming days, play a song")]})
        if any(expected[which] not in seen or len(seen) != 1 for seen in model.seen):
            failures.append(model.seen)

    threads = [threading.Thread(target=work, args=(which,)) for which in (0, 1, 0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


class HashEmbeddings(Embeddings):
    """Counts how it is called."""

    def __init__(self):
        self.encoder = HashEncoder()
        self.calls = []

    def embed_documents(self, texts):
        self.calls.append(("documents", len(texts)))
        return self.encoder.encode(texts).tolist()

    def embed_query(self, text):
        self.calls.append(("query", text))
        return self.encoder.encode([text])[0].tolist()

    async def aembed_query(self, text):
        self.calls.append(("aquery", text))
        await asyncio.sleep(0)
        return self.encoder.encode([text])[0].tolist()


@BOTH
async def test_langchain_embeddings_embed_queries_as_queries(use_async):
    embeddings = HashEmbeddings()
    model = ScriptedModel(script=["play_track"])
    agent = create_agent(model, toolbox(), middleware=[selecting(encoder=embeddings)])
    await run(agent, "play a song", use_async=use_async)
    kind = "aquery" if use_async else "query"
    assert embeddings.calls == [("documents", 7), (kind, "play a song")]
    assert "play_track" in model.seen[0]


async def test_slow_encoders_do_not_block_the_loop():
    class Slow(HashEncoder):
        def encode(self, texts):
            time.sleep(0.3)
            return super().encode(texts)

    model = ScriptedModel()
    encoder = Slow(seed=13)
    agent = create_agent(model, toolbox(), middleware=[selecting(encoder=encoder)])
    await agent.ainvoke({"messages": [HumanMessage("warm up")]})
    ticks = []

    async def tick():
        while True:
            ticks.append(time.perf_counter())
            await asyncio.sleep(0.01)

    ticker = asyncio.create_task(tick())
    await agent.ainvoke({"messages": [HumanMessage("play a song")]})
    ticker.cancel()
    assert len(ticks) > 10  # 0.3 s of encoding, during which the loop went on


# -- the Runnable --------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    "value",
    [
        "play a song",
        [HumanMessage("play a song")],
        [("user", "play a song")],
        {"messages": [{"role": "user", "content": "play a song"}]},
        ChatPromptTemplate.from_messages([("human", "play {what}")]).invoke({"what": "a song"}),
    ],
)
async def test_select_tools_takes_every_input_of_a_model(value, use_async):
    tools = toolbox()
    runnable = select_tools(tools, encoder=HashEncoder(), max_tools=1)
    chosen = await runnable.ainvoke(value) if use_async else runnable.invoke(value)
    assert len(chosen) == 1
    assert chosen[0] is tools[5]


def test_selected_tools_can_be_bound_to_a_model():
    chosen = select_tools(toolbox(), encoder=HashEmbeddings(), always_include=["translate"])
    model = ScriptedModel()
    model.bind_tools(chosen.invoke("weather forecast")).invoke("weather forecast")
    assert {"get_forecast", "translate"} <= set(model.seen[0])
    assert len(model.seen[0]) <= 4


# -- the package ---------------------------------------------------------------------------------


def test_without_langchain_only_the_middleware_is_missing():
    code = """
import sys
sys.modules["langchain"] = None
import skillsight_langchain
assert callable(skillsight_langchain.select_tools)
try:
    skillsight_langchain.SkillSightToolSelectorMiddleware
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert "pip install 'skillsight[langchain-agents]'" in done.stdout
