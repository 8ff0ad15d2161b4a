"""An agent that searches a library of skills and reads only the one it needs.

The chat model follows a script, so that this runs offline; any other takes its place.
"""

from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import InMemoryVectorStore

from skillsight_core import CachedEncoder, SentenceTransformerEncoder, load_skills
from skillsight_langchain import (
    EncoderEmbeddings,
    SkillSightRetriever,
    skill_documents,
    skill_tools,
)


class ScriptedModel(BaseChatModel):
    """Searches, reads the first skill that it finds, and answers."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[Any, AIMessage]:
        """Bind nothing: the script knows the tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        last = messages[-1]
        if last.type == "human":
            message = self._call("search_skills", query=last.text)
        elif last.name == "search_skills":
            message = self._call("load_skill", id=last.text.split(": ")[0].removeprefix("- "))
        else:
            message = AIMessage("I have read the skill and can start.")
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _call(self, name: str, **arguments: str) -> AIMessage:
        return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": name}])


library = load_skills(Path(__file__).parent / "library")
store = InMemoryVectorStore(EncoderEmbeddings(CachedEncoder(SentenceTransformerEncoder())))
store.add_documents(skill_documents(library))
retriever = SkillSightRetriever.from_vectorstore(store)

agent = create_agent(ScriptedModel(), skill_tools(library, retriever))
answer = agent.invoke({"messages": [("human", "our pods keep crashing after the rollout")]})
for message in answer["messages"]:
    text = message.text or f"calls {message.tool_calls[0]['name']}{message.tool_calls[0]['args']}"
    print(f"[{message.type}] {text[:300]}")
