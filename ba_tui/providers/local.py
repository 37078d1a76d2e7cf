"""Model servers on this machine: who answers on the usual ports, and which models they offer.

Loopback only, and nothing is sent but a question for the list. Talking to them is openai_compat's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ba_tui.core.messages import clean_text
from ba_tui.core.ports.setup import LocalServer
from ba_tui.providers.shapes import decode, fields, items, text_of

PORTS: Mapping[str, int] = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080}
TIMEOUT = 0.4
LARGEST = 4 * 2**20


async def local_servers(ports: Mapping[str, int] = PORTS, timeout: float = TIMEOUT) -> tuple[LocalServer, ...]:
    """Those that answer within ``timeout`` seconds, all asked at once."""
    found = await asyncio.gather(*(_ask(name, port, timeout) for name, port in ports.items()))
    return tuple(server for server in found if server)


async def _ask(name: str, port: int, timeout: float) -> LocalServer | None:
    try:
        async with asyncio.timeout(timeout):
            listed = fields(await _get(port, "/v1/models"))
    except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None
    if not isinstance(listed.get("data"), list):
        return None
    names = (text_of(fields(model).get("id")) for model in items(listed["data"]))
    models = tuple(f"openai/{clean_text(model)}" for model in names if model)
    return LocalServer(name, f"http://127.0.0.1:{port}/v1", models)


async def _get(port: int, path: str) -> Any:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\n\r\n"
        writer.write(head.encode("ascii"))
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        if " 200" not in answer.partition("\r\n")[0]:
            raise ValueError("no list of models")
        length = next((line[15:] for line in answer.split("\r\n") if line.startswith("content-length:")), "")
        if "transfer-encoding: chunked" in answer:
            return decode(await _unchunked(reader))
        return decode(await (reader.readexactly(min(int(length), LARGEST)) if length else _to_the_end(reader)))
    finally:
        writer.close()


async def _to_the_end(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while (piece := await reader.read(2**16)) and len(body) <= LARGEST:
        body += piece
    return body


async def _unchunked(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readline()).split(b";")[0], 16):
        if len(body) + size > LARGEST:
            raise ValueError("too long for a list of models")
        body += await reader.readexactly(size)
        await reader.readline()
    return body
