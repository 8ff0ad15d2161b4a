"""Tools for LlamaIndex agents: the few that a message needs, as an ObjectRetriever."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from llama_index.core import Settings
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemory
from llama_index.core.objects import ObjectRetriever
from llama_index.core.schema import QueryBundle, QueryType
from llama_index.core.tools import BaseTool

from skillsight_core import Encoder, ToolSelector
from skillsight_llamaindex._encoder import LlamaIndexEncoder


class SkillSightToolRetriever(ObjectRetriever[BaseTool]):
    """Retriever of tools for ``FunctionAgent(tool_retriever=...)`` and agents in an AgentWorkflow.

    Agents ask twice: with the user's message before the model is called, and with the name of a
    tool before it is run. The name of a tool returns that tool, and nothing is embedded for it.

    Parameters
    ----------
    tools : object
        Anything that `skillsight_core.load_tools` reads; for agents, LlamaIndex tools.
    embed_model : BaseEmbedding or Encoder, optional
        Embeds tools and queries; ``Settings.embed_model`` by default. If it has a name, vectors of
        tools are kept on disk (`skillsight_core.CachedEncoder`).
    k : int, default 3
        How many tools the ranking brings; tools that are named, were called before or are always
        included come on top.
    always_include : iterable of str, optional
        Names of tools that are always returned.
    memory : BaseMemory, optional
        The conversation's, the same that is given to ``agent.run(memory=...)``. With it, tools
        that were called stay and a message like "do it" is understood from those before; without
        it, agents show the retriever nothing but the last message.
    **options
        Arguments of `skillsight_core.ToolSelector`.

    Attributes
    ----------
    selector : ToolSelector
        Its ``add`` and ``remove`` change the tools while agents run.

    Raises
    ------
    TypeError, ValueError
        As `skillsight_core.ToolSelector`.
    """

    def __init__(
        self,
        tools: Any,
        *,
        embed_model: BaseEmbedding | Encoder | None = None,
        k: int = 3,
        always_include: Iterable[str] = (),
        memory: BaseMemory | None = None,
        **options: Any,
    ) -> None:
        # There are no nodes to map to objects: the selector holds the objects themselves.
        super().__init__(None, None)  # type: ignore[arg-type]
        self._embed_model = Settings.embed_model if embed_model is None else embed_model
        self._memory = memory
        self._latest: tuple[list[str], Any] = ([], None)  # queries and their vectors
        model = self._embed_model
        encoder = LlamaIndexEncoder(model) if isinstance(model, BaseEmbedding) else model
        self.selector = ToolSelector(tools, encoder, k=k, always_include=always_include, **options)

    def retrieve(self, str_or_query_bundle: QueryType) -> list[BaseTool]:
        """Return the tools for a message, or the one of a name."""
        bundle = _bundle(str_or_query_bundle)
        if bundle.query_str in self.selector:
            return self.selector.select(bundle.query_str, 0)
        history = self._memory.get() if self._memory is not None else []
        messages, queries, vectors = self._asked(bundle, history)
        if vectors is None:
            model = self._embed_model
            if isinstance(model, BaseEmbedding):
                vectors = [model.get_query_embedding(query) for query in queries]
            else:
                vectors = self.selector.query_encoder.encode(queries)
            self._latest = (queries, vectors)
        return self.selector.select(messages, query_embeddings=vectors)

    async def aretrieve(self, str_or_query_bundle: QueryType) -> list[BaseTool]:
        """Return the tools for a message, or the one of a name; nothing blocks the loop."""
        bundle = _bundle(str_or_query_bundle)
        if bundle.query_str in self.selector:
            return self.selector.select(bundle.query_str, 0)
        history = await self._memory.aget() if self._memory is not None else []
        messages, queries, vectors = self._asked(bundle, history)
        if vectors is None:
            model = self._embed_model
            if isinstance(model, BaseEmbedding):
                vectors = await asyncio.gather(*map(model.aget_query_embedding, queries))
            else:
                vectors = await asyncio.to_thread(self.selector.query_encoder.encode, queries)
            self._latest = (queries, vectors)
        return await asyncio.to_thread(self.selector.select, messages, query_embeddings=vectors)

    def _asked(
        self, bundle: QueryBundle, history: Sequence[ChatMessage]
    ) -> tuple[list[ChatMessage], list[str], Any]:
        """The conversation, the queries that it comes to, and their vectors where known."""
        messages = _conversation(history, bundle)
        queries = self.selector.queries_of(messages)
        return messages, queries, self._known(bundle, queries)

    def _known(self, bundle: QueryBundle, queries: list[str]) -> Any:
        """Vectors that came with the query or were computed for the call before."""
        if bundle.embedding is not None and queries == [bundle.query_str]:
            return [bundle.embedding]
        latest, vectors = self._latest
        return vectors if latest == queries else None


def _bundle(query: QueryType) -> QueryBundle:
    return QueryBundle(query) if isinstance(query, str) else query


def _conversation(history: Sequence[ChatMessage], bundle: QueryBundle) -> list[ChatMessage]:
    """The history, at the end of which agents have put the message before they ask for tools."""
    asked = [message for message in history if message.role == MessageRole.USER]
    if asked and asked[-1].content == bundle.query_str:
        return list(history)
    return [*history, ChatMessage(role=MessageRole.USER, content=bundle.query_str)]
