"""Middleware for agents: at each call, the model sees the few tools that it needs."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage

from skillsight_core import Encoder, SentenceTransformerEncoder, SkillSightWarning
from skillsight_core._validation import check_count, some
from skillsight_langchain._tools import ToolChooser

_INDEXES = 8  # lists of tools that are remembered; agents may share a middleware


class _Index(NamedTuple):
    tools: Sequence[Any]  # of the request; held, so that no other object takes over an identity
    indexed: frozenset[int]  # identities of those to choose from
    chooser: ToolChooser


class SkillSightToolSelectorMiddleware(AgentMiddleware[Any, Any, Any]):
    """Middleware for ``create_agent`` that picks the tools for each call of the model.

    No model is asked. The tools of the request are indexed when they are first seen and again
    when they are others. Narrowed are only tools of the agent itself: dict tools, which the
    provider runs, tools of other middleware and those in ``always_include`` stay in their places.
    Tools that were called in the conversation stay, as do those that the query names, and the
    order is that of the request, so that the list is the same throughout a turn.

    If anything goes wrong, all tools are offered and a warning says why.

    Parameters
    ----------
    encoder : Encoder or Embeddings, optional
        Encodes tools and queries; a `skillsight_core.SentenceTransformerEncoder` by default. If
        it has a name, vectors of tools are kept on disk (`skillsight_core.CachedEncoder`).
    max_tools : int, default 3
        How many tools the ranking brings.
    always_include : iterable of str, optional
        Names of tools that are never left out. They do not count in ``max_tools``.
    **options
        Arguments of `skillsight_core.ToolSelector`: ``query_from_messages``, ``fields``,
        ``min_evidence`` and so on.

    Raises
    ------
    TypeError, ValueError
        ``max_tools`` is not an integer >= 0, ``always_include`` is one str.

    Warns
    -----
    SkillSightWarning
        A name in ``always_include`` is not the name of a tool; selecting failed.

    Notes
    -----
    A tool counts as another middleware's if its function is defined in a module with the part
    "middleware" in its path, as those of LangChain and deepagents are, or if it is in the class
    attribute ``tools`` of an AgentMiddleware. Name others in ``always_include``.

    Selection is not access control: LangChain runs a tool that was left out if the model calls it.
    """

    def __init__(
        self,
        *,
        encoder: Encoder | Embeddings | None = None,
        max_tools: int = 3,
        always_include: Iterable[str] = (),
        **options: Any,
    ) -> None:
        super().__init__()
        of = type(self).__name__
        if isinstance(always_include, str):
            raise TypeError(f"{of}: always_include must be a sequence of str, got one str")
        self.max_tools = check_count(max_tools, "max_tools", at_least=0, of=of)
        self.always_include = tuple(always_include)
        self._encoder = SentenceTransformerEncoder() if encoder is None else encoder
        self._options = options
        self._indexes: OrderedDict[tuple[int, ...], _Index] = OrderedDict()
        self._lock = threading.Lock()

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any] | AIMessage:
        """Call the model with the tools that it needs."""
        try:
            index = self._index(request.tools)
            narrowed = _narrowed(request, index, index.chooser.select(request.messages))
        except Exception as error:
            narrowed = self._fallback(request, error)
        return handler(narrowed)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | AIMessage:
        """Call the model with the tools that it needs; nothing blocks the loop."""
        try:
            index = await asyncio.to_thread(self._index, request.tools)
            narrowed = _narrowed(request, index, await index.chooser.aselect(request.messages))
        except Exception as error:
            narrowed = self._fallback(request, error)
        return await handler(narrowed)

    def _index(self, tools: Sequence[Any]) -> _Index:
        key = tuple(map(id, tools))
        with self._lock:
            index = self._indexes.get(key)
            if index is None:
                index = self._indexes[key] = self._new_index(list(tools))
            self._indexes.move_to_end(key)
            if len(self._indexes) > _INDEXES:
                self._indexes.popitem(last=False)
        return index

    def _new_index(self, tools: list[Any]) -> _Index:
        names = [tool.get("name") if isinstance(tool, Mapping) else tool.name for tool in tools]
        missing = [name for name in self.always_include if name not in names]
        if missing:
            warnings.warn(
                f"{self.name}: always_include must be names of tools, got some that are not: "
                f"{some(missing)}",
                SkillSightWarning,
                stacklevel=2,
            )
        owned = set(map(id, _class_tools(AgentMiddleware)))
        own = [
            tool
            for tool, name in zip(tools, names, strict=True)
            if not isinstance(tool, Mapping)
            and name not in self.always_include
            and not _is_of_middleware(tool, owned)
        ]
        chooser = ToolChooser(own, self._encoder, k=self.max_tools, **self._options)
        return _Index(tools, frozenset(map(id, own)), chooser)

    def _fallback(self, request: ModelRequest[Any], error: Exception) -> ModelRequest[Any]:
        warnings.warn(
            f"{self.name}: all {len(request.tools)} tools are offered, selecting failed: {error!r}",
            SkillSightWarning,
            stacklevel=3,
        )
        return request


def _narrowed(
    request: ModelRequest[Any], index: _Index, selected: Sequence[Any]
) -> ModelRequest[Any]:
    """The request with its tools, in their order, without those that were not selected."""
    kept = set(map(id, selected))
    forced = _forced(request.tool_choice)
    return request.override(
        tools=[
            tool
            for tool in request.tools
            if id(tool) not in index.indexed
            or id(tool) in kept
            or getattr(tool, "name", None) == forced
        ]
    )


def _forced(tool_choice: Any) -> Any:
    """Name of the tool that the model is told to call, in any provider's form."""
    if isinstance(tool_choice, Mapping):
        function = tool_choice.get("function")
        return (function if isinstance(function, Mapping) else tool_choice).get("name")
    return tool_choice


def _class_tools(middleware: type[Any]) -> Iterator[Any]:
    """Tools in the class attributes of a middleware and all classes derived from it."""
    tools = vars(middleware).get("tools")
    yield from tools if isinstance(tools, list | tuple) else ()
    subclasses: list[type[Any]] = middleware.__subclasses__()
    for derived in subclasses:
        yield from _class_tools(derived)


def _is_of_middleware(tool: Any, owned: set[int]) -> bool:
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    module = getattr(function or type(tool), "__module__", None) or ""
    return id(tool) in owned or id(function) in owned or "middleware" in module.split(".")
