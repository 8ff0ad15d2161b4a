"""The retriever of tools in real agents, with a scripted model."""

from __future__ import annotations

import asyncio
import time

import pytest
from llama_index.core import Settings
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import FunctionTool
from pydantic import PrivateAttr

from skillsight_core import SkillSightWarning
from skillsight_llamaindex import SkillSightToolRetriever
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


class HashEmbedding(BaseEmbedding):
    """Counts how it is called."""

    _encoder: HashEncoder = PrivateAttr(default_factory=HashEncoder)
    _calls: list = PrivateAttr(default_factory=list)
    delay: float = 0.0

    def _get_query_embedding(self, query):
        self._calls.append(("query", query))
        return self._encoder.encode([query])[0].tolist()

    async def _aget_query_embedding(self, query):
        self._calls.append(("aquery", query))
        await asyncio.sleep(self.delay)
        return self._encoder.encode([query])[0].tolist()

    def _get_text_embedding(self, text):
        self._calls.append(("text", text))
        return self._encoder.encode([text])[0].tolist()

    @property
    def queries(self):
        return [call for call in self._calls if call[0] != "text"]


def made(name, text, ran=None) -> FunctionTool:
    def run(what: str = "") -> str:
        if ran is not None:
            ran.append(name)
        return f"{name} done"

    return FunctionTool.from_defaults(run, name=name, description=text)


def toolbox(ran=None) -> list[FunctionTool]:
    return [made(name, text, ran) for name, text in TEXTS.items()]


def retriever(tools=None, **options) -> SkillSightToolRetriever:
    tools = toolbox() if tools is None else tools
    return SkillSightToolRetriever(tools, **{"embed_model": HashEmbedding(), "k": 2, **options})


def names(tools) -> list[str]:
    return [tool.metadata.name for tool in tools]


def scripted(script, seen):
    """A model that calls the tools of a script and keeps the names of those it was shown."""

    def reply(messages, tools=(), **kwargs):
        seen.append(names(tools))
        step = len(seen) - 1
        if step < len(script) and script[step]:
            call = ToolCallBlock(
                tool_call_id=f"call-{step}", tool_name=script[step], tool_kwargs={"what": "x"}
            )
            return ChatMessage(role="assistant", blocks=[call])
        return ChatMessage(role="assistant", content="finished")

    return MockFunctionCallingLLM(response_generator=reply, is_chat_model=True)


BOTH = pytest.mark.parametrize("use_async", [False, True], ids=["sync", "async"])


async def ask(ours, query, *, use_async):
    return await ours.aretrieve(query) if use_async else ours.retrieve(query)


# -- agents --------------------------------------------------------------------------------------


@pytest.mark.parametrize("workflow", [False, True], ids=["FunctionAgent", "AgentWorkflow"])
@pytest.mark.parametrize("streaming", [False, True])
async def test_agents_see_few_tools_and_run_the_one_they_call(workflow, streaming):
    ran, seen = [], []
    agent = FunctionAgent(
        name="helper",
        description="Helps.",
        tool_retriever=retriever(toolbox(ran)),
        llm=scripted(["play_track"], seen),
        streaming=streaming,
    )
    runner = AgentWorkflow(agents=[agent]) if workflow else agent
    result = await runner.run("play a song")
    assert ran == ["play_track"]
    assert str(result) == "finished"
    assert len(seen) == 2
    assert seen[0] == seen[1]
    assert "play_track" in seen[0]
    assert len(seen[0]) == 2


async def test_a_tool_that_was_not_shown_can_still_be_run_by_its_name():
    ran, seen = [], []
    agent = FunctionAgent(
        tool_retriever=retriever(toolbox(ran), k=1), llm=scripted(["create_invoice"], seen)
    )
    await agent.run("play a song")
    assert seen[0] == ["play_track"]
    assert ran == ["create_invoice"]


async def test_an_agent_that_may_hand_off_keeps_its_handoff_beside_the_selected_tools():
    ran, seen = [], []
    llm = scripted(["play_track"], seen)
    music = FunctionAgent(
        name="music", description="Plays.", llm=llm, tool_retriever=retriever(toolbox(ran), k=1)
    )
    mail = FunctionAgent(name="mail", description="Writes.", llm=llm)
    await AgentWorkflow(agents=[music, mail], root_agent="music").run("play a song")
    assert ran == ["play_track"]
    assert seen[0] == ["play_track", "handoff"]


async def test_with_the_memory_of_the_conversation_do_it_is_understood_and_called_tools_stay():
    for memory in (ChatMemoryBuffer.from_defaults(), Memory.from_defaults(session_id="x")):
        ran, seen = [], []
        agent = FunctionAgent(
            tool_retriever=retriever(toolbox(ran), memory=memory),
            llm=scripted(["", "get_forecast", "", "", ""], seen),
        )
        await agent.run("weather forecast for Paris", memory=memory)
        await agent.run("do it", memory=memory)
        assert ran == ["get_forecast"]
        assert "get_forecast" in seen[1]
        long = "translate a sentence into French " + "please " * 100
        await agent.run(long, memory=memory)
        assert "get_forecast" in seen[-1]
        assert "translate" in seen[-1]


async def test_a_tool_that_is_added_while_the_agent_runs_is_found():
    ran, seen = [], []
    ours = retriever(toolbox(ran), k=1)
    agent = FunctionAgent(tool_retriever=ours, llm=scripted(["", "water_plants"], seen))
    await agent.run("water the plants")
    ours.selector.add(made("water_plants", "Water the plants in the garden", ran))
    await agent.run("water the plants")
    assert seen[1] == ["water_plants"]
    assert ran == ["water_plants"]


# -- the retriever -------------------------------------------------------------------------------


@BOTH
async def test_every_name_returns_its_tool_and_embeds_nothing(use_async):
    model = HashEmbedding()
    tools = toolbox()
    ours = retriever(tools, embed_model=model)
    for tool in tools:
        assert await ask(ours, tool.metadata.name, use_async=use_async) == [tool]
    assert model.queries == []


@BOTH
async def test_the_very_tools_come_back_in_order(use_async):
    tools = toolbox()
    chosen = await ask(retriever(tools), QueryBundle("weather forecast"), use_async=use_async)
    assert chosen == [tool for tool in tools if tool in chosen]
    assert names(chosen) == ["get_weather", "get_forecast"]


@BOTH
async def test_queries_are_embedded_once_and_as_queries(use_async):
    model = HashEmbedding()
    ours = retriever(embed_model=model)
    for _ in range(3):
        await ask(ours, "play a song", use_async=use_async)
    assert model.queries == [("aquery" if use_async else "query", "play a song")]


@BOTH
async def test_an_embedding_that_comes_with_the_query_is_used(use_async):
    model = HashEmbedding()
    vector = HashEncoder().encode(["play a song"])[0].tolist()
    chosen = await ask(
        retriever(embed_model=model), QueryBundle("play a song", embedding=vector),
        use_async=use_async,
    )  # fmt: skip
    assert "play_track" in names(chosen)
    assert model.queries == []


@BOTH
async def test_an_encoder_of_the_core_will_do(use_async):
    chosen = await ask(
        retriever(embed_model=HashEncoder(), k=1), "play a song", use_async=use_async
    )
    assert names(chosen) == ["play_track"]


@BOTH
async def test_always_include_and_options_reach_the_selector(use_async):
    ours = retriever(always_include=["translate"], min_evidence=0.5)
    assert names(await ask(ours, "quantum lattice", use_async=use_async)) == ["translate"]


def test_a_missing_name_in_always_include_warns():
    with pytest.warns(SkillSightWarning, match=r"always_include must be names of tools.*'nope'"):
        retriever(always_include=["nope"])


def test_without_a_model_the_one_of_the_settings_is_used(monkeypatch):
    monkeypatch.setattr(Settings, "_embed_model", HashEmbedding())
    ours = SkillSightToolRetriever(toolbox(), k=1)
    assert names(ours.retrieve("play a song")) == ["play_track"]


async def test_a_slow_embedding_does_not_block_the_loop():
    ours = retriever(embed_model=HashEmbedding(delay=0.3))
    ticks = []

    async def tick():
        while True:
            ticks.append(time.perf_counter())
            await asyncio.sleep(0.01)

    ticker = asyncio.create_task(tick())
    await ours.aretrieve("play a song")
    ticker.cancel()
    assert len(ticks) > 10
