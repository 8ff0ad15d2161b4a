"""Tools of a running MCP server: listed, selected, called."""

from __future__ import annotations

import pytest

from skillsight_core import ToolSelector
from tests.fakes import HashEncoder

pytest.importorskip("mcp.server.mcpserver")

from mcp import Client
from mcp.server.mcpserver import MCPServer


def server() -> MCPServer:
    made = MCPServer("office")
    texts = {
        "convert_currency": "Amount of money in another currency",
        "book_room": "Reserve a meeting room",
        "order_lunch": "Order a meal from the canteen",
        "print_badge": "Print a badge for a visitor",
    }
    for name, text in texts.items():

        def run(what: str, name: str = name) -> str:
            return f"{name}: {what}"

        made.add_tool(run, name=name, description=text)
    return made


async def test_a_tool_of_a_server_is_selected_and_called():
    async with Client(server()) as client:
        answer = await client.list_tools()
        selector = ToolSelector(answer, HashEncoder(), k=1)
        (tool,) = selector.select("reserve a meeting room")
        assert any(tool is listed for listed in answer.tools)
        result = await client.call_tool(tool.name, {"what": "Aspen"})
    assert result.content[0].text == "book_room: Aspen"


async def test_tools_of_two_servers_are_kept_apart_and_a_new_one_is_found():
    first, second = server(), server()
    async with Client(first) as one, Client(second) as two:
        answers = {"north": await one.list_tools(), "south": await two.list_tools()}
        selector = ToolSelector(answers, HashEncoder(), k=1)
        (tool,) = selector.select("reserve a meeting room in the south")
        assert any(tool is listed for listed in answers["south"].tools)

        def water(what: str) -> str:
            return f"watered {what}"

        first.add_tool(water, name="water_plants", description="Water the plants")
        relisted = await one.list_tools(cache_mode="refresh")
        selector.add([tool for tool in relisted.tools if tool.name not in selector])
        (tool,) = selector.select("water the plants")
        assert tool.name == "water_plants"
        result = await one.call_tool(tool.name, {"what": "ferns"})
    assert result.content[0].text == "watered ferns"
