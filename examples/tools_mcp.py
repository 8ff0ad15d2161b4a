"""List the tools of a running MCP server, select a few, and call one.

The server is this file itself with ``--serve``: it runs as a process of its own and answers over
stdio, as any MCP server does.
"""

from __future__ import annotations

import asyncio
import sys

from mcp import Client, StdioServerParameters
from mcp.server.mcpserver import MCPServer

from skillsight_core import SentenceTransformerEncoder, ToolSelector


def serve() -> None:
    server = MCPServer("office", log_level="WARNING")

    @server.tool()
    def convert_currency(amount: float, source: str, target: str) -> str:
        """Amount in another currency, at a fixed rate."""
        return f"{amount:.2f} {source} are {amount * 1.1:.2f} {target}"

    @server.tool()
    def convert_length(value: float, source: str, target: str) -> str:
        """Length in another unit: metres, feet, miles."""
        return f"{value} {source} in {target}"

    @server.tool()
    def count_words(text: str) -> int:
        """How many words a text has."""
        return len(text.split())

    @server.tool()
    def book_room(room: str, start: str, minutes: int) -> str:
        """Reserve a meeting room in the building."""
        return f"{room} is yours from {start}"

    @server.tool()
    def list_rooms(seats: int) -> list[str]:
        """Meeting rooms with at least so many seats."""
        return ["Aspen", "Birch"]

    @server.tool()
    def order_lunch(dish: str, day: str) -> str:
        """Order a meal from the canteen."""
        return f"{dish} on {day}"

    @server.tool()
    def print_badge(visitor: str) -> str:
        """Print a badge for a visitor at the front desk."""
        return f"badge of {visitor}"

    @server.tool()
    def report_defect(where: str, what: str) -> str:
        """Tell the caretaker about something broken in the building."""
        return f"{what} at {where}"

    server.run("stdio")


async def main() -> None:
    server = StdioServerParameters(command=sys.executable, args=[__file__, "--serve"])
    async with Client(server) as client:
        answer = await client.list_tools()
        print(f"the server has {len(answer.tools)} tools")
        selector = ToolSelector(answer, SentenceTransformerEncoder(), k=2)
        for query in ("what is 20 dollars in euros?", "the lamp in the corridor is broken"):
            print(f"{query} -> {', '.join(tool.name for tool in selector.select(query))}")
        arguments = {"amount": 20, "source": "USD", "target": "EUR"}
        result = await client.call_tool("convert_currency", arguments)
        print(f"called convert_currency: {result.content[0].text}")


if __name__ == "__main__":
    serve() if "--serve" in sys.argv else asyncio.run(main())
