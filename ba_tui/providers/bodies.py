"""Request bodies joined from bytes that were encoded once, so that a step costs the same after a thousand messages.

The format of a message is the wire module's; this only remembers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ba_tui.core.messages import Message
from ba_tui.core.provider import Request
from ba_tui.core.tool import Tool

Encode = Callable[[Message], bytes]


class Body:
    """``head`` encodes what stands before the messages; ``encode`` one message, b"" when nothing of it is sent."""

    def __init__(self, head: Callable[[Request], bytes], encode: Encode) -> None:
        self._head = head
        self._encode = encode
        self._messages: list[Message] = []
        self._parts: list[bytes] = []
        self._static = b""
        self._of: tuple[str, Sequence[Tool]] | None = None

    def forget(self) -> None:
        """Encode all anew the next time: the format has changed."""
        self._messages, self._parts, self._of = [], [], None

    def join(self, request: Request, tail: bytes) -> bytes:
        """The whole body. ``tail`` stands after the messages, where it moves no byte before it."""
        if self._of is None or self._of[0] != request.system or self._of[1] is not request.tools:
            self._static, self._of = self._head(request), (request.system, request.tools)
        return b"".join((self._static, b",".join(part for part in self._encoded(request.messages) if part), tail))

    def _encoded(self, messages: Sequence[Message]) -> list[bytes]:
        known = 0
        for old, new in zip(self._messages, messages, strict=False):
            if old is not new and not _same(old, new):
                break
            known += 1
        del self._messages[known:], self._parts[known:]
        for message in messages[known:]:
            self._messages.append(message)
            self._parts.append(self._encode(message))
        return self._parts


def _same(old: Message, new: Message) -> bool:
    """A message that was put together again from the same blocks; a longer one with the same id is another."""
    return (
        old.id == new.id
        and len(old.blocks) == len(new.blocks)
        and all(mine is other for mine, other in zip(old.blocks, new.blocks, strict=True))
    )
