"""Tools for people who call ``bind_tools`` themselves, and what the middleware shares with them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.messages import convert_to_messages
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableLambda

from skillsight_core import Encoder, SentenceTransformerEncoder, ToolSelector
from skillsight_langchain._encoder import LangChainEncoder


def select_tools(
    tools: Any,
    *,
    encoder: Encoder | Embeddings | None = None,
    max_tools: int = 3,
    always_include: Iterable[str] = (),
    **options: Any,
) -> Runnable[Any, list[Any]]:
    """Make a Runnable that returns the tools that an input needs, to bind to a model.

    Parameters
    ----------
    tools : object
        Anything that `skillsight_core.load_tools` reads and the model can be bound to.
    encoder : Encoder or Embeddings, optional
        Encodes tools and queries; a `skillsight_core.SentenceTransformerEncoder` by default.
    max_tools : int, default 3
        How many tools the ranking brings; tools that are named, were called before or are always
        included come on top.
    always_include, **options
        As for `skillsight_core.ToolSelector`.

    Returns
    -------
    Runnable
        From a str, messages, a prompt value or a state with "messages" to the very tools that
        were given, in their order; with ``ainvoke``, an Embeddings is awaited.

    Examples
    --------
    >>> selector = select_tools(tools, max_tools=5)  # doctest: +SKIP
    >>> model.bind_tools(selector.invoke(messages)).invoke(messages)  # doctest: +SKIP
    """
    chooser = ToolChooser(tools, encoder, k=max_tools, always_include=always_include, **options)

    def select(value: Any) -> list[Any]:
        return chooser.select(_conversation(value))

    async def aselect(value: Any) -> list[Any]:
        return await chooser.aselect(_conversation(value))

    return RunnableLambda(select, afunc=aselect, name="select_tools")


class ToolChooser:
    """A `ToolSelector` that embeds the query with LangChain's Embeddings, and once a turn."""

    def __init__(self, tools: Any, encoder: Encoder | Embeddings | None, **options: Any) -> None:
        self._embeddings = encoder if isinstance(encoder, Embeddings) else None
        if isinstance(encoder, Embeddings):
            encoder = LangChainEncoder(encoder)
        self.selector = ToolSelector(tools, encoder or SentenceTransformerEncoder(), **options)
        self._latest: tuple[list[str], Any] = ([], None)  # queries and their vectors

    def select(self, query_or_messages: Any) -> list[Any]:
        queries = self.selector.queries_of(query_or_messages)
        known, vectors = self._latest
        if known != queries:
            vectors = self._embed(queries)
            self._latest = (queries, vectors)
        return self.selector.select(query_or_messages, query_embeddings=vectors)

    async def aselect(self, query_or_messages: Any) -> list[Any]:
        queries = self.selector.queries_of(query_or_messages)
        known, vectors = self._latest
        if known != queries:
            if self._embeddings is not None:
                vectors = await asyncio.gather(*map(self._embeddings.aembed_query, queries))
            else:
                vectors = await asyncio.to_thread(self._embed, queries)
            self._latest = (queries, vectors)
        return await asyncio.to_thread(
            self.selector.select, query_or_messages, query_embeddings=vectors
        )

    def _embed(self, queries: list[str]) -> Any:
        if self._embeddings is not None:
            return [self._embeddings.embed_query(query) for query in queries]
        return self.selector.query_encoder.encode(queries)


def _conversation(value: Any) -> Any:
    if isinstance(value, PromptValue):
        return value.to_messages()
    if isinstance(value, Mapping) and "messages" in value:
        value = value["messages"]
    return value if isinstance(value, str) else convert_to_messages(value)
