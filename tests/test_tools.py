"""Reading tools of every form, and what of them becomes text."""

from __future__ import annotations

import functools
import json
import re
from typing import Annotated, TypedDict

import pytest
from langchain_core.tools import InjectedToolArg
from langchain_core.tools import tool as langchain_tool

from skillsight_core import SkillSightWarning, load_tools

PROPERTIES = {
    "city": {"type": "string", "description": "Where to look"},
    "days": {"type": "integer", "minimum": 1},
}
SCHEMA = {"type": "object", "properties": PROPERTIES, "required": ["city"]}
TEXT = "get_forecast\nWeather of the next days.\ncity: Where to look\ndays"

PARTS = {"name": "get_forecast", "description": "Weather of the next days."}
OPENAI_CHAT = {"type": "function", "function": {**PARTS, "parameters": SCHEMA, "strict": True}}
OPENAI_RESPONSES = {"type": "function", **PARTS, "parameters": SCHEMA}
OPENAI_FUNCTIONS = {**PARTS, "parameters": SCHEMA}
ANTHROPIC = {**PARTS, "input_schema": SCHEMA}
ANTHROPIC_CUSTOM = {"type": "custom", **ANTHROPIC}
MCP = {**PARTS, "title": "Forecast", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}
FORMS = [OPENAI_CHAT, OPENAI_RESPONSES, OPENAI_FUNCTIONS, ANTHROPIC, ANTHROPIC_CUSTOM, MCP]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_name_description_and_parameters_as_text(form):
    (skill,) = load_tools([form])
    assert (skill.id, skill.name, skill.text) == ("get_forecast", "get_forecast", TEXT)
    assert skill.metadata["tool"] is form


@pytest.mark.parametrize("form", FORMS)
def test_one_tool_alone_is_read_like_a_list_of_it(form):
    assert [skill.text for skill in load_tools(form)] == [TEXT]


@pytest.mark.parametrize("key", ["functionDeclarations", "function_declarations"])
def test_gemini_declarations_are_tools_of_their_own(key):
    gemini = {key: [OPENAI_FUNCTIONS, {"name": "now", "description": "The time."}]}
    skills = load_tools([gemini])
    assert [skill.name for skill in skills] == ["get_forecast", "now"]
    assert skills[0].metadata["tool"] is OPENAI_FUNCTIONS


@pytest.mark.parametrize(
    "answer",
    [{"tools": [MCP]}, {"jsonrpc": "2.0", "id": 1, "result": {"tools": [MCP], "nextCursor": "x"}}],
)
def test_an_answer_of_mcp_is_read_whole(answer):
    assert [skill.id for skill in load_tools(answer)] == ["get_forecast"]


def test_tools_of_several_servers_carry_the_server_in_id_text_and_metadata():
    skills = load_tools({"north": {"tools": [MCP]}, "south": [MCP]})
    assert [skill.id for skill in skills] == ["north/get_forecast", "south/get_forecast"]
    assert [skill.name for skill in skills] == ["get_forecast"] * 2
    assert [skill.metadata["server"] for skill in skills] == ["north", "south"]
    assert skills[1].body.startswith("south\n")


def test_a_server_may_name_itself_beside_its_tools():
    assert load_tools([{"name": "north", "tools": [MCP]}])[0].id == "north/get_forecast"


def test_objects_of_the_mcp_package_are_read():
    types = pytest.importorskip("mcp.types")
    tool = types.Tool.model_validate(MCP)
    listed = types.ListToolsResult.model_validate(
        {"tools": [MCP], "ttlMs": 0, "cacheScope": "public"}
    )
    assert load_tools([tool])[0].text == TEXT
    assert load_tools(tool)[0].metadata["tool"] is tool
    assert load_tools(listed)[0].metadata["tool"] is listed.tools[0]


def test_langchain_tools_are_read_without_their_injected_arguments():
    @langchain_tool(parse_docstring=True)
    def get_forecast(city: str, state: Annotated[dict, InjectedToolArg], days: int = 1) -> str:
        """Weather of the next days.

        Args:
            city: Where to look
            state: Not for the model
            days: How many
        """
        return city

    (skill,) = load_tools([get_forecast])
    assert skill.text == (
        "get_forecast\nWeather of the next days.\ncity: Where to look\ndays: How many"
    )
    assert skill.metadata["tool"] is get_forecast


def test_llamaindex_tools_are_read_without_the_signature_in_their_description():
    tools = pytest.importorskip("llama_index.core.tools")

    def get_forecast(city: str, days: int = 1) -> str:
        """Weather of the next days."""
        return city

    tool = tools.FunctionTool.from_defaults(get_forecast)
    assert tool.metadata.description.startswith("get_forecast(")
    (skill,) = load_tools([tool])
    assert skill.text == "get_forecast\nWeather of the next days.\ncity\ndays"
    assert skill.metadata["tool"] is tool


def test_callables_are_read_by_docstring_and_signature():
    def get_forecast(city: Annotated[str, "Where to look"], days: int = 1, *args, **kwargs):
        """Weather of the next days."""

    assert load_tools(get_forecast)[0].text == TEXT
    assert load_tools(functools.partial(get_forecast, days=2))[0].text == TEXT


def test_callable_objects_and_classes_are_read():
    pydantic = pytest.importorskip("pydantic")

    class GetForecast:
        """Weather of the next days."""

        def __call__(self, city):
            return city

    class Forecast(pydantic.BaseModel):
        """Weather of the next days."""

        city: str = pydantic.Field(description="Where to look")

    class Typed(TypedDict):
        """Weather of the next days."""

        city: str

    about = "Weather of the next days."
    assert load_tools(GetForecast())[0].text == f"GetForecast\n{about}\ncity"
    assert load_tools(Forecast)[0].text == f"Forecast\n{about}\ncity: Where to look"
    assert load_tools(Typed)[0].text == f"Typed\n{about}\ncity"


def test_forms_may_be_mixed_and_nested():
    def now():
        """The time."""

    skills = load_tools([OPENAI_CHAT, [now, ({"tools": [{**MCP, "name": "other"}]},)]])
    assert [skill.name for skill in skills] == ["get_forecast", "now", "other"]


def test_the_punctuation_and_keywords_of_schemas_are_left_out():
    schema = {**SCHEMA, "additionalProperties": False, "$schema": "draft"}
    text = load_tools({**PARTS, "parameters": schema})[0].text
    assert not re.search(r"[{}\[\]\"]|object|properties|required|string|integer|draft", text)


def test_nested_parameters_are_read_through_lists_unions_and_references():
    schema = {
        "properties": {
            "filter": {"$ref": "#/$defs/Filter"},
            "rows": {"type": "array", "items": {"properties": {"cell": {"description": "Value"}}}},
            "to": {"anyOf": [{"properties": {"email": {}}}, {"type": "null"}]},
        },
        "$defs": {"Filter": {"properties": {"field": {}, "inner": {"$ref": "#/$defs/Filter"}}}},
    }
    body = load_tools({"name": "x", "input_schema": schema})[0].body
    assert body.split("\n") == ["filter", "field", "inner", "rows", "cell: Value", "to", "email"]


def test_a_schema_of_absurd_depth_is_read_only_so_far():
    schema: dict = {}
    for level in range(5000):
        schema = {"properties": {f"p{level}": schema}}
    body = load_tools({"name": "x", "parameters": schema})[0].body
    assert body.startswith("p4999\np4998\n")
    assert len(body.split("\n")) < 20


def test_a_schema_that_is_none_is_no_reason_to_fail():
    for schema in (None, True, [], {"properties": None}, {"properties": {"a": None}}):
        assert load_tools({**PARTS, "parameters": schema})[0].name == "get_forecast"


def test_equal_names_get_numbered_ids_in_order():
    skills = load_tools([MCP, ANTHROPIC, {"name": "get_forecast#2", "description": ""}, MCP])
    assert [skill.id for skill in skills] == [
        "get_forecast", "get_forecast#2", "get_forecast#2#2", "get_forecast#3",
    ]  # fmt: skip


def test_fields_choose_what_the_text_is():
    assert load_tools(MCP, fields=["name"])[0].text == "get_forecast"
    assert load_tools(MCP, fields=("body", "name"))[0].text.startswith("city: ")
    with pytest.raises(ValueError, match=r"load_tools: fields must be some of 'name'"):
        load_tools(MCP, fields=["schema"])
    with pytest.raises(TypeError, match=r"load_tools: fields must be a sequence of str"):
        load_tools(MCP, fields="name")


def test_json_is_read_from_a_file_and_from_text(tmp_path):
    text = json.dumps({"north": {"tools": [MCP]}})
    path = tmp_path / "tools.json"
    path.write_text(text, encoding="utf-8-sig")
    for source in (path, str(path), text):
        assert [skill.id for skill in load_tools(source)] == ["north/get_forecast"]


def test_json_that_is_none_is_refused(tmp_path):
    path = tmp_path / "tools.json"
    path.write_text("tools: []")
    with pytest.raises(
        ValueError, match=r"load_tools: tools must be valid JSON, got .*tools\.json"
    ):
        load_tools(path)
    with pytest.raises(FileNotFoundError):
        load_tools(tmp_path / "none.json")


@pytest.mark.parametrize(
    "provider",
    [
        {"type": "web_search"},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
        {"type": "mcp", "server_label": "x", "server_url": "y"},
        {"google_search": {}},
        {"code_execution": {}},
    ],
)
def test_tools_that_the_provider_runs_are_left_out_with_a_warning(provider):
    with pytest.warns(SkillSightWarning, match=r"load_tools: 1 tools are run by the provider"):
        skills = load_tools([provider, MCP])
    assert [skill.name for skill in skills] == ["get_forecast"]


def test_a_function_without_description_and_parameters_is_a_tool():
    tools = [{"type": "function", "function": {"name": "ping"}}, {"name": "pong"}]
    assert [skill.text for skill in load_tools(tools)] == ["ping", "pong"]


def test_what_is_no_tool_is_named_with_its_position():
    with pytest.raises(TypeError, match=r"load_tools: tool 1 must be a dict, .* got int"):
        load_tools([MCP, 3])
    with pytest.raises(ValueError, match=r"load_tools: tool 0 must have a name, got None"):
        load_tools([{"description": "nameless"}])
    with pytest.raises(TypeError, match=r"load_tools: tool 0 must be .* got str"):
        load_tools(["get_forecast"])


def test_nothing_gives_nothing():
    assert load_tools([]) == []
    assert load_tools({"tools": []}) == []


def test_loading_changes_nothing_of_what_was_given():
    before = json.dumps(FORMS)
    load_tools(FORMS)
    assert json.dumps(FORMS) == before
