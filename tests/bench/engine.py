"""What the tool engine costs: all guards around a tool that does nothing, a thousand tools, half a gigabyte printed."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ba_tui.core.events import MessageDone, TurnStarted
from ba_tui.core.messages import Message, ToolUse, user
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.tools.definitions import Definition
from ba_tui.tools.guards.pipeline import pipeline
from ba_tui.tools.registry import Registry
from ba_tui.tools.shells import Shell
from ba_tui.tools.toolbox import SessionPlace
from ba_tui.tools.visible import Search, Visible
from tests.bench.figures import Effort, Figure, median

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


async def nothing(args: Mapping[str, Any], call: Call) -> ToolResult:
    return ToolResult("ok")


async def _guarded(folder: Path, calls: int) -> list[float]:
    """CPU milliseconds of each call through all guards, the last half of ``calls``."""
    place = SessionPlace(Workspace(folder), Shell(None, {}), None)
    policy = Policy(place.workspace)
    tool = pipeline(place, policy.judge, policy.remember)(Tool("nothing", "Does nothing.", SCHEMA, nothing))
    branch = Branch(Turn(), Transcript())
    branch.emit(TurnStarted(user("go")))
    spent: list[float] = []
    for number in range(calls):
        use = ToolUse(f"call-{number}", "nothing", {"n": number})
        branch.emit(MessageDone(Message("assistant", (use,), origin="assistant")))
        start = time.process_time()
        await tool.run(use.input, Call(use.id, branch))
        spent.append((time.process_time() - start) * 1000)
    return spent[calls // 2 :]


def _visible(tools: int) -> float:
    """Milliseconds to build the visible set out of so many tools."""
    registry = Registry(lambda tool: tool)
    for number in range(tools):
        registry.add(Tool(f"tool_{number}", f"Tool number {number}.", SCHEMA, nothing), origin="user")
    search = Search(Definition("Search.", {"type": "object"}))
    start = time.process_time()
    Visible(registry, search, budget=10**9).visible()
    return (time.process_time() - start) * 1000


FLOOD = """
import asyncio, json, os, resource, sys
from pathlib import Path
from ba_tui.assembly import connect
folder = Path(sys.argv[1])
command = "head -c 500000000 /dev/zero | tr '\\\\0' y"
script = {"steps": [{"calls": [{"tool": "shell", "args": {"command": command}}]}, {"say": "Done."}]}
(folder / "flood.yaml").write_text(json.dumps(script))
def rss():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6
async def main():
    flags = {"model": f"scripted:{folder}/flood.yaml", "permissions.allow": [f"shell({command})"]}
    talk = connect(flags, folder, strict=True).library.create()
    await talk.warm()
    before = most = rss()
    async for event in talk.say("go"):
        most = max(most, rss())
    await talk.close()
    print(json.dumps(max(most, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000) - before))
asyncio.run(main())
"""


def _flood() -> float:
    """Megabytes that ba grows by while a command prints 500 MB."""
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, "-c", textwrap.dedent(FLOOD), name]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=_environment(name))
        return float(json.loads(done.stdout.splitlines()[-1]))


def _environment(home: str) -> dict[str, str]:
    return {**os.environ, "BA_HOME": str(Path(home) / "home")}


def engine(effort: Effort) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        spent = asyncio.run(_guarded(Path(name), 2 * effort.steps))
    yield Figure("all guards around a call that does nothing, CPU", median(spent), "ms", 0.3)
    yield Figure("the visible set out of 1,000 tools", median([_visible(1_000) for _ in range(5)]), "ms", 5.0)
    yield Figure("growth while a command prints 500 MB", _flood(), "MB", 150.0)
