"""The background shells of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from ba_tui.core.values import frozen


@frozen
class Job:
    """A background shell as lists show it. Times are seconds since the epoch, ``size`` counts bytes printed;
    ``ref``: the stored whole of a large output; ``failed``: it ended, and not well."""

    id: str
    command: str
    since: float
    until: float | None
    state: Literal["running", "ended", "killed"]
    exit_code: int | None
    size: int
    ref: str | None
    failed: bool = False


class Jobs(Protocol):
    """The background shells of a conversation. On the event loop, and cheap."""

    def list(self) -> Sequence[Job]:
        """Oldest first."""
        ...

    def output(self, id: str) -> str:
        """What is kept of the output, colours included. Raises UsageError when there is no such shell."""
        ...

    async def end(self, id: str) -> None:
        """End it and all it started; takes seconds at most. Raises UsageError when there is no such shell."""
        ...

    def detach(self, call_id: str) -> bool:
        """Move the command that a call waits for to the background. False when it waits for none."""
        ...

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Hear that one began or ended. Call what comes back to stop."""
        ...
