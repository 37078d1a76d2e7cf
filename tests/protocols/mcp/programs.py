"""Servers for tests: a good one made with the SDK, and hand-written ones that break the rules."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ba_tui.core.ports.mcp import ServerConfig

GOOD = """
import asyncio, sys
from mcp.server.mcpserver import Context, Image, MCPServer

app = MCPServer("shop", instructions="Ask for prices first.\\u200b")
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)

@app.tool()
def price(item: str, count: int = 1) -> dict[str, int]:
    "Look up a price."
    return {"price": 3 * count}

@app.tool()
def picture() -> Image:
    "Draw a pixel."
    return Image(data=PIXEL, format="png")

@app.tool()
async def slow(ctx: Context) -> str:
    "Report and wait."
    await ctx.report_progress(1, 3, "first of three")
    await asyncio.sleep(30)
    return "never"

@app.tool()
def large(size: int) -> str:
    "Say much."
    return "x" * size

@app.tool()
def broken() -> str:
    "Fail."
    raise ValueError("the till is empty")

@app.resource("note://today", name="Today")
def today() -> str:
    return "Fish on Friday."

@app.prompt()
def offer(customer: str) -> str:
    "Write an offer."
    return f"Write an offer for {customer}."

print("shop is open", file=sys.stderr, flush=True)
if len(sys.argv) > 1:
    app.run("streamable-http", port=int(sys.argv[1]))
else:
    app.run("stdio")
"""

RAW = """
import json, os, sys, time

def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def tool(name="echo", description="Echo.", schema=None, **more):
    return {"name": name, "description": description, "inputSchema": schema or {"type": "object"}, **more}

def answer(message, tools, reply=None, capabilities=None):
    method, id = message.get("method"), message.get("id")
    if id is None or method is None:
        return
    if method == "initialize":
        say(id=id, result={
            "protocolVersion": "2025-11-25", "serverInfo": {"name": "raw", "version": "1"},
            "capabilities": capabilities or {"tools": {"listChanged": True}},
        })
    elif method == "tools/list":
        say(id=id, result={"tools": tools() if callable(tools) else tools})
    elif method == "tools/call" and reply:
        reply(message)
    elif method == "tools/call":
        say(id=id, result={"content": [{"type": "text", "text": "called"}]})
    else:
        say(id=id, error={"code": -32601, "message": "Method not found"})

def serve(tools, reply=None, capabilities=None):
    for line in sys.stdin:
        answer(json.loads(line), tools, reply, capabilities)
"""


def good(folder: Path, name: str = "shop") -> ServerConfig:
    """Return a server that keeps the rules."""
    return _config(folder, name, GOOD)


def raw(folder: Path, code: str, name: str = "raw", **more: Any) -> ServerConfig:
    """Return a server of the old protocol that runs ``code`` after the helpers of RAW."""
    return _config(folder, name, RAW + code, **more)


def _config(folder: Path, name: str, code: str, **more: Any) -> ServerConfig:
    path = folder / f"{name.replace(' ', '_')}_server.py"
    path.write_text(code, "utf-8")
    settings: Mapping[str, Any] = {"sandboxed": False, "connect_timeout": 30.0, **more}
    return ServerConfig(name, command=(sys.executable, str(path)), **settings)
