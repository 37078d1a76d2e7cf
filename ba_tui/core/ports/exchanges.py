"""Requests and responses of models as they went over the network."""

from __future__ import annotations

from typing import Protocol


class Exchange(Protocol):
    """One request, while its response comes in."""

    def received(self, data: bytes) -> None:
        """Bytes of the response, in order."""
        ...

    def end(self) -> None:
        """No more bytes come: the response is whole, failed or no longer wanted."""
        ...


class Recorder(Protocol):
    """Keeps what one provider sends and receives. Nothing here raises, or waits for a disk."""

    def sent(self, body: bytes, kept: int, tail: int) -> Exchange:
        """``body`` goes out. Its first ``kept`` bytes are those of the last body, its last ``tail`` bytes are not part
        of what the next one extends."""
        ...
