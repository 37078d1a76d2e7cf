"""Server-sent events: from the bytes of a response to chunks, in whatever pieces the bytes arrive.

What an event means is an Assembly's business; see anthropic_wire and openai_wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from dataclasses import replace
from typing import Any, Protocol, cast

import httpx2

from ba_tui.core.errors import ConnectionLost, ProviderError
from ba_tui.core.events import TextDelta, ThinkingDelta, ToolInputDelta
from ba_tui.core.messages import Message
from ba_tui.core.provider import Chunk
from ba_tui.providers.shapes import decode

log = logging.getLogger(__name__)
DONE = "[DONE]"
GRACE = 0.5
"""Seconds a server may take to end a body whose last event has come, so that the connection can be used again."""


class Decoder:
    """Bytes in, (event name, data) pairs out."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[tuple[str, str]]:
        data = self._rest + data
        if b"\r" in data:
            held = b"\r" if data.endswith(b"\r") else b""
            data = data[: len(data) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n") + held
        complete, newline, self._rest = data.rpartition(b"\n")
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

    def close(self) -> None:
        """The end mark ``[DONE]`` was seen."""
        ...

    def finish(self) -> Message:
        """Raises ConnectionLost when the answer is not complete."""
        ...


async def chunks(body: AsyncIterator[bytes], assembly: Assembly) -> AsyncGenerator[Chunk, None]:
    """The deltas of a response; neighbours that arrive together come as one.

    Raises:
        ConnectionLost: a line is no JSON. Whether the answer is complete, ``assembly.finish`` tells.
    """
    decoder = Decoder()
    async for data in body:
        for chunk in _merged(_apply(decoder.feed(data), assembly)):
            yield chunk
        if assembly.done:
            await _drain(body)
            return
    for chunk in _merged(_apply(decoder.close(), assembly)):
        yield chunk


def _apply(events: Iterable[tuple[str, str]], assembly: Assembly) -> Iterable[Chunk]:
    for name, text in events:
        if text.strip() == DONE:
            assembly.close()
            continue
        try:
            data = decode(text)
        except ValueError as error:
            log.warning("malformed event %r of %d characters", name, len(text))
            raise ConnectionLost("The model server sent a line that is no JSON; the answer is broken.") from error
        if isinstance(data, dict):
            yield from assembly.feed(name, cast("dict[str, Any]", data))
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
