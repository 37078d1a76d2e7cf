"""``python -m tests.eval.mcp.client URL``: what the conformance suite starts: connects by ba's own client, lists what
there is and calls every tool."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ba_tui.core.errors import BaError
from ba_tui.core.ports.mcp import ServerConfig
from tests.protocols.mcp.calls import Answered, servers

NAME = "conformance"
_VALUES: Mapping[str, Any] = {"integer": 3, "number": 3, "string": "text", "boolean": True, "array": [], "object": {}}


def arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return values that fit the parameters which ``schema`` requires."""
    properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    return {name: _VALUES.get(str(properties.get(name, {}).get("type")), "text") for name in schema.get("required", ())}


async def main(url: str) -> int:
    """Talk to the server at ``url``; returns the exit code."""
    found = servers(Path.cwd(), ServerConfig(NAME, "http", url=url))
    try:
        state = await found.connect(NAME)
        print(state.title, state.protocol, [tool.name for tool in state.tools], *state.notes)
        for tool in state.tools:
            print(await found.each[NAME].call(tool.name, arguments(tool.schema), Answered().call))
    except BaError as error:
        print(error.with_hint)
        return 1
    finally:
        await found.close()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
