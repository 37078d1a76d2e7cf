"""Logins; the SDK is imported only for servers with a login, because most need none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ba_tui.core.ports.mcp import ServerConfig
from ba_tui.settings.keys import TokenStore

if TYPE_CHECKING:
    import httpx2

    from ba_tui.features.mcp.client.oauth import OAuth


class Logins:
    """Tokens of servers. ``auth`` serves connections without a user; ``login`` is started by the user."""

    def __init__(
        self, store: TokenStore, http: Callable[[ServerConfig, httpx2.Auth | None], Awaitable[httpx2.AsyncClient]]
    ) -> None:
        self._store, self._http = store, http

    async def auth(self, config: ServerConfig) -> httpx2.Auth | None:
        """Return the authentication that adds and refreshes the stored tokens; None if none is stored. Its flow raises
        LoginNeeded when only the user can continue. Raises StorageError.
        """
        kept = await asyncio.to_thread(self._store.read, config)
        return await (await self._oauth()).auth(config) if kept.get("tokens") else None

    async def login(self, config: ServerConfig, show: Callable[[str], None]) -> None:
        """Log in; ``show`` gets the address to open. Raises McpError, StorageError."""
        await (await self._oauth()).login(config, show)

    async def logout(self, config: ServerConfig) -> None:
        """Forget the tokens of the server. Raises StorageError."""
        await asyncio.to_thread(self._store.drop, config)

    async def _oauth(self) -> OAuth:
        def load() -> OAuth:
            from ba_tui.features.mcp.client.oauth import OAuth  # noqa: PLC0415 - the SDK takes half a second

            return OAuth(self._store, self._http)

        return await asyncio.to_thread(load)
