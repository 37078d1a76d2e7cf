"""Transports to a server: a supervised child process, streamable HTTP, and SSE. All input is limited in size."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeAlias, cast

import anyio
import httpx2
import mcp_types as types
from mcp.client import Transport
from mcp.client._transport import ReadStream, WriteStream
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from pydantic_core import from_json

from ba_tui.core.ports.mcp import ServerConfig
from ba_tui.core.text.wording import byte_size, one_line
from ba_tui.features.mcp.client.incoming import PROBE, TOO_LARGE, Peek, ServerMessages, described, why_unreadable
from ba_tui.features.mcp.client.values import MESSAGE_BYTES, Pace, answered_id
from ba_tui.processes.duplex import ENDS_BYTES, DuplexChild, LineEndless, LineTooLong, LineUnfinished
from ba_tui.processes.values import Program

Item: TypeAlias = SessionMessage | Exception
Arriving: TypeAlias = ReadStream[Item]
Leaving: TypeAlias = WriteStream[SessionMessage]
Deliver: TypeAlias = Callable[[Item], Awaitable[None]]
SHOWN = 120
END_SECONDS = 0.5
"""Seconds to wait for the exit code after the output has ended."""
QUIET_SECONDS = 0.25
"""Seconds after which a complete message without a line end counts as a line."""
MOST_SPLIT = 50
"""Maximum messages that are searched for in one line."""
SSE_EVENT_BYTES = 1_048_576
"""Maximum bytes of one event in the older transport: the SDK ends a stream with a larger one."""
STREAM_ENDED = "It closed its stream of events"


class ResponseTooLarge(httpx2.StreamError):
    """A server sends more than ba reads."""


@asynccontextmanager
async def stdio(
    program: Program, incoming: ServerMessages, patience: float, ended: Callable[[str], None]
) -> AsyncGenerator[tuple[Arriving, Leaving]]:
    """Start ``program`` and communicate with it. ``patience``: seconds after which an unfinished line fails the waiting
    requests. ``ended`` is called with the reason, in words. Raises OSError."""
    child = await DuplexChild.start(program, incoming.log.hear, MESSAGE_BYTES)
    arriving, read = anyio.create_memory_object_stream[Item](0)
    write, leaving = anyio.create_memory_object_stream[SessionMessage](0)
    talk = _Stdio(child, incoming, patience)

    async def reading() -> None:
        async with arriving:
            try:
                async for item in talk.messages():
                    await arriving.send(item)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return
            # Report the reason to waiting requests before the streams are closed.
            await child.wait(END_SECONDS)
            ended(talk.end())

    async def writing() -> None:
        async with leaving:
            async for message in leaving:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                if incoming.asked(message.message):
                    group.start_soon(_give_up_probe, incoming, message.message, arriving.send)
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


async def _give_up_probe(incoming: ServerMessages, message: types.JSONRPCMessage, deliver: Deliver) -> None:
    """Answer the probe of the newest protocol in place of a server that ignores it."""
    await asyncio.sleep(incoming.probe_seconds)
    if isinstance(message, types.JSONRPCRequest):
        text = f"{PROBE} was not answered within {incoming.probe_seconds:g} s"
        await _deliver(incoming.fail(message.id, text, types.REQUEST_TIMEOUT), deliver)


async def _deliver(items: Sequence[Item], deliver: Deliver) -> None:
    try:
        for item in items:
            await deliver(item)
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        return


class _Stdio:
    """Converts the output of one child process to messages."""

    def __init__(self, child: DuplexChild, incoming: ServerMessages, patience: float) -> None:
        self._child, self._incoming, self._patience = child, incoming, patience
        self._pace = Pace()
        self._split = 0
        self._endless = ""

    async def messages(self) -> AsyncIterator[Item]:
        # A complete message without a line end is accepted soon; a partial one fails the requests once, after
        # ``patience``.
        waits, waited = (QUIET_SECONDS, self._patience, None), 0
        while True:
            try:
                line = await self._child.read_line(waits[waited])
            except LineTooLong as error:
                for item in self._incoming.unreadable(error.size, error.ends, f"is {TOO_LARGE}", sure=True):
                    yield item
                if isinstance(error, LineEndless):
                    self._endless = f"It sent a line without an end ({byte_size(error.size)} so far)."
                    return
                continue
            except LineUnfinished as error:
                if not _is_message(error.line):
                    waited += 1
                    for item in self._unfinished(error.line) if waits[waited] is None else ():
                        yield item
                    continue
                line = self._child.take_line()
            waited = 0
            if not line.strip():
                if self._child.over:
                    return
                continue
            await self._pace()
            self._split = 0
            for item in self._parsed(line):
                yield item

    def end(self) -> str:
        """Return why it ended, as far as known."""
        if self._endless:
            return self._endless
        code, last = self._child.exit_code, self._incoming.log.last
        how = "It closed its output" if code is None else f"It ended with exit code {code}"
        return f"{how}: {one_line(last, SHOWN)}" if last else f"{how}."

    def _unfinished(self, line: bytes) -> Sequence[Item]:
        return self._incoming.unreadable(len(line), _ends(line), "stopped before the end of its line")

    def _parsed(self, line: bytes) -> Sequence[Item]:
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError as error:
            # A program that prints without a line end puts its text, or a partial message, before the next message.
            start = line.rfind(b'{"jsonrpc"')
            if start > 0 and self._split < MOST_SPLIT and _is_message(line[start:]):
                self._split += 1
                return [*self._parsed(line[start:]), *self._parsed(line[:start])]
            return self._incoming.unreadable(len(line), _ends(line), why_unreadable(error))
        return self._incoming.came(message, hash(line))


def _ends(line: bytes) -> tuple[bytes, bytes]:
    return line[:ENDS_BYTES], line[-ENDS_BYTES:]


def _is_message(text: bytes) -> bool:
    if not text.rstrip().endswith(b"}"):
        return False
    try:
        types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return False
    return True


@asynccontextmanager
async def over_http(
    config: ServerConfig, client: httpx2.AsyncClient, incoming: ServerMessages, ended: Callable[[str], None]
) -> AsyncGenerator[tuple[Arriving, Leaving]]:
    """Communicate with the address of ``config`` through ``client``, which is closed at the end. ``ended`` is called
    with the reason when the server closes its stream."""

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
        yield await stack.enter_async_context(
            _watched(read, write, incoming, ended, one_stream=config.transport == "sse")
        )


@asynccontextmanager
async def _watched(
    read: Arriving, write: Leaving, incoming: ServerMessages, ended: Callable[[str], None], *, one_stream: bool
) -> AsyncGenerator[tuple[Arriving, Leaving]]:
    """Return the streams with flood control. ``one_stream``: all answers arrive in one stream of events."""
    arriving, paced = anyio.create_memory_object_stream[Item](0)
    pace = Pace()

    async def relay() -> None:
        async with arriving:
            try:
                async for item in read:
                    await pace()
                    for each in judged(item):
                        await arriving.send(each)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return
            # Report the reason before the stream is closed, as above.
            ended(stream_end())

    def judged(item: Item) -> Sequence[Item]:
        if isinstance(item, SessionMessage):
            metadata = item.metadata
            found = incoming.came(item.message, hash(str(item.message)) if one_stream else 0)
            for each in found[:1]:
                each.metadata = metadata
            return found
        if not one_stream:
            # The SDK fails this request itself; the failure was sent next to the answers.
            return [item]
        peek = incoming.stream
        return incoming.unreadable(peek.size, peek.ends, why_unreadable(item), sure=True)

    def stream_end() -> str:
        peek = incoming.stream
        if not one_stream or peek.size <= SSE_EVENT_BYTES:
            return f"{STREAM_ENDED}."
        most = f"is larger than {byte_size(SSE_EVENT_BYTES)}, which is the most that ba reads of an SSE server"
        return described(peek.size, peek.ends, most)

    def asked(message: SessionMessage) -> None:
        if incoming.asked(message.message):
            group.start_soon(_give_up_probe, incoming, message.message, arriving.send)

    async with paced, anyio.create_task_group() as group:
        group.start_soon(relay)
        try:
            yield paced, _RequestStream(write, asked)
        finally:
            group.cancel_scope.cancel()


class _RequestStream:
    """A stream of messages to a server; each message is passed to ``asked`` first."""

    def __init__(self, inner: Leaving, asked: Callable[[SessionMessage], None]) -> None:
        self._inner, self._asked = inner, asked

    async def send(self, item: SessionMessage, /) -> None:
        self._asked(item)
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(exc_type, exc_val, exc_tb)


class _EventBody(httpx2.AsyncByteStream):
    """The body of an event stream, recorded by ``peek``."""

    def __init__(self, body: httpx2.AsyncByteStream, peek: Peek) -> None:
        self._body, self._peek = body, peek

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._body:
            self._peek.feed(piece, events=True)
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


class _WholeBody(httpx2.AsyncByteStream):
    """The body of any other response: cut off with an error if it is too large, replaced by an error if it answers a
    different request."""

    def __init__(self, body: httpx2.AsyncByteStream, peek: Peek, id: int | str | None) -> None:
        self._body, self._peek, self._id = body, peek, id

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces: list[bytes] = []
        async for piece in self._body:
            self._peek.feed(piece, events=False)
            if self._peek.size > MESSAGE_BYTES:
                raise ResponseTooLarge(f"The answer is {TOO_LARGE}.")
            pieces.append(piece)
        yield self._checked(b"".join(pieces))

    async def aclose(self) -> None:
        await self._body.aclose()

    def _checked(self, whole: bytes) -> bytes:
        if self._id is None or answered_id(self._peek.ends) in {None, self._id}:
            return whole
        try:
            message: Any = from_json(whole)
        except ValueError:
            return whole
        given: Any = cast("dict[str, Any]", message).get("id") if isinstance(message, dict) else None
        if given is None or str(given) == str(self._id):
            return whole
        text = described(self._peek.size, self._peek.ends, f"has the id {given!r}, and belongs to request {self._id!r}")
        error = types.ErrorData(code=types.INTERNAL_ERROR, message=text)
        return types.JSONRPCError(jsonrpc="2.0", id=self._id, error=error).model_dump_json().encode()


class WatchedTransport(httpx2.AsyncBaseTransport):
    """An HTTP transport with size limits. ``status``: of the newest response. ``incoming`` gets the sizes of bodies.
    ``one_stream``: all answers arrive in the one response to a GET."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, incoming: ServerMessages, *, one_stream: bool) -> None:
        self._inner, self._incoming, self._one_stream = inner, incoming, one_stream
        self.status = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        self.status = response.status_code
        if not isinstance(response.stream, httpx2.AsyncByteStream):
            return response
        answers = request.method == "POST" and not self._one_stream
        id = answered_id(((await request.aread())[:ENDS_BYTES], b"")) if answers else None
        peek = Peek() if id is None else self._incoming.peeks.setdefault(id, Peek())
        if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            response.stream = _EventBody(response.stream, self._incoming.stream if self._one_stream else peek)
        else:
            response.stream = _WholeBody(response.stream, peek, id)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class SseClient(httpx2.AsyncClient):
    """A client for the older transport, whose answers arrive in a separate stream: ``broken`` is called when a message
    could not be sent, because nothing else would fail its request."""

    def __init__(self, broken: Callable[[str], None], **options: Any) -> None:
        super().__init__(**options)
        self._broken = broken

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:  # pyright: ignore[reportIncompatibleMethodOverride]
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as error:
            if request.method == "POST":
                self._broken(f"A message could not be sent: {error or type(error).__name__}.")
            raise
        if request.method == "POST" and response.is_error:
            self._broken(f"It answered a message with HTTP status {response.status_code}.")
        return response
