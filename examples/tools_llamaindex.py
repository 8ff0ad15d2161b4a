"""A LlamaIndex agent with 557 tools whose model sees three of them at each call.

The model is a script, so that this runs anywhere; a real one goes in its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import catalogue
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import BaseTool, FunctionTool, ToolMetadata

from skillsight_core import SentenceTransformerEncoder
from skillsight_llamaindex import SkillSightToolRetriever

SCRIPT = {
    "do it": "weather__get_forecast",
    "now create a Jira issue: the login is broken": "jira__jira_create_issue",
    "brew an espresso": "kitchen__brew_coffee",
}


class Schema(ToolMetadata):
    """Metadata with a JSON schema where LlamaIndex would have a Pydantic class."""

    def __init__(self, entry: catalogue.Entry) -> None:
        super().__init__(name=entry.name, description=entry.description)
        self._parameters = entry.parameters

    def get_parameters_dict(self) -> dict[str, Any]:
        """Return the schema."""
        return self._parameters


def as_tool(entry: catalogue.Entry) -> FunctionTool:
    return FunctionTool(entry.run, metadata=Schema(entry))


def schemas(tools: Sequence[BaseTool]) -> list[dict[str, Any]]:
    return [tool.metadata.to_openai_tool() for tool in tools]


def reply(
    messages: Sequence[ChatMessage], tools: Sequence[BaseTool] = (), **kwargs: Any
) -> ChatMessage:
    """Stand in for a model: call the tool that the script has for the user's last message."""
    asked = next(m for m in reversed(messages) if m.role == "user").content or ""
    wanted = SCRIPT.get(asked)
    names = [tool.metadata.get_name() for tool in tools]
    if messages[-1].role == "user":
        print(f"\nuser: {asked}")
        count = catalogue.tokens(schemas(tools))
        print(f"  the model sees {', '.join(names)}  (~{count:,} tokens)")
        if wanted in names:
            call = ToolCallBlock(tool_call_id=f"call-{len(messages)}", tool_name=wanted)
            return ChatMessage(role="assistant", blocks=[call])
    text = "Shall I look it up?" if wanted is None else "That is done."
    return ChatMessage(role="assistant", content=text)


async def main() -> None:
    tools = [as_tool(entry) for entry in catalogue.entries()]
    everything = catalogue.tokens(schemas(tools))
    print(f"{len(tools)} tools, whose schemas take ~{everything:,} tokens in every prompt")

    memory = ChatMemoryBuffer.from_defaults()
    retriever = SkillSightToolRetriever(
        tools, embed_model=SentenceTransformerEncoder(), k=3, memory=memory
    )
    agent = FunctionAgent(
        tool_retriever=retriever,
        llm=MockFunctionCallingLLM(response_generator=reply, is_chat_model=True),
    )

    async def say(text: str) -> None:
        run = agent.run(text, memory=memory)
        async for event in run.stream_events():
            if isinstance(event, ToolCallResult):
                print(f"  ran {event.tool_output.content}")
        print(f"  agent: {await run}")

    await say("What will the weather forecast be for Paris?")
    await say("do it")
    await say("now create a Jira issue: the login is broken")

    coffee = catalogue.Entry(
        "kitchen__brew_coffee",
        "Make a coffee: espresso, lungo or cappuccino.",
        {"type": "object", "properties": {}},
    )
    retriever.selector.add(as_tool(coffee))
    await say("brew an espresso")


if __name__ == "__main__":
    asyncio.run(main())
