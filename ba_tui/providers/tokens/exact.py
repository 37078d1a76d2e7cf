"""The provider's own count of a request: asked once for each content, for a short time only, and never insisted on.

How it is asked is the vendor file's business; what is counted instead, the caller's.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable

from ba_tui.core.errors import BaError
from ba_tui.core.provider import ModelRequest

log = logging.getLogger(__name__)
PATIENCE = 5.0
CACHED = 1_000
Ask = Callable[[ModelRequest], Awaitable[int]]


class ExactCounts:
    """``ask`` counts a request at the provider. After a failure nobody is asked again: the estimate does."""

    def __init__(self, ask: Ask, patience: float = PATIENCE) -> None:
        self._ask = ask
        self._patience = patience
        self._known: dict[bytes, int] = {}
        self.trouble = ""

    async def count(self, request: ModelRequest) -> int | None:
        """Tokens of the whole request; None when the provider can't be asked, and ``trouble`` says why."""
        key = _digest(request)
        if key in self._known:
            return self._known[key]
        if self.trouble:
            return None
        try:
            async with asyncio.timeout(self._patience):
                found = await self._ask(request)
        except TimeoutError:
            self.trouble = f"The provider did not count within {self._patience:g} s"
        except BaError as error:
            self.trouble = str(error).rstrip(".")
        else:
            if len(self._known) >= CACHED:
                del self._known[next(iter(self._known))]
            self._known[key] = found
            return found
        log.info("Estimated instead: %s.", self.trouble)
        return None


def _digest(request: ModelRequest) -> bytes:
    digest = hashlib.sha256(request.system.encode("utf-8", "replace"))
    for message in request.messages:
        digest.update(f"\0{message.role}{message.blocks!r}".encode("utf-8", "replace"))
    for tool in request.tools:
        digest.update(f"\0{tool.name}\0{tool.description}\0{tool.input_schema}".encode("utf-8", "replace"))
    return digest.digest()
