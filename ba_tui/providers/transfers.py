"""How requests and responses travel: how long a server may be silent, and who records the bytes.

What the bytes mean is the vendor files' business.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from ba_tui.core.ports.exchanges import Exchange, Recorder
from ba_tui.core.values import frozen
from ba_tui.providers.wire.bodies import Body


class Unrecorded:
    """core.ports.exchanges.Exchange that keeps nothing."""

    def received(self, data: bytes) -> None:
        """See core.ports.exchanges.Exchange."""

    def end(self) -> None:
        """See core.ports.exchanges.Exchange."""


@frozen
class Transfer:
    """``idle`` seconds may pass in silence; without a ``recorder`` nothing is recorded."""

    idle: float = 300.0
    recorder: Recorder | None = None

    def sent(self, content: bytes, body: Body, tail: bytes) -> Exchange:
        """Record ``content``, which ``body`` joined with ``tail`` just now."""
        return self.recorder.sent(content, body.kept, len(tail)) if self.recorder else Unrecorded()


DIRECT = Transfer()


class RecordedBytes:
    """The bytes of a response, each recorded as it comes. No generator: there is nothing to close."""

    def __init__(self, body: AsyncIterator[bytes], exchange: Exchange) -> None:
        self._body = body
        self._exchange = exchange

    def __aiter__(self) -> RecordedBytes:
        return self

    async def __anext__(self) -> bytes:
        data = await anext(self._body)
        self._exchange.received(data)
        return data
