"""The example tools: 557 of 42 services, as MCP servers describe them, none of which does much."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

PATH = Path(__file__).with_name("tools.json")


class Entry(NamedTuple):
    """A tool, named as MCP clients name it: "server__tool"."""

    name: str
    description: str
    parameters: dict[str, Any]

    def run(self, **arguments: Any) -> str:
        """Pretend to do it."""
        return f"{self.name}: done with {json.dumps(arguments)}"


def entries() -> list[Entry]:
    servers = json.loads(PATH.read_text(encoding="utf-8"))
    return [
        Entry(f"{server}__{tool['name']}", tool["description"], tool["inputSchema"])
        for server, answer in servers.items()
        for tool in answer["tools"]
    ]


def tokens(schemas: Iterable[dict[str, Any]]) -> int:
    """About how many tokens the schemas take in a prompt: a quarter of their characters."""
    return sum(len(json.dumps(schema)) for schema in schemas) // 4
