"""Server-sent events: from the bytes of a response to chunks, in whatever pieces the bytes arrive.

What an event means is an Assembly's business; see anthropic_wire and openai_wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from dataclasses import replace
from typing import Any, Protocol, cast

import httpx2

from ba_tui.core.errors import ConnectionLost, ProviderError
from ba_tui.core.events import TextDelta, ThinkingDelta, ToolInputDelta
from ba_tui.core.messages import Message
from ba_tui.core.provider import Chunk
from ba_tui.providers.faults import Service, from_body, from_network
from ba_tui.providers.shapes import decode, fields

log = logging.getLogger(__name__)
DONE = "[DONE]"
GRACE = 0.5
"""Seconds a server may take to end a body whose last event has come, so that the connection can be used again."""
REST, WAITED, SMALL = 0.05, 0.002, 4_096
"""Seconds of rest after words that had to be waited for, when little came before them. Looking at a body costs more
than a few words do, and people read slower than that."""
MARK = b"\xef\xbb\xbf"
_FIELDS = (b":", b"data:", b"event:", b"id:", b"retry:", b"error:")
_LONGEST = max(map(len, _FIELDS))


class Decoder:
    """Bytes in, (event name, data) pairs out."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        """What came after the last line end."""
        self._held = b""
        self._name = ""
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[tuple[str, str]]:
        data, self._held = self._held + data, b""
        if b"\r" in data:
            self._held = b"\r" if data.endswith(b"\r") else b""
            data = data.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        complete, newline, rest = data.rpartition(b"\n")
        if newline:
            complete, self._rest = b"".join((*self._rest, complete)), []
        if rest:
            self._rest.append(rest)
        if not newline:
            return []
        events: list[tuple[str, str]] = []
        for line in complete.decode("utf-8", "replace").split("\n"):
            if not line:
                if self._data:
                    events.append((self._name, "\n".join(self._data)))
                self._name, self._data = "", []
            elif line.startswith("data:"):
                self._data.append(line[6:] if line.startswith("data: ") else line[5:])
            elif line.startswith("event:"):
                self._name = line[6:].strip()
            elif line.startswith("error:"):
                # No field of the format, but where some servers of one's own put what went wrong.
                events.append(("error", line[6:]))
        return events

    def close(self) -> list[tuple[str, str]]:
        """What stood at the end without its blank line."""
        return self.feed(b"\n\n")


class Assembly(Protocol):
    """Puts one answer together from its events."""

    @property
    def done(self) -> bool:
        """The closing event was seen."""
        ...

    def feed(self, name: str, data: dict[str, Any]) -> Iterable[Chunk]:
        """Raises ProviderError when the event says that the answer failed."""
        ...

    def take(self, body: dict[str, Any]) -> None:
        """The whole answer in one piece. Raises ProviderError when it is an error, or no answer."""
        ...

    def close(self) -> None:
        """The end mark ``[DONE]`` was seen."""
        ...

    def finish(self) -> Message:
        """Raises ConnectionLost when the answer is not complete."""
        ...


async def chunks(body: AsyncIterator[bytes], assembly: Assembly, service: Service) -> AsyncGenerator[Chunk, None]:
    """The deltas of a response; ``assembly`` has its message then. Neighbours that arrive together come as one.

    The body tells whether it is a stream: what a server calls it can't be relied on.

    Raises:
        ConnectionLost: the network failed, or a line is no JSON.
        ProviderError: the server says that it failed, or sends no answer.
    """
    try:
        head = b""
        async for data in body:
            head = (head + data).removeprefix(MARK).lstrip()
            if len(head) >= _LONGEST:
                break
        if head and not any(head.startswith(field) or field.startswith(head) for field in _FIELDS):
            _take(b"".join([head, *[data async for data in body]]), assembly, service)
            return
        decoder = Decoder()
        trickle = _Trickle(body)
        data: bytes | None = head
        while data is not None:
            chunk = None
            for chunk in _merged(_apply(decoder.feed(data), assembly)):
                yield chunk
            if assembly.done:
                await _drain(body)
                break
            if isinstance(chunk, TextDelta | ThinkingDelta):
                await trickle.rest()
            data = await trickle.more()
        else:
            for chunk in _merged(_apply(decoder.close(), assembly, torn=True)):
                yield chunk
    except (httpx2.HTTPError, httpx2.StreamError) as error:
        raise from_network(service, error) from error


def _take(body: bytes, assembly: Assembly, service: Service) -> None:
    try:
        assembly.take(fields(decode(body)))
    except ValueError as error:
        raise from_body(service, body) from error


class _Trickle:
    """A body that may come word by word: then it is looked at less often than words come."""

    def __init__(self, body: AsyncIterator[bytes]) -> None:
        self._body = body
        self._waited = False
        self._came = 0

    async def more(self) -> bytes | None:
        begin = time.monotonic()
        data = await anext(self._body, None)
        self._waited = time.monotonic() - begin > WAITED
        self._came += len(data or b"")
        return data

    async def rest(self) -> None:
        """Nothing, unless all that had come is taken and it was little: the end of an answer is not held up."""
        if self._waited and self._came < SMALL:
            await asyncio.sleep(REST)
        if self._waited:
            self._came = 0


def _apply(events: Iterable[tuple[str, str]], assembly: Assembly, *, torn: bool = False) -> Iterable[Chunk]:
    """``torn``: nothing follows, so what is no JSON is the beginning of an event."""
    for name, text in events:
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
            broken = "The answer is broken: the model server sent a line that is no JSON."
            what = "The answer was cut off before its end." if torn else broken
            raise ConnectionLost(what, "Send the request again.") from error
        if isinstance(data, dict):
            yield from assembly.feed(name, cast("dict[str, Any]", data))
        elif name == "error":
            yield from assembly.feed(name, {"error": data})
        else:
            log.info("ignored event %r: %s", name, type(data).__name__)


def _merged(stream: Iterable[Chunk]) -> Iterable[Chunk]:
    last: Chunk | None = None
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
    except ProviderError:
        if last is not None:
            yield _whole(last, pieces)
        raise
    if last is not None:
        yield _whole(last, pieces)


def _whole(chunk: Chunk, pieces: list[str]) -> Chunk:
    if isinstance(chunk, TextDelta | ThinkingDelta) and len(pieces) > 1:
        return replace(chunk, text="".join(pieces))
    return chunk


async def _drain(body: AsyncIterator[bytes]) -> None:
    with contextlib.suppress(TimeoutError, httpx2.HTTPError, httpx2.StreamError):
        async with asyncio.timeout(GRACE):
            async for _ in body:
                pass
