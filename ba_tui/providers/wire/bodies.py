"""Request bodies that grow: what was encoded once is kept, so that a step costs the same after a thousand messages.

The format of a message is the wire module's; this only remembers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from itertools import islice
from operator import is_
from typing import Any

from ba_tui.core.contents import media_key, weighty
from ba_tui.core.messages import Message, key_in, signed
from ba_tui.core.provider import ModelRequest
from ba_tui.core.tool import Tool
from ba_tui.providers.wire.shapes import fields, items

AT_ONCE = 100_000
"""Characters that are encoded on the loop; more go to a thread."""
LARGE = 4_000_000
"""Bytes of a body that is joined in a thread."""
Encode = Callable[[Message], bytes]


class Body:
    """``head`` encodes what stands before the messages; ``encode`` one message, b"" when nothing of it is sent."""

    def __init__(self, head: Callable[[ModelRequest], bytes], encode: Encode) -> None:
        self._head = head
        self._encode = encode
        self._of: tuple[str, Sequence[Tool]] | None = None
        self._messages: list[Message] = []
        self._ends: list[int] = [0]
        """Where the head ends in ``_whole``, then where each message does."""
        self._whole = bytearray()
        self._key = ""
        self._making: asyncio.Future[bytes] | None = None
        self.kept = 0
        """How many bytes the newest body has in common with the one before it, at least."""
        self.ids: set[str] = set()
        """Those of the calls that ever were in it; servers that count anew in each answer would give them again."""

    def forget(self) -> None:
        """Encode all anew the next time: the format has changed."""
        self._of = None

    async def joined(self, request: ModelRequest, tail: bytes) -> bytes:
        """``join``, in a thread where much is new: the first request of a session that is continued."""
        if self._making and not self._making.done():
            # That one was cancelled, and its thread is still at work on what this one goes on with.
            await asyncio.wait({self._making})
        known = 0 if self._anew(request) else len(self._messages)
        if len(self._whole) < LARGE and not weighty(islice(request.messages, known, None), AT_ONCE):
            return self.join(request, tail)
        self._making = asyncio.get_running_loop().run_in_executor(None, self.join, request, tail)
        return await asyncio.shield(self._making)

    def _anew(self, request: ModelRequest) -> bool:
        return self._of is None or self._of[0] != request.system or self._of[1] is not request.tools

    def join(self, request: ModelRequest, tail: bytes) -> bytes:
        """The whole body. ``tail`` stands after the messages, where it moves no byte before it."""
        anew = self._anew(request)
        if anew:
            self._whole, self._of = bytearray(self._head(request)), (request.system, request.tools)
            self._key = key_in(request.system)
            self._messages, self._ends = [], [len(self._whole)]
        known = self._known(request.messages)
        del self._messages[known:], self._ends[known + 1 :], self._whole[self._ends[known] :]
        self.kept = 0 if anew else len(self._whole)
        for message in request.messages[known:]:
            part = self._encode(signed(message, self._key))
            if part and self._ends[-1] > self._ends[0]:
                self._whole += b","
            self._whole += part
            self._messages.append(message)
            self.ids.update([call.id for call in message.calls])
            self._ends.append(len(self._whole))
        return b"".join((self._whole, tail))

    def _known(self, messages: Sequence[Message]) -> int:
        """How many of ``messages`` stand in the body already: all but the newest, nearly always."""
        if list(islice(messages, len(self._messages))) == self._messages:
            return len(self._messages)
        for index, identical in enumerate(map(is_, self._messages, messages)):
            if not identical:
                if not _same(self._messages[index], messages[index]):
                    return index
                self._messages[index] = messages[index]
        return min(len(self._messages), len(messages))


def _same(old: Message, new: Message) -> bool:
    """A message that was put together again from the same blocks; a longer one with the same id is another."""
    return (
        old.id == new.id
        and len(old.blocks) == len(new.blocks)
        and all(mine is other for mine, other in zip(old.blocks, new.blocks, strict=True))
    )


def media_at(body: bytes, place: Sequence[int]) -> tuple[str, ...]:
    """Return the ``media_key`` of each picture and document in one part of an encoded request, or in a whole message.

    ``place``: the numbers of the message, of its part, and of the part of a tool result, as servers name them. Empty
    when the body has no such part. Decodes the whole body: call it off the event loop.
    """
    try:
        found: Any = {"content": fields(json.loads(body)).get("messages")}
    except ValueError:
        return ()
    for number in place:
        parts = items(fields(found).get("content"))
        if number >= len(parts):
            return ()
        found = parts[number]
    return tuple(media_key(content) for content in _contents(found))


def _contents(part: Any) -> list[str]:
    """The data and addresses of all media within a part, whatever the format."""
    found: list[str] = []
    for key, value in fields(part).items():
        if key in {"data", "url", "file_data"} and isinstance(value, str):
            found.append(value.partition(";base64,")[2] if value.startswith("data:") else value)
        for inner in (value, *items(value)):
            found += _contents(inner)
    return found
