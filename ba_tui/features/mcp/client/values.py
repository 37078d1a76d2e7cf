"""Values that connections return, and limits on a server's messages: their bytes, messages per second, stored lines."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias

from ba_tui.core.ports.mcp import RemotePrompt, RemoteResource
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.tool import Call
from ba_tui.core.values import frozen

PartKind: TypeAlias = Literal["text", "image", "audio", "resource", "link"]
Sample: TypeAlias = Callable[[str, str, Call], Awaitable[tuple[str, str]]]
"""Sends a system prompt and a text to a model; returns the answer and the model's name. Raises BaError."""


@frozen
class RemotePart:
    """A part of a result. ``data`` is base64; only one of ``text`` and ``data`` is set."""

    kind: PartKind
    text: str = ""
    data: str = ""
    media_type: str = ""
    uri: str = ""
    speaker: str = ""
    """In a prompt: the speaker."""


@frozen
class RemoteResult:
    """``structured``: the result as JSON if the server sent it, else None."""

    parts: tuple[RemotePart, ...]
    structured: Any = None
    is_error: bool = False


@frozen
class ServerOffer:
    """A server's listing. ``tools`` as plain JSON. ``notes``: a line for each listing that failed. ``left_out``: one
    for each unreadable item."""

    tools: tuple[Mapping[str, Any], ...] = ()
    resources: tuple[RemoteResource, ...] = ()
    prompts: tuple[RemotePrompt, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


MESSAGE_BYTES = 10_000_000
"""Maximum bytes of one message. Parsing a larger one would freeze the screen."""
RATE, WINDOW = 300, 0.1
"""Number of messages that are accepted within so many seconds; further ones wait."""
LOG_LINES, LINE_CHARS = 500, 1_000
_ID = regex(rb'"id"\s*:\s*(\d{1,15}|"[^"\\]{1,100}")')


class ServerLog:
    """The newest lines that a server printed or logged, and ba's remarks; safe to display."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=LOG_LINES)
        self._partial = ""

    def add(self, text: str) -> None:
        """Store the lines of ``text``."""
        for line in text.splitlines()[-LOG_LINES:]:
            if said := paintable(line[:LINE_CHARS], newlines=False).rstrip():
                self._lines.append(said)

    def hear(self, data: bytes) -> None:
        """Store output of standard error; an unfinished line waits for its end."""
        *lines, self._partial = (self._partial + data.decode("utf-8", "replace")).split("\n")
        self._partial = self._partial[-LINE_CHARS:]
        if lines:
            self.add("\n".join(lines[-LOG_LINES:]))

    def lines(self) -> list[str]:
        return [*self._lines, *([paintable(self._partial, newlines=False)] if self._partial.strip() else [])]

    @property
    def last(self) -> str:
        """Return the newest line; empty without any."""
        lines = self.lines()
        return lines[-1] if lines else ""


class Pace:
    """Slows down a sender of too many messages, so that a flood never blocks the event loop."""

    def __init__(self) -> None:
        self._since, self._count = 0.0, 0

    async def __call__(self) -> None:
        """Wait if too many messages arrived."""
        now = time.monotonic()
        if now - self._since > WINDOW:
            self._since, self._count = now, 0
        self._count += 1
        if self._count > RATE:
            await asyncio.sleep(max(0.0, self._since + WINDOW - now))


def answered_id(ends: tuple[bytes, bytes]) -> int | str | None:
    """Return the id of the request that a message answers, of which only head and tail are known."""
    head, tail = ends
    found = [match for part in (head, tail) for match in _ID.finditer(part)]
    # The id is next to the version at the start, or the last key.
    chosen = next((match for match in found if match.start() < 60), found[-1] if found else None)
    if chosen is None:
        return None
    text = chosen[1].decode("utf-8", "replace")
    return text.strip('"') if text.startswith('"') else int(text)
