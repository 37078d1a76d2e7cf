"""What MCP servers cost: a call through a warm one beside the SDK's own, and a session that knows many tools."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from mcp import StdioServerParameters
from mcp.client import Client

from ba_tui.core.ports.mcp import RemoteTool, ServerConfig
from ba_tui.core.provider import Modalities
from ba_tui.features.mcp.client.definitions import KnownServers, KnownTools
from ba_tui.features.mcp.setup import RemoteTools
from tests.bench.figures import Effort, Figure, median
from tests.protocols.mcp.calls import Answered, servers

SERVER = """
from mcp.server.mcpserver import MCPServer

app = MCPServer("bench")

@app.tool()
def add(a: int, b: int) -> str:
    return str(a + b)

app.run("stdio")
"""
SUM = {"a": 1, "b": 2}


async def _calls(path: Path, count: int) -> tuple[float, float]:
    """Milliseconds of one call, the SDK's own and ours, in turns."""
    found = servers(path.parent, ServerConfig("bench", command=(sys.executable, str(path)), sandboxed=False))
    await found.connect("bench")
    ours, call = found.each["bench"], Answered().call
    environment = {"PATH": os.defpath, "HOME": str(path.parent)}
    parameters = StdioServerParameters(command=sys.executable, args=[str(path)], env=environment)
    taken: tuple[list[float], list[float]] = [], []
    async with Client(parameters) as theirs:
        for _ in range(count):
            begun = time.perf_counter()
            await theirs.call_tool("add", SUM)
            between = time.perf_counter()
            await ours.call("add", SUM, call)
            taken[0].append(between - begun)
            taken[1].append(time.perf_counter() - between)
    await found.close()
    return 1_000 * median(taken[0]), 1_000 * median(taken[1])


def _known(folder: Path, rounds: int) -> float:
    """Milliseconds until 200 remembered tools of 5 servers are tools of a session."""
    schema = {"type": "object", "properties": {"query": {"type": "string", "description": "What to look for."}}}
    configs = [ServerConfig(f"server{number}", command=("true",)) for number in range(5)]
    for config in configs:
        tools = tuple(
            RemoteTool(f"find_{n}", f"mcp__{config.name}__find_{n}", description="Find. " * 20, schema=schema)
            for n in range(40)
        )
        KnownServers(folder).save(config, KnownTools({tool.name: tool for tool in tools}, tools))
    taken: list[float] = []
    for _ in range(rounds):
        begun = time.perf_counter()
        RemoteTools(servers(folder, *configs, store=folder), Modalities()).look()
        taken.append(1_000 * (time.perf_counter() - begun))
    return median(taken)


def mcp(effort: Effort) -> Iterator[Figure]:
    """A call beside the SDK's own, and tools that are remembered; none of it stands before the first screen."""
    with TemporaryDirectory() as name:
        path = Path(name) / "server.py"
        path.write_text(SERVER, "utf-8")
        rounds = [asyncio.run(_calls(path, effort.steps // 2)) for _ in range(3)]
        yield Figure("a call to a warm MCP server, beyond the SDK's own", median([b - a for a, b in rounds]), "ms", 2.0)
        yield Figure("200 remembered tools of 5 MCP servers", _known(Path(name), effort.keys), "ms", 50.0)
