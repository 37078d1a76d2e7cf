"""A server of the oldest transport with an address: answers come as events of one stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.ports.mcp import McpError, ServerConfig
from tests.protocols.mcp.calls import Answered, servers

TOOL = {"name": "echo", "inputSchema": {"type": "object", "properties": {"size": {"type": "integer"}}}}


def answer(message: Mapping[str, Any]) -> object:
    """The result of a request, of a server that speaks the protocol of 2024."""
    match message["method"]:
        case "initialize":
            info = {"serverInfo": {"name": "sse", "version": "1"}, "capabilities": {"tools": {}}}
            return {"result": {"protocolVersion": "2024-11-05", **info}}
        case "tools/list":
            return {"result": {"tools": [TOOL]}}
        case "tools/call":
            text = "x" * message["params"]["arguments"]["size"]
            return {"result": {"content": [{"type": "text", "text": text}]}}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


def said(message: Mapping[str, Any]) -> str:
    """The answer to a request, as text."""
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], **dict(answer(message))})  # pyright: ignore


@asynccontextmanager
async def stream(
    endpoint: str = "/messages", answered: Callable[[Mapping[str, Any]], str] = said, refused: str = ""
) -> AsyncGenerator[str]:
    """The server, which names ``endpoint`` for requests, and refuses those that hold a text; its address."""
    events: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    serving: set[asyncio.Task[Any]] = set()

    async def send(writer: asyncio.StreamWriter) -> None:
        nonlocal events
        # The newest stream gets the answers: one that the client has left takes none.
        events = asyncio.Queue()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        writer.write(f"event: endpoint\ndata: {endpoint}\n\n".encode())
        mine = events
        while True:
            kind, data = await mine.get()
            writer.write(f"event: {kind}\ndata: {data}\n\n".encode())
            await writer.drain()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if task := asyncio.current_task():
            serving.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            if head.startswith("get"):
                await send(writer)
            length = next((int(line[15:]) for line in head.splitlines() if line.startswith("content-length:")), 0)
            text = await reader.readexactly(length)
            message = json.loads(text)
            if refused and refused.encode() in text:
                writer.write(b"HTTP/1.1 500 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                return
            if "id" in message:
                events.put_nowait(("message", answered(message)))
            writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/sse"
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def test_calls_over_sse_and_an_answer_that_is_too_large(tmp_path: Path) -> None:
    async with stream() as url:
        found = servers(tmp_path, ServerConfig("web", "sse", url=url, call_timeout=5))
        state = await found.connect("web")
        assert (state.protocol, [tool.name for tool in state.tools]) == ("2024-11-05", ["echo"])
        server, call = found.each["web"], Answered().call
        assert (await server.call("echo", {"size": 900_000}, call)).parts[0].text == "x" * 900_000
        with pytest.raises(McpError, match=r"larger than 1.0 MB, .*: [12].. MB, beginning with ..jsonrpc"):
            await server.call("echo", {"size": 2_000_000}, call)
        # Its stream is broken then: the next call makes a new one.
        assert (await server.call("echo", {"size": 3}, call)).parts[0].text == "xxx"
        await found.close()


async def test_an_endpoint_elsewhere_is_refused(tmp_path: Path) -> None:
    async with stream("http://evil.example/messages") as url:
        found = servers(tmp_path, ServerConfig("web", "sse", url=url, connect_timeout=1))
        with pytest.raises(McpError, match="within 1 s"):
            await found.connect("web")
        await found.close()
