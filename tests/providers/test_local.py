"""Finding model servers on loopback: real servers on injected ports."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager

import pytest

from ba_tui.providers.local import local_servers
from tests.loopback import ModelServer


@pytest.fixture
def nobody() -> Generator[int]:
    """A port where nobody listens: it is taken, but no connection is accepted."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@asynccontextmanager
async def answering(answer: bytes | None) -> AsyncGenerator[int, None]:
    """A server that says these bytes to whoever comes, or nothing at all."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if answer is None:
            await reader.read()
        else:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_servers_and_their_models_are_found(model_server: Callable[..., ModelServer], nobody: int) -> None:
    one, two = model_server([], models=("qwen2.5-coder:7b", "llama3.2")), model_server([], models=())
    found = await local_servers({"Ollama": one.port, "LM Studio": nobody, "llama.cpp": two.port}, timeout=5)
    assert [server.name for server in found] == ["Ollama", "llama.cpp"]
    assert found[0].base_url == f"http://127.0.0.1:{one.port}/v1"
    assert found[0].models == ("openai/qwen2.5-coder:7b", "openai/llama3.2")
    assert found[1].models == ()


async def test_nobody_there_is_no_error(nobody: int) -> None:
    assert await local_servers({"Ollama": nobody}, timeout=5) == ()


async def test_a_silent_server_is_given_up_on() -> None:
    async with answering(None) as port:
        assert await local_servers({"Ollama": port}, timeout=0.05) == ()


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-nothing\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n<html>a web server</html>",
        b'HTTP/1.1 200 OK\r\n\r\n{"data": "no list"}',
        b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
        b"",
    ],
)
async def test_other_programs_on_the_port_are_not_taken_for_models(answer: bytes) -> None:
    async with answering(answer) as port:
        assert await local_servers({"llama.cpp": port}, timeout=5) == ()


@pytest.mark.parametrize(
    "head", [b"", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 40\r\n"], ids=["open", "chunked", "length"]
)
async def test_every_way_to_send_a_body_is_read(head: bytes) -> None:
    body = b'{"data": [{"id": "tiny"}, {"x": 1}, 7]} '
    sent = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if b"chunked" in head else body
    async with answering(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + sent) as port:
        found = await local_servers({"llama.cpp": port}, timeout=5)
    assert found[0].models == ("openai/tiny",)


async def test_a_long_list_that_ends_with_the_connection_is_read_to_its_end() -> None:
    body = b'{"data": [%b]}' % b",".join(b'{"id": "model-%d"}' % number for number in range(20_000))
    async with answering(b"HTTP/1.1 200 OK\r\n\r\n" + body) as port:
        found = await local_servers({"llama.cpp": port}, timeout=5)
    assert len(found[0].models) == 20_000
