"""Tools as text: reading the descriptions that models and servers exchange, whatever their form."""

from __future__ import annotations

import inspect
import json
import os
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from skillsight_core._errors import SkillSightWarning
from skillsight_core._skills import FIELDS, Skill, checked_fields

# Where the forms keep the schema of the parameters: OpenAI and Gemini, Anthropic, MCP, Gemini.
_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")
_DECLARATIONS = ("functionDeclarations", "function_declarations")
_OWN_TYPES = (None, "function", "custom")  # every other "type" is a tool that the provider runs
_DEEPEST = 8  # levels of nested parameters that are read


def load_tools(obj: Any, *, fields: Iterable[str] = FIELDS) -> list[Skill]:
    r"""Read tools of any common form as skills.

    Parameters
    ----------
    obj : object
        One tool or any nesting of lists of them. A tool is a dict in the form of OpenAI (chat or
        responses), Anthropic or Gemini (function declarations), an MCP tool as a dict or object,
        a LangChain or LlamaIndex tool, or a Python callable. The answer to MCP's ``tools/list``
        may be given whole, and those of several servers as ``{server: answer}``. A str or path is
        a JSON file with any of these; a str that begins with a brace or bracket is the JSON
        itself.
    fields : iterable of str
        What the text of each tool consists of, of "name", "description" and "body"; see `Skill`.

    Returns
    -------
    list of Skill
        In the given order. ``name`` is the tool's, as written. ``body`` has the server's name,
        where there is one, and each parameter with its description, nested ones included; types,
        defaults and the other parts of a schema are left out. ``id`` is the name, after
        "server/" where there is one; the second tool of an id gets "#2". ``metadata["tool"]`` is
        the very object that was given, ``metadata["server"]`` its server.

    Warns
    -----
    SkillSightWarning
        Some are tools that the provider runs itself ("web_search"); they say nothing about
        themselves and are left out.

    Raises
    ------
    TypeError, ValueError
        Something is no tool, or a tool has no name; a JSON file is none.

    Examples
    --------
    >>> def get_weather(city): "Forecast for a city."
    >>> load_tools(get_weather)[0].text
    'get_weather\nForecast for a city.\ncity'
    """
    found = read_tools(obj, fields=fields, of="load_tools")
    left_out = [str(entry.tool) for entry in found if entry.skill is None]
    if left_out:
        warnings.warn(
            f"load_tools: {len(left_out)} tools are run by the provider and left out, the first "
            f"is {left_out[0]}",
            SkillSightWarning,
            stacklevel=2,
        )
    return [entry.skill for entry in found if entry.skill is not None]


class Found(NamedTuple):
    """A tool and its text; None for a tool that the provider runs itself."""

    tool: Any
    skill: Skill | None


def read_tools(
    obj: Any, *, fields: Iterable[str] = FIELDS, taken: Iterable[str] = (), of: str
) -> list[Found]:
    """Read tools; ``taken`` are ids that others have already."""
    if isinstance(obj, str | os.PathLike):
        obj = _from_json(obj, of=of)
    chosen = checked_fields(fields, of=of)
    found = []
    used = set(taken)
    for position, (tool, server) in enumerate(_flat(obj, None)):
        described = _describe(tool, f"{of}: tool {position}")
        if described is None:
            found.append(Found(tool, None))
            continue
        name, description, schema = described
        id_ = _new_id(f"{server}/{name}" if server else name, used)
        used.add(id_)
        body = [*([server] if server else []), *_parameters(schema, schema, set(), 0)]
        metadata = {"tool": tool, **({"server": server} if server else {})}
        skill = Skill(id_, name, description, "\n".join(body), metadata, fields=chosen)
        found.append(Found(tool, skill))
    return found


def _new_id(wanted: str, used: Container[str]) -> str:
    id_, number = wanted, 1
    while id_ in used:
        number += 1
        id_ = f"{wanted}#{number}"
    return id_


def _from_json(source: str | os.PathLike[str], *, of: str) -> Any:
    given = os.fspath(source)
    inline = given.lstrip().startswith(("{", "["))
    text = given if inline else Path(given).read_text(encoding="utf-8-sig")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        what = "text" if inline else given
        raise ValueError(f"{of}: tools must be valid JSON, got {what!r}: {error}") from None


def _flat(obj: Any, server: str | None) -> Iterator[tuple[Any, str | None]]:
    """Each tool of nested lists and answers, with the server it is from."""
    if isinstance(obj, Mapping):
        if isinstance(obj.get("result"), Mapping):  # JSON-RPC
            yield from _flat(obj["result"], server)
        elif isinstance(tools := obj.get("tools"), list | tuple):
            yield from _flat(tools, obj.get("server") or obj.get("name") or server)
        elif declared := next((obj[key] for key in _DECLARATIONS if key in obj), None):
            yield from _flat(declared, server)
        elif obj and all(_holds_tools(value) for value in obj.values()):
            for name, tools in obj.items():
                yield from _flat(tools, name)
        else:
            yield obj, server
    elif hasattr(obj, "name") or isinstance(obj, str | bytes | type):  # one; models are iterable
        yield obj, server
    elif isinstance(tools := getattr(obj, "tools", None), list | tuple):  # MCP's ListToolsResult
        yield from _flat(tools, server)
    elif isinstance(obj, Iterable):
        for item in obj:
            yield from _flat(item, server)
    else:
        yield obj, server


def _holds_tools(value: Any) -> bool:
    if isinstance(value, Mapping):
        return isinstance(value.get("tools"), list | tuple) or isinstance(
            value.get("result"), Mapping
        )
    return isinstance(value, list | tuple) or isinstance(
        getattr(value, "tools", None), list | tuple
    )


def _describe(tool: Any, which: str) -> tuple[str, str, Mapping[str, Any]] | None:
    """Name, description and schema of a tool; None if the provider runs it itself."""
    if isinstance(tool, Mapping):
        parts = next((tool[k] for k in ("function", "custom") if k in tool), tool)
        parts = parts if isinstance(parts, Mapping) else tool
        name, description = parts.get("name"), parts.get("description")
        schema = next((parts[key] for key in _SCHEMAS if parts.get(key) is not None), None)
        silent = schema is None and not description
        if silent and (not name or tool.get("type") not in _OWN_TYPES):
            return None
    elif get_schema := getattr(getattr(tool, "metadata", None), "get_parameters_dict", None):
        metadata, schema = tool.metadata, get_schema()  # LlamaIndex
        name = metadata.name
        description = metadata.description or ""
        if name and description.startswith(f"{name}("):  # the signature, which the schema repeats
            description = description.partition("\n")[2]
    elif (schema := getattr(tool, "tool_call_schema", None)) is not None:  # LangChain
        name, description = tool.name, tool.description
    elif callable(tool):
        name, description, schema = _describe_callable(tool)
    elif hasattr(tool, "name"):  # MCP's Tool, Gemini's FunctionDeclaration
        name, description = tool.name, getattr(tool, "description", None)
        schema = next((s for key in _SCHEMAS if (s := getattr(tool, key, None)) is not None), None)
    else:
        raise TypeError(
            f"{which} must be a dict, a tool of LangChain, LlamaIndex or MCP, or a callable, "
            f"got {type(tool).__name__}"
        )
    if not isinstance(name, str) or not name:
        raise ValueError(f"{which} must have a name, got {name!r}")
    return name, str(description or "").strip(), _as_schema(schema)


def _describe_callable(tool: Any) -> tuple[str, str, Any]:
    function = getattr(tool, "func", tool)  # of a functools.partial
    name = getattr(function, "__name__", type(function).__name__)
    documented = function if hasattr(function, "__name__") else type(function)
    description = inspect.getdoc(documented) or ""
    if hasattr(tool, "model_json_schema"):  # a Pydantic class, which models can be bound to
        return name, description, tool
    if isinstance(tool, type) and "__annotations__" in vars(tool):  # a TypedDict likewise
        return name, description, {"properties": {key: {} for key in tool.__annotations__}}
    try:
        signature = inspect.signature(tool, eval_str=True)
    except (TypeError, ValueError, NameError):
        return name, description, {}
    named = [
        p for p in signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    notes = {p.name: getattr(p.annotation, "__metadata__", ()) for p in named}  # Annotated[...]
    return (
        name,
        description,
        {
            "properties": {
                key: {"description": next((n for n in some if isinstance(n, str)), "")}
                for key, some in notes.items()
            }
        },
    )


def _as_schema(schema: Any) -> Mapping[str, Any]:
    for method in ("model_json_schema", "model_dump"):
        if hasattr(schema, method):
            schema = getattr(schema, method)()
    return schema if isinstance(schema, Mapping) else {}


def _parameters(node: Any, root: Mapping[str, Any], seen: set[str], depth: int) -> Iterator[str]:
    """A line for each parameter of a JSON schema; what it refers to is read once."""
    if not isinstance(node, Mapping) or depth > _DEEPEST:
        return
    reference = node.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        seen.add(reference)
        definitions = root.get("$defs") or root.get("definitions")
        if isinstance(definitions, Mapping):
            target = definitions.get(reference.rpartition("/")[2])
            yield from _parameters(target, root, seen, depth + 1)
    properties = node.get("properties")
    for name, value in properties.items() if isinstance(properties, Mapping) else ():
        description = value.get("description") if isinstance(value, Mapping) else None
        yield f"{name}: {' '.join(str(description).split())}" if description else str(name)
        yield from _parameters(value, root, seen, depth + 1)
    branches = [node.get("items")]
    for key in ("anyOf", "oneOf", "allOf"):
        branches += node[key] if isinstance(node.get(key), list) else []
    for branch in branches:
        yield from _parameters(branch, root, seen, depth + 1)
