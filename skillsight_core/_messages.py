"""A conversation, in any common form, as what tool selection needs of it: a query and names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_USER = ("user", "human")
_ASSISTANT = ("assistant", "ai", "model", "chatbot")
_TEXTS = (None, "text", "input_text", "output_text")
_CALLS = ("tool_use", "server_tool_use", "tool_call", "function_call")

_LONGEST = 2000  # characters of the last message of the user; of a longer one, both ends
_WINDOW = 500  # characters that it and what was said before may have together
_LOOK_BACK = 6  # messages


def recent_queries(messages: Sequence[Any]) -> list[str]:
    """The last message of the user, and before it, if it is short, the same with its context.

    A short message may lean on what was said before ("do it") or begin something new ("play some
    jazz"), so both readings are given. The context is the few messages of the user and the
    assistant before it, the latest first, while all stays within ``_WINDOW`` characters; a longer
    one is passed over. What came after the last message of the user is left out, so that the
    queries stay the same while the agent works on its answer.
    """
    said = [(role, text) for role, text in map(_said, messages) if role and text]
    while said and said[-1][0] not in _USER:
        said.pop()
    if not said:
        return [""]
    last = said.pop()[1]
    if len(last) > _LONGEST:
        last = f"{last[: _LONGEST // 2]}\n{last[-_LONGEST // 2 :]}"
    window = [last]
    room = _WINDOW - len(last)
    for _, text in reversed(said[-_LOOK_BACK:]):
        if len(text) < room:
            window.insert(0, text)
            room -= len(text) + 1
    return list(dict.fromkeys(["\n".join(window), last]))


def called_tools(messages: Sequence[Any]) -> set[str]:
    """Names of the tools that were called in a conversation."""
    return {name for message in messages for name in _called(message) if isinstance(name, str)}


def check_messages(messages: Any, *, of: str) -> list[Any]:
    if isinstance(messages, Mapping) or not isinstance(messages, Sequence):
        raise TypeError(
            f"{of}: query_or_messages must be a str or a sequence of messages, "
            f"got {type(messages).__name__}"
        )
    for position, message in enumerate(messages):
        if isinstance(message, str) or not (_get(message, "role") or _get(message, "type")):
            raise TypeError(
                f"{of}: messages must have a role or a type, got {type(message).__name__} "
                f"at position {position}"
            )
    return list(messages)


def _said(message: Any) -> tuple[str | None, str]:
    """Role of the user or the assistant, and the text; no role for other messages."""
    role = _role(message)
    return role if role in _USER or role in _ASSISTANT else None, _text(_get(message, "content"))


def _role(message: Any) -> str:
    role = _get(message, "role") or _get(message, "type")
    name = str(getattr(role, "value", role)).lower()
    return name.removesuffix("messagechunk")  # LangChain's pieces of a stream


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content.strip()
    if not isinstance(content, list | tuple):
        return ""
    texts = [
        block if isinstance(block, str) else _get(block, "text")
        for block in content
        if isinstance(block, str) or _get(block, "type") in _TEXTS
    ]
    return "\n".join(text for text in texts if isinstance(text, str)).strip()


def _called(message: Any) -> Iterator[Any]:
    extra = _get(message, "additional_kwargs")
    calls = [
        *_list(_get(message, "tool_calls")),  # OpenAI, LangChain
        *_list(_get(extra, "tool_calls")),  # LlamaIndex
        *[b for b in _list(_get(message, "content")) if _get(b, "type") in _CALLS],  # Anthropic
        *[b for b in _list(_get(message, "blocks")) if _get(b, "tool_name")],  # LlamaIndex
    ]
    if legacy := _get(message, "function_call"):
        calls.append(legacy)
    # OpenAI's responses, and the answer of a tool, which may outlive its call in a short history
    if _get(message, "type") == "function_call" or _role(message) in ("tool", "function"):
        calls.append(message)
    for call in calls:
        function = _get(call, "function")
        yield _get(function or call, "name") or _get(call, "tool_name")


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)
