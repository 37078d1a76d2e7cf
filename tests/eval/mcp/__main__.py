"""``python -m tests.eval.mcp --suite PATH [--node NODE] [--servers FILE]``: the client of MCP servers, measured.

``--suite`` is the installed package ``@modelcontextprotocol/conformance``; ``--servers`` a file as ``.mcp.json``, whose
servers are connected to, and every tool of which that needs no argument is called. The last line counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import time
from pathlib import Path

from ba_tui.core.errors import BaError
from ba_tui.core.ports.mcp import ServerConfig
from tests.eval.mcp.client import arguments
from tests.protocols.mcp.calls import Answered, servers

SECONDS = 90


def scenarios(node: str, program: Path) -> list[str]:
    """Return the scenarios for clients that need no login."""
    told = subprocess.run([node, program, "list", "--client"], capture_output=True, text=True, check=True).stdout
    return [name for name in re.findall(r"^\s+- (\S+)", told, re.MULTILINE) if not name.startswith("auth/")]


def passed(node: str, program: Path, scenario: str) -> tuple[bool, str]:
    """Return whether our client passes, and what the suite says last."""
    command = f"{sys.executable} -m tests.eval.mcp.client"
    words = [node, program, "client", "--command", command, "--scenario", scenario, "--timeout", str(SECONDS * 1000)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=2 * SECONDS, check=False)
    told = re.findall(r"Passed: .*|\d+ passed.*|.*warning.*", done.stdout + done.stderr)
    return done.returncode == 0, told[-1].strip() if told else (done.stdout + done.stderr).strip()[-300:]


async def tried(config: ServerConfig, folder: Path) -> tuple[bool, str]:
    """Return whether a server can be used, and what it offers and answers."""
    found, begun = servers(folder, config), time.monotonic()
    try:
        state = await found.connect(config.name)
        took, called, failed = time.monotonic() - begun, 0, list[str]()
        for tool in state.tools:
            if tool.schema.get("required"):
                continue
            try:
                await found.each[config.name].call(tool.name, arguments(tool.schema), Answered().call)
                called += 1
            except BaError as error:
                failed.append(f"{tool.name}: {error}")
        offers = f"{len(state.tools)} tools, {len(state.resources)} resources, {len(state.prompts)} prompts"
        return True, f"{state.protocol}, {took:.1f} s, {offers}, {called} called {'; '.join([*failed, *state.notes])}"
    except BaError as error:
        return False, f"{error.with_hint} {found.logs(config.name)[-3:]}"
    finally:
        await found.close()


def main() -> None:
    """Measure and print a line for each."""
    flags = argparse.ArgumentParser(description="Measure the client of MCP servers.")
    flags.add_argument("--suite", type=Path, metavar="PATH", help="the installed conformance suite")
    flags.add_argument("--node", default="node", help="Node.js 22 or newer")
    flags.add_argument("--servers", type=Path, metavar="FILE", help="servers to try, as in .mcp.json")
    given = flags.parse_args()
    good: list[bool] = []
    if given.suite:
        program = given.suite / "dist" / "index.js"
        for scenario in scenarios(given.node, program):
            fine, told = passed(given.node, program, scenario)
            good.append(fine)
            print(f"{'pass' if fine else 'FAIL'}  {scenario:40} {told}", flush=True)
    if given.servers:
        for name, raw in json.loads(given.servers.read_text("utf-8"))["mcpServers"].items():
            command = (raw["command"], *raw.get("args", ())) if "command" in raw else ()
            kind = "stdio" if command else raw.get("type", "http")
            config = ServerConfig(name, kind, command, raw.get("env", {}), url=raw.get("url", ""))
            fine, told = asyncio.run(tried(config, given.servers.parent))
            good.append(fine)
            print(f"{'pass' if fine else 'FAIL'}  {name:40} {told}", flush=True)
    print(f"{sum(good)} of {len(good)} pass")


if __name__ == "__main__":
    main()
