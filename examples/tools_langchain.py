"""A LangChain agent with 557 tools whose model sees three of them at each call.

The model is a script, so that this runs anywhere; a real one goes in its place.
"""

from __future__ import annotations

from typing import Any

import catalogue
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from skillsight_langchain import SkillSightToolSelectorMiddleware


class ScriptedModel(BaseChatModel):
    """Stands in for a model: calls the tool that its script has for the user's last message."""

    script: dict[str, str]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Keep the schemas, as a provider would send them along."""
        return self.bind(schemas=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        schemas = kwargs.get("schemas", [])
        names = [schema["function"]["name"] for schema in schemas]
        asked = next(m for m in reversed(messages) if isinstance(m, HumanMessage)).text
        if isinstance(messages[-1], HumanMessage):
            print(f"\nuser: {asked}")
            print(f"  the model sees {', '.join(names)}  (~{catalogue.tokens(schemas):,} tokens)")
        wanted = self.script.get(asked)
        if wanted in names and isinstance(messages[-1], HumanMessage):
            call = {"name": wanted, "args": {}, "id": f"call-{len(messages)}"}
            answer = AIMessage("", tool_calls=[call])
        else:
            answer = AIMessage("Shall I look it up?" if wanted is None else "That is done.")
        return ChatResult(generations=[ChatGeneration(message=answer)])


class LiveTools(AgentMiddleware):
    """Offers a list of tools that may grow while the agent runs."""

    def __init__(self, live: list[BaseTool]) -> None:
        super().__init__()
        self.live = live

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Show the model what there is now, beside the tools of other middleware."""
        known = {id(tool) for tool in request.tools}
        new = [tool for tool in self.live if id(tool) not in known]
        return handler(request.override(tools=[*request.tools, *new]))

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Run a tool that the agent was not built with."""
        new = next((t for t in self.live if t.name == request.tool_call["name"]), None)
        return handler(request if new is None else request.override(tool=new))


def main() -> None:
    tools: list[BaseTool] = [
        StructuredTool(
            name=entry.name,
            description=entry.description,
            args_schema={**entry.parameters, "required": []},  # the script gives no arguments
            func=entry.run,
        )
        for entry in catalogue.entries()
    ]
    everything = catalogue.tokens(map(convert_to_openai_tool, tools))
    print(f"{len(tools)} tools, whose schemas take ~{everything:,} tokens in every prompt")

    model = ScriptedModel(
        script={
            "do it": "weather__get_forecast",
            "now create a Jira issue: the login is broken": "jira__jira_create_issue",
            "brew an espresso": "kitchen__brew_coffee",
        }
    )
    live = list(tools)
    agent = create_agent(
        model,
        tools,
        middleware=[
            LiveTools(live),
            SkillSightToolSelectorMiddleware(max_tools=3),
        ],
    )

    messages: list[BaseMessage] = []

    def say(text: str) -> None:
        nonlocal messages
        before = len(messages) + 1
        messages = agent.invoke({"messages": [*messages, HumanMessage(text)]})["messages"]
        for message in messages[before:]:
            if message.type == "tool":
                print(f"  ran {message.text}")
        print(f"  agent: {messages[-1].text}")

    say("What will the weather forecast be for Paris?")
    say("do it")
    say("now create a Jira issue: the login is broken")

    def brew(**arguments: Any) -> str:
        return "kitchen__brew_coffee: one espresso"

    live.append(
        StructuredTool(
            name="kitchen__brew_coffee",
            description="Make a coffee: espresso, lungo or cappuccino.",
            args_schema={"type": "object", "properties": {}},
            func=brew,
        )
    )
    say("brew an espresso")


if __name__ == "__main__":
    main()
