"""The ways to a server: a child of our supervisor, streamable HTTP, and SSE. Everything that comes is bounded."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias, cast

import anyio
import httpx2
import mcp_types as types
from mcp.client import Transport
from mcp.client._transport import ReadStream, WriteStream
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from ba_tui.core.ports.mcp import ServerConfig
from ba_tui.core.text.wording import byte_size, one_line
from ba_tui.processes.duplex import DuplexChild, LineTooLong
from ba_tui.processes.supervised import Program
from ba_tui.protocols.mcp.limits import MESSAGE_BYTES, Pace, ServerLog, answered_id

Item: TypeAlias = SessionMessage | Exception
Arriving: TypeAlias = ReadStream[Item]
Leaving: TypeAlias = WriteStream[SessionMessage]
SHOWN = 120
END_SECONDS = 0.5
"""After its output ended, until its exit code is known."""
TOO_LARGE = f"The answer is larger than {byte_size(MESSAGE_BYTES)}, which is the most that ba reads of an MCP server."

STREAM_ENDED = "It closed its stream of events, or sent an event of more than 1 MB"
"""The SDK ends such a stream alike."""


class AnswerTooLarge(httpx2.StreamError):
    """A server sends more than ba reads."""


@asynccontextmanager
async def stdio(
    program: Program, log: ServerLog, ended: Callable[[str], None]
) -> AsyncGenerator[tuple[Arriving, Leaving]]:
    """Start ``program`` and talk to it. ``ended`` is told why it ended, in words. Raises OSError."""
    child = await DuplexChild.start(program, log.hear, MESSAGE_BYTES)
    arriving, read = anyio.create_memory_object_stream[Item](0)
    write, leaving = anyio.create_memory_object_stream[SessionMessage](0)
    talk = _Stdio(child, log)

    async def reading() -> None:
        async with arriving:
            try:
                async for item in talk.messages():
                    await arriving.send(item)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return
            # Before its streams are closed: whoever waits is told why.
            await child.wait(END_SECONDS)
            ended(talk.end())

    async def writing() -> None:
        async with leaving:
            async for message in leaving:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                talk.asked(message)
                try:
                    await child.write(text.encode() + b"\n")
                except OSError:
                    return

    try:
        async with read, write, anyio.create_task_group() as group:
            group.start_soon(reading)
            group.start_soon(writing)
            try:
                yield read, write
            finally:
                with anyio.CancelScope(shield=True):
                    await child.close()
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await child.close()


class _Stdio:
    """What one child sends, as messages; what is none goes to the log."""

    def __init__(self, child: DuplexChild, log: ServerLog) -> None:
        self._child, self._log = child, log
        self._pace = Pace()
        self._open: dict[int | str, None] = {}
        self._noise = 0

    def asked(self, message: SessionMessage) -> None:
        """Remember that a request went out."""
        if isinstance(message.message, types.JSONRPCRequest):
            self._open[message.message.id] = None

    async def messages(self) -> AsyncIterator[Item]:
        while True:
            try:
                line = await self._child.read_line()
            except LineTooLong as error:
                self._log.add(f"ba: it sent a message of {byte_size(error.size)}, which was left out")
                if (id := self._meant(error)) is not None:
                    yield SessionMessage(_error(id, TOO_LARGE))
                continue
            if not line.strip():
                if self._child.over:
                    return
                continue
            await self._pace()
            if (message := self._parsed(line)) is not None:
                yield message

    def end(self) -> str:
        """Why it ended, as far as is known."""
        code, last = self._child.exit_code, self._log.last
        how = "It closed its output" if code is None else f"It ended with exit code {code}"
        return f"{how}: {one_line(last, SHOWN)}" if last else f"{how}."

    def _parsed(self, line: bytes) -> SessionMessage | None:
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._noise += 1
            if self._noise <= 20:
                self._log.add(f"stdout, not JSON-RPC: {line[:SHOWN].decode('utf-8', 'replace')}")
            elif self._noise == 21:
                self._log.add("ba: further lines that are not JSON-RPC are left out")
            return None
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and message.id is not None:
            self._open.pop(message.id, None)
        return SessionMessage(mended(message, self._log))

    def _meant(self, error: LineTooLong) -> int | str | None:
        """The request that a message beyond the limit answers; the only open one where it does not tell."""
        id = answered_id(error.ends)
        if id not in self._open:
            id = next(iter(self._open)) if len(self._open) == 1 else None
        if id is not None:
            self._open.pop(id)
        return id


def _error(id: int | str, text: str) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=id, error=types.ErrorData(code=types.INTERNAL_ERROR, message=text))


def mended(message: types.JSONRPCMessage, log: ServerLog) -> types.JSONRPCMessage:
    """The same message; from a list of tools those are taken out that would make the whole list unreadable."""
    if not isinstance(message, types.JSONRPCResponse) or not isinstance(listed := message.result.get("tools"), list):
        return message
    kept: list[Any] = []
    for raw in cast("list[Any]", listed):
        if why := _unreadable(raw):
            name = cast("dict[str, Any]", raw).get("name") if isinstance(raw, dict) else None
            log.add(f"tool {one_line(str(name or '(no name)'), 80)}: {why}")
        else:
            kept.append(raw)
    message.result["tools"] = kept
    return message


def _unreadable(raw: Any) -> str:
    """Why a tool of a listing can't be read; empty when it can."""
    try:
        tool = types.Tool.model_validate(raw, by_name=False)
    except ValueError:
        return "left out, its definition is not valid"
    if tool.input_schema.setdefault("type", "object") != "object":
        return "left out, its schema describes no object"
    # Results are checked by nobody but the model: checking a large one would hold up the screen.
    cast("dict[str, Any]", raw).pop("outputSchema", None)
    return ""


@asynccontextmanager
async def over_http(
    config: ServerConfig, client: httpx2.AsyncClient, log: ServerLog, ended: Callable[[str], None]
) -> AsyncGenerator[tuple[Arriving, Leaving]]:
    """Talk to the address of ``config`` by ``client``, which is closed at the end. ``ended`` is told why the server
    closed its stream, in words."""

    def given(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        del headers, timeout, auth
        return client

    transport: Transport
    async with AsyncExitStack() as stack:
        if config.transport == "sse":
            transport = sse_client(config.url, httpx_client_factory=given)
        else:
            await stack.enter_async_context(client)
            transport = streamable_http_client(config.url, http_client=client, max_sse_event_size=MESSAGE_BYTES)
        read, write = await stack.enter_async_context(transport)
        yield await stack.enter_async_context(_paced(read, write, log, ended))


@asynccontextmanager
async def _paced(
    read: Arriving, write: Leaving, log: ServerLog, ended: Callable[[str], None]
) -> AsyncGenerator[tuple[Arriving, Leaving]]:
    """The same streams, where a flood has to wait."""
    arriving, paced = anyio.create_memory_object_stream[Item](0)
    pace = Pace()

    async def relay() -> None:
        async with arriving:
            try:
                async for item in read:
                    await pace()
                    if isinstance(item, SessionMessage):
                        item.message = mended(item.message, log)
                    await arriving.send(item)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return
            # Before the stream is closed, as above.
            ended(STREAM_ENDED)

    async with paced, anyio.create_task_group() as group:
        group.start_soon(relay)
        try:
            yield paced, write
        finally:
            group.cancel_scope.cancel()


class BoundedBody(httpx2.AsyncByteStream):
    """The body of a response, cut off with an error where it is larger than ``most``."""

    def __init__(self, body: httpx2.AsyncByteStream, most: int) -> None:
        self._body, self._most = body, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        came = 0
        async for piece in self._body:
            came += len(piece)
            if came > self._most:
                raise AnswerTooLarge(TOO_LARGE)
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


class Watched(httpx2.AsyncBaseTransport):
    """Sends requests by another transport. ``status``: of the newest response; bodies that are no stream of events are
    bounded."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner
        self.status = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        self.status = response.status_code
        streams = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        if not streams and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = BoundedBody(response.stream, MESSAGE_BYTES)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()
