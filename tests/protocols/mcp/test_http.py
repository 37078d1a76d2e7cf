"""Servers with an address: the newest protocol and the old one, refusals, redirects, answers that are too large."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ba_tui.core.ports.mcp import LoginNeeded, McpError, ServerConfig
from tests.protocols.mcp.calls import Answered, servers
from tests.protocols.mcp.programs import GOOD

Reply = Callable[[dict[str, object]], tuple[int, dict[str, str], bytes]]


@asynccontextmanager
async def endpoint(reply: Reply) -> AsyncGenerator[str]:
    """An HTTP server that answers each message with what ``reply`` gives for it; its address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next((int(line[15:]) for line in head.splitlines() if line.startswith("content-length:")), 0)
        body = await reader.readexactly(length)
        status, headers, data = reply(json.loads(body) if body else {})
        lines = [f"HTTP/1.1 {status} X", f"content-length: {len(data)}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        try:
            writer.write(data)
            await writer.drain()
        except ConnectionError:
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


def plain(answer: Callable[[dict[str, object]], object]) -> Reply:
    """Replies with JSON; what is no request is accepted."""

    def reply(message: dict[str, object]) -> tuple[int, dict[str, str], bytes]:
        if "id" not in message:
            return 202, {}, b""
        body = {"jsonrpc": "2.0", "id": message["id"], **dict(answer(message))}  # pyright: ignore
        return 200, {"content-type": "application/json"}, json.dumps(body).encode()

    return reply


def old(message: dict[str, object]) -> object:
    """Answers as a server of the old protocol."""
    match message["method"]:
        case "initialize":
            info = {"serverInfo": {"name": "old", "version": "1"}, "capabilities": {"tools": {}}}
            return {"result": {"protocolVersion": "2025-06-18", **info}}
        case "tools/list":
            return {"result": {"tools": [{"name": "big", "inputSchema": {"type": "object"}}]}}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": "x" * 12_000_000}]}}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


async def fails(folder: Path, url: str, kind: type[McpError] = McpError) -> str:
    """How connecting to ``url`` fails, in words."""
    found = servers(folder, ServerConfig("web", "http", url=url, connect_timeout=10))
    try:
        with pytest.raises(kind) as raised:
            await found.connect("web")
        assert "\n" not in str(raised.value)
        return str(raised.value)
    finally:
        await found.close()


async def test_a_server_over_http(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = tmp_path / "web_server.py"
    path.write_text(GOOD, "utf-8")
    process = await asyncio.create_subprocess_exec(sys.executable, str(path), str(port), stderr=asyncio.subprocess.PIPE)
    try:
        assert process.stderr
        while b"running on" not in (line := await process.stderr.readline()) and line:
            pass
        found = servers(tmp_path, ServerConfig("web", "http", url=f"http://127.0.0.1:{port}/mcp"))
        state = await found.connect("web")
        assert (state.protocol, len(state.tools)) == ("2026-07-28", 5)
        call = Answered()
        assert (await found.each["web"].call("price", {"item": "x"}, call.call)).structured == {"price": 3}
        process.kill()
        await process.wait()
        with pytest.raises(McpError):
            await found.each["web"].call("price", {"item": "x"}, call.call)
        await found.close()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_an_old_server_whose_answer_is_too_large(tmp_path: Path) -> None:
    async with endpoint(plain(old)) as url:
        found = servers(tmp_path, ServerConfig("web", "http", url=url))
        assert (await found.connect("web")).protocol == "2025-06-18"
        with pytest.raises(McpError, match="larger than 10"):
            await found.each["web"].call("big", {}, Answered().call)
        assert found.listed()[0].phase == "ready"
        await found.close()


@pytest.mark.parametrize(
    ("status", "headers", "words", "kind"),
    [
        (401, {"www-authenticate": "Bearer"}, "wants you to log in", LoginNeeded),
        (403, {}, "refuses access", McpError),
        (404, {}, "no MCP endpoint", McpError),
        (500, {}, "error response", McpError),
        (200, {"content-type": "text/html"}, "Unexpected content type", McpError),
        (307, {"location": "http://evil.example/mcp"}, "not followed", McpError),
    ],
)
async def test_refusals_are_told_in_one_line(
    tmp_path: Path, status: int, headers: dict[str, str], words: str, kind: type[McpError]
) -> None:
    async with endpoint(lambda message: (status, headers, b"no")) as url:
        assert words in await fails(tmp_path, url, kind)


async def test_nobody_is_there(tmp_path: Path) -> None:
    assert "refuses connections" in await fails(tmp_path, "http://127.0.0.1:1/mcp")
