"""What authorises requests to a server: the seam between connections and OAuth."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ba_tui.core.ports.mcp import ServerConfig

if TYPE_CHECKING:
    import httpx2


class Authority(Protocol):
    """Tokens of servers. ``auth`` serves connections that no person attends, ``login`` is the person's act."""

    async def auth(self, config: ServerConfig) -> httpx2.Auth | None:
        """Return what adds and refreshes the stored tokens; None where none is stored and none is configured.

        Its flow raises LoginNeeded where only the person can go on.
        """
        ...

    async def login(self, config: ServerConfig, show: Callable[[str], None]) -> None:
        """Log in; ``show`` is given the address to open. Raises McpError."""
        ...

    async def logout(self, config: ServerConfig) -> None:
        """Forget the tokens of the server."""
        ...
