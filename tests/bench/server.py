"""A model server in a process of its own, so that its work is not counted. It speaks just enough of the Messages API.

The prompt says what to answer: ``bench:steps:50`` (50 tool calls, then words), ``bench:stream:200000`` (characters in
16-byte events, at once), ``bench:paced:2000`` (characters a second, until hung up), ``bench:agents:20`` (sub-agents
that are each answered as ``bench:paced:2000``). Each request leaves one line.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import subprocess
import sys
import threading
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.bench.prose import answer

PIECE = 16
ORDER = re.compile(rb"bench:(\w+):(\d+)")
LENGTH = re.compile(rb"content-length: *(\d+)", re.I)
OPENING = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def event(kind: str, **values: Any) -> bytes:
    data = json.dumps({"type": kind, **values}, separators=(",", ":"))
    return f"event: {kind}\ndata: {data}\n\n".encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def opening() -> bytes:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "bench", "content": []}
    usage = {"input_tokens": 10, "output_tokens": 1}
    return event("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": usage})


def ending(reason: str) -> bytes:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return event("message_delta", delta=delta, usage={"output_tokens": 10}) + event("message_stop")


def text_delta(text: str) -> bytes:
    return event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})


TEXT_START = event("content_block_start", index=0, content_block={"type": "text", "text": ""})
BLOCK_STOP = event("content_block_stop", index=0)


def call(number: int) -> bytes:
    """A call of a cheap tool that only reads, never twice with the same arguments."""
    block = {"type": "tool_use", "id": f"toolu_{number:06}", "name": "calculator", "input": {}}
    given = json.dumps({"expression": f"{number} + 1"})
    delta = {"type": "input_json_delta", "partial_json": given}
    start = event("content_block_start", index=0, content_block=block)
    return start + event("content_block_delta", index=0, delta=delta) + BLOCK_STOP


def agents(number: int) -> bytes:
    """Calls that start ``number`` sub-agents."""
    made = b""
    for index in range(number):
        block = {"type": "tool_use", "id": f"toolu_a{index:05}", "name": "delegate_task", "input": {}}
        task = {
            "agent_type": "explore",
            "description": f"Look at part {index}",
            "prompt": "bench:paced:2000",
            "background": True,
        }
        delta = {"type": "input_json_delta", "partial_json": json.dumps(task)}
        made += event("content_block_start", index=index, content_block=block)
        made += event("content_block_delta", index=index, delta=delta)
        made += event("content_block_stop", index=index)
    return opening() + made + ending("tool_use")


def words(text: str) -> bytes:
    return opening() + TEXT_START + text_delta(text) + BLOCK_STOP + ending("end_turn")


class Session:
    """One connection: requests one after the other, each answered as its newest order says."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def serve(self) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                first = await self.reader.readexactly(1)
                arrived = time.monotonic()
                head = first + await self.reader.readuntil(b"\r\n\r\n")
                length = LENGTH.search(head)
                body = await self.reader.readexactly(int(length[1]) if length else 0)
                await self.reply(head, body, arrived)
        self.writer.close()

    async def reply(self, head: bytes, body: bytes, arrived: float) -> None:
        if not head.startswith(b"POST"):
            self.writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            return
        orders = list(ORDER.finditer(body))
        kind, amount = (orders[-1][1].decode(), int(orders[-1][2])) if orders else ("none", 0)
        tell(kind=kind, event="request", at=arrived, size=len(body))
        self.writer.write(OPENING)
        if kind == "stream":
            await self.stream(amount)
        elif kind == "paced":
            await self.paced(amount)
        elif kind == "agents":
            self.writer.write(chunk(agents(amount)))
        else:
            # Results of an earlier order in the same session are no steps of this one.
            done = body.count(b'"tool_result"', orders[-1].end()) if orders else 0
            total = body.count(b'"tool_result"')
            more = kind == "steps" and done < amount
            data = opening() + call(total) + ending("tool_use") if more else words("All steps are done.")
            self.writer.write(chunk(data))
            if not more:
                keep(body)
        ended = time.monotonic()
        self.writer.write(chunk(b""))
        await self.writer.drain()
        tell(kind=kind, event="answered", at=ended, size=len(body))

    async def stream(self, size: int) -> None:
        text = answer(size)
        tell(kind="stream", event="first", at=time.monotonic(), size=len(text))
        self.writer.write(chunk(opening() + TEXT_START))
        for start in range(0, len(text), PIECE):
            self.writer.write(chunk(text_delta(text[start : start + PIECE])))
            await self.writer.drain()
        self.writer.write(chunk(BLOCK_STOP + ending("end_turn")))

    async def paced(self, rate: int) -> None:
        text = answer(200_000)
        begin = time.monotonic()
        tell(kind="paced", event="first", at=begin, size=0)
        self.writer.write(chunk(opening() + TEXT_START))
        for start in range(0, len(text), PIECE):
            self.writer.write(chunk(text_delta(text[start : start + PIECE])))
            await self.writer.drain()
            await asyncio.sleep(max(0.0, begin + start / rate - time.monotonic()))


def tell(**values: Any) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def keep(body: bytes) -> None:
    """A body that ends a turn is kept for the bare loop, which sends the same bytes."""
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_bytes(body)


async def main() -> None:
    context = None
    if len(sys.argv) > 2:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2])
    server = await asyncio.start_server(lambda r, w: Session(r, w).serve(), "127.0.0.1", 0, limit=1 << 26, ssl=context)
    tell(event="port", at=time.monotonic(), port=server.sockets[0].getsockname()[1])
    async with server:
        await server.serve_forever()


class ModelServer:
    """The server from outside: its address, and the lines it left."""

    def __init__(self, body: Path, pem: Path | None = None) -> None:
        self.body = body
        self.pem = pem
        self.lines: list[dict[str, Any]] = []
        self._news = threading.Condition()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.server", str(body), *([str(pem)] if pem else [])],
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()
        self.port = int(self.line("port")["port"])

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}" if self.pem else f"http://127.0.0.1:{self.port}"

    def _listen(self) -> None:
        assert self._process.stdout
        for text in self._process.stdout:
            with self._news:
                self.lines.append(json.loads(text))
                self._news.notify_all()

    def line(self, event: str, after: int = 0, count: int = 1, longest: float = 60.0) -> dict[str, Any]:
        """The ``count``-th line about ``event`` from line ``after`` on, waited for."""
        end = time.monotonic() + longest
        with self._news:
            while True:
                found = [line for line in self.lines[after:] if line["event"] == event]
                if len(found) >= count:
                    return found[count - 1]
                if not self._news.wait(end - time.monotonic()):
                    raise TimeoutError(f"the server saw no {event} number {count} within {longest} s")

    def gaps(self, after: int) -> list[float]:
        """Milliseconds from the end of an answer to the next request, from line ``after`` on."""
        seen = self.lines[after:]
        pairs = pairwise(seen)
        return [(b["at"] - a["at"]) * 1e3 for a, b in pairs if (a["event"], b["event"]) == ("answered", "request")]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()


if __name__ == "__main__":
    asyncio.run(main())
