"""Server-sent events: from the bytes of a response, in pieces of any size, to chunks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable
from dataclasses import replace
from typing import Any, Protocol, cast

import httpx2

from ba_tui.core.errors import ConnectionLost, ProviderError
from ba_tui.core.events import TextDelta, ThinkingDelta, ToolInputDelta
from ba_tui.core.messages import Message
from ba_tui.core.provider import ReplyChunk
from ba_tui.providers.faults import ModelService, from_body, from_network
from ba_tui.providers.shapes import ERROR, EVENT, MB, RESPONSE, SILENCES, decode, fields, too_large

log = logging.getLogger(__name__)
DONE = "[DONE]"
GRACE = 0.5
"""Seconds that a server may take to end a body after its last event, so that the connection can be used again."""
REST, WAITED, SMALL = 0.05, 0.002, 4_096
"""Seconds of rest after a read that waited and returned little: reading costs more, and users read more slowly."""
SLICE, PAUSE = 0.008, 0.002
"""Seconds of work on events, and of the pause after them for keys and signals."""
LINE = 64
"""Bytes of memory of a line in addition to its text."""
MARK = b"\xef\xbb\xbf"
_FIELDS = (b":", b"data:", b"event:", b"id:", b"retry:", b"error:")
_LONGEST = max(map(len, _FIELDS))


class EventDecoder:
    """Decodes bytes into (event name, data) pairs."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        """The bytes after the last line end."""
        self._unended = 0
        """Their number."""
        self._held = b""
        self._name = ""
        self._data: list[str] = []
        self._gathered = 0

    @property
    def waiting(self) -> int:
        """Return about how many bytes of memory the incomplete event takes."""
        return self._unended + self._gathered

    def feed(self, data: bytes) -> list[tuple[str, str]]:
        data, self._held = self._held + data, b""
        if b"\r" in data:
            self._held = b"\r" if data.endswith(b"\r") else b""
            data = data.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        complete, newline, rest = data.rpartition(b"\n")
        if newline:
            complete, self._rest, self._unended = b"".join((*self._rest, complete)), [], 0
        if rest:
            self._rest.append(rest)
            self._unended += len(rest)
        if not newline:
            return []
        events: list[tuple[str, str]] = []
        for line in complete.decode("utf-8", "replace").split("\n"):
            if not line:
                if self._data:
                    events.append((self._name, "\n".join(self._data)))
                self._name, self._data, self._gathered = "", [], 0
            elif line.startswith("data:"):
                self._data.append(line[6:] if line.startswith("data: ") else line[5:])
                self._gathered += len(line) + LINE
            elif line.startswith("event:"):
                self._name = line[6:].strip()
            elif line.startswith("error:"):
                # No field of the format, but some local servers report errors in it.
                events.append(("error", line[6:]))
        return events

    def close(self) -> list[tuple[str, str]]:
        """Return the event at the end that has no blank line after it."""
        return self.feed(b"\n\n")


class ReplyBuilder(Protocol):
    """Assembles one answer from its events."""

    @property
    def done(self) -> bool:
        """Whether the closing event arrived."""
        ...

    def feed(self, name: str, data: dict[str, Any]) -> Iterable[ReplyChunk]:
        """Return the chunks of an event. Raises ProviderError when it says that the answer failed."""
        ...

    def take(self, body: dict[str, Any]) -> None:
        """Parse a whole answer. Raises ProviderError when it is an error, or no answer."""
        ...

    def close(self) -> None:
        """Note the end mark ``[DONE]``."""
        ...

    def finish(self) -> Message:
        """Return the message. Raises ConnectionLost when the answer is not complete."""
        ...


async def chunks(
    body: AsyncIterator[bytes], assembly: ReplyBuilder, service: ModelService, idle: float
) -> AsyncGenerator[ReplyChunk, None]:
    """Return the deltas of a response; then ``assembly`` has its message. Adjacent deltas that arrive together are
    merged.

    The body shows whether it is a stream, since servers' content types are unreliable. ``idle``: seconds in which a
    line must end.

    Raises:
        ConnectionLost: the network failed, no line arrived in time, or a line is no JSON.
        AnswerTooLarge: the answer exceeds a limit (shapes.py).
        ProviderError: the server says that it failed, or sends no answer.
    """
    arrivals = _Arrivals(body, service.host, idle)
    try:
        head = b""
        while len(head) < _LONGEST and (data := await arrivals.more()) is not None:
            head = (head + data).removeprefix(MARK).lstrip()
        if head and not any(head.startswith(field) or field.startswith(head) for field in _FIELDS):
            _take(await arrivals.whole(head), assembly, service)
            return
        decoder = EventDecoder()
        data: bytes | None = head
        while data is not None:
            chunk = None
            for chunk in _merged(_apply(decoder.feed(data), assembly)):
                if chunk is None:
                    await asyncio.sleep(PAUSE)
                    continue
                arrivals.heard()
                yield chunk
            if assembly.done:
                await _drain(body)
                break
            if decoder.waiting > EVENT:
                raise too_large(service.host, f"an event of more than {EVENT // MB} MB")
            if isinstance(chunk, TextDelta | ThinkingDelta):
                await arrivals.rest()
            data = await arrivals.more()
        else:
            for chunk in _merged(_apply(decoder.close(), assembly, torn=True)):
                if chunk is not None:
                    yield chunk
    except (TimeoutError, httpx2.HTTPError, httpx2.StreamError) as error:
        raise from_network(service, error) from error
    finally:
        arrivals.close()


def _take(body: bytes, assembly: ReplyBuilder, service: ModelService) -> None:
    try:
        assembly.take(fields(decode(body)))
    except ValueError as error:
        raise from_body(service, body) from error


class _Arrivals:
    """The pieces of a body, with limits: RESPONSE bytes, a line end every ``idle`` seconds, and words from time to
    time. A body that arrives word by word is read less often."""

    def __init__(self, body: AsyncIterator[bytes], host: str, idle: float) -> None:
        self._body = body
        self._host = host
        self._idle = idle
        self._waited = False
        self._came = 0
        self._total = 0
        self._turn = self._line = self._heard = time.monotonic()
        """When other tasks last had their turn, when a line last ended, and when a part of an answer last arrived."""
        self._reader: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._late = False

    def heard(self) -> None:
        """Note that a part of an answer arrived, and not only a ping."""
        self._heard = time.monotonic()

    async def more(self) -> bytes | None:
        """Return the next piece, None at the end. Raises TimeoutError, AnswerTooLarge."""
        begin = time.monotonic()
        if begin - self._turn > SLICE:
            # Data that is already here is read without waiting, which would keep keys and signals out.
            await asyncio.sleep(PAUSE)
            self._turn = begin = time.monotonic()
        data = await self._read()
        now = time.monotonic()
        self._waited = now - begin > WAITED
        if self._waited:
            self._turn = now
        if data is None:
            return None
        self._came += len(data)
        self._total += len(data)
        if self._total > RESPONSE:
            raise too_large(self._host, f"more than {RESPONSE // MB} MB")
        if b"\n" in data or b"\r" in data:
            self._line = now
        return data

    async def _read(self) -> bytes | None:
        # asyncio.timeout does the same, but takes longer than all other work for one event.
        reader = asyncio.current_task()
        assert reader is not None
        before, self._reader = reader.cancelling(), reader
        if self._timer is None:
            self._look_again()
        try:
            return await anext(self._body, None)
        except asyncio.CancelledError:
            if self._late and reader.uncancel() <= before:
                raise TimeoutError from None
            raise
        finally:
            self._reader = None

    def _left(self) -> float:
        """Return the seconds until a read has waited too long."""
        return min(self._line + self._idle, self._heard + SILENCES * self._idle) - time.monotonic()

    def _look_again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(max(0.0, self._left()), self._look)

    def _look(self) -> None:
        self._timer = None
        if self._left() > 0:
            self._look_again()
        elif self._reader:
            self._late = True
            self._reader.cancel()

    def close(self) -> None:
        """Stop reading."""
        if self._timer:
            self._timer.cancel()

    async def whole(self, head: bytes) -> bytes:
        """Read the rest of a body that is no stream. If it can't be an answer, only the beginning is read."""
        body, limit = bytearray(head), EVENT if head[:1] in b"{[" else ERROR
        while (data := await self.more()) is not None:
            body += data
            if len(body) > limit == EVENT:
                raise too_large(self._host, f"a JSON object of more than {EVENT // MB} MB")
            if len(body) > limit:
                break
        return bytes(body)

    async def rest(self) -> None:
        """Rest, if all data was read and it was little; the end of an answer is not delayed."""
        if self._waited and self._came < SMALL:
            await asyncio.sleep(REST)
        if self._waited:
            self._came = 0


def _apply(
    events: Iterable[tuple[str, str]], assembly: ReplyBuilder, *, torn: bool = False
) -> Generator[ReplyChunk | None, None, None]:
    """Return the chunks of ``events``; None where other tasks should have their turn. ``torn``: nothing follows, so
    invalid JSON is the beginning of an event."""
    begin = time.monotonic()
    for name, text in events:
        if time.monotonic() - begin > SLICE:
            yield None
            begin = time.monotonic()
        text = text.strip()
        if not text or assembly.done:
            continue
        if text == DONE:
            assembly.close()
            continue
        try:
            data = decode(text)
        except ValueError as error:
            if name == "error":
                yield from assembly.feed(name, {"error": text})
            log.warning("malformed event %r of %d characters", name, len(text))
            broken = "The answer is broken: the model server sent a line that is not JSON."
            what = "The answer was cut off before its end." if torn else broken
            raise ConnectionLost(what, "Send the request again.") from error
        if isinstance(data, dict):
            yield from assembly.feed(name, cast("dict[str, Any]", data))
        elif name == "error":
            yield from assembly.feed(name, {"error": data})


def _merged(stream: Iterable[ReplyChunk | None]) -> Iterable[ReplyChunk | None]:
    """Merge adjacent chunks of one kind, unless None is between them."""
    last: ReplyChunk | None = None
    pieces: list[str] = []
    try:
        for chunk in stream:
            if isinstance(chunk, TextDelta | ThinkingDelta) and type(chunk) is type(last):
                pieces.append(chunk.text)
                continue
            if isinstance(chunk, ToolInputDelta) and isinstance(last, ToolInputDelta) and chunk.call_id == last.call_id:
                last = chunk
                continue
            if last is not None:
                yield _whole(last, pieces)
            last, pieces = chunk, [chunk.text] if isinstance(chunk, TextDelta | ThinkingDelta) else []
            if chunk is None:
                yield None
    except ProviderError:
        if last is not None:
            yield _whole(last, pieces)
        raise
    if last is not None:
        yield _whole(last, pieces)


def _whole(chunk: ReplyChunk, pieces: list[str]) -> ReplyChunk:
    if isinstance(chunk, TextDelta | ThinkingDelta) and len(pieces) > 1:
        return replace(chunk, text="".join(pieces))
    return chunk


async def _drain(body: AsyncIterator[bytes]) -> None:
    with contextlib.suppress(TimeoutError, httpx2.HTTPError, httpx2.StreamError):
        async with asyncio.timeout(GRACE):
            async for _ in body:
                pass
