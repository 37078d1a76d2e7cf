"""How much of one answer is read, and how long it may take: what a model server sends must not fill the memory.

The figures are several times what any model says in one answer. Beyond one of them the answer counts as broken off:
its text is kept, and the server is not asked again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ba_tui.core.errors import AnswerTooLarge
from ba_tui.providers.wire.shapes import encode

log = logging.getLogger(__name__)
MB = 2**20
RESPONSE = 256 * MB
"""Bytes of one response, decompressed: the words of an answer with all that a server writes around each of them."""
EVENT = 16 * MB
"""Bytes of one event, or of an answer that comes as one JSON object."""
WORDS = 4 * MB
"""Bytes of text, reasoning and arguments in one answer."""
ARGUMENTS = 2 * MB
"""Characters of the arguments of one call."""
KEPT = 32 * MB
"""Bytes of blocks that are kept as the server sent them; each bracket and comma in them counts as SEPARATOR more."""
SEPARATOR = 100
PARTS = 10_000
"""Blocks, citations and the like in one answer."""
CALLS = 200
ERROR = 64 * 2**10
"""Bytes that are read of the body of an error."""
SILENCES = 6
"""So many times the request timeout may pass while a server only shows that it is there, by comments and pings."""
LOGGED = 5
"""Events of unknown kinds that the log names for one answer."""
CURE = "Ask for less at a time; if it happens again, check the model server."


def too_large(host: str, what: str) -> AnswerTooLarge:
    return AnswerTooLarge(f"{host} sent {what}, so ba stopped reading the answer.", CURE)


class Load:
    """Counts what one answer of ``host`` brings. Each method raises AnswerTooLarge beyond its bound."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._words = 0
        self._kept = 0
        self._parts = 0
        self._calls = 0
        self._ignored = 0

    def ignored(self, name: object) -> None:
        self._ignored += 1
        if self._ignored <= LOGGED:
            log.info("ignored event %.100r", name)

    def words(self, text: str) -> None:
        self._words += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        if self._words > WORDS:
            raise too_large(self._host, f"more than {WORDS // MB} MB of text")

    def arguments(self, size: int, text: str) -> None:
        """``text`` was added to the arguments of a call, which are ``size`` characters long with it."""
        if size > ARGUMENTS:
            raise too_large(self._host, f"arguments of more than {ARGUMENTS // MB} MB for a call")
        self.words(text)

    def call(self, given: object = None) -> None:
        """A call begins; ``given``: its arguments, where they come with it."""
        self._calls += 1
        if self._calls > CALLS:
            raise too_large(self._host, f"more than {CALLS} tool calls")
        if given:
            text = encode(given).decode()
            self.arguments(len(text), text)

    def kept(self, value: Any) -> None:
        """``value`` is kept as it came: a block, or something added to one."""
        data = encode(value)
        self._parts += 1
        self._kept += len(data) + SEPARATOR * sum(map(data.count, (b",", b"[", b"{")))
        if self._parts > PARTS:
            raise too_large(self._host, f"more than {PARTS:,} parts")
        if self._kept > KEPT:
            raise too_large(self._host, f"more than {KEPT // MB} MB of data")

    def update(self, held: dict[str, Any], added: Mapping[str, Any]) -> None:
        """Put what is new or other in ``added`` into ``held``."""
        if fresh := {key: value for key, value in added.items() if key not in held or held[key] != value}:
            self.kept(fresh)
            held.update(fresh)
