"""A Redis server that members of a team share: the connection and the scripts. The only module of this room that knows
the package redis.

Each change is one script, so that it is made whole or not at all. A script refuses to run when the server is not the
one that was greeted: ``EPOCH`` is a name that the first member gives it, and that a server without persistence loses
with everything else.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from ba_tui.core.errors import StorageError, UsageError

if TYPE_CHECKING:
    from redis.asyncio import Redis

PREFIX = "ba:team2:"
"""Another one than an older ba has, whose workers would set signed tasks aside."""
EPOCH = f"{PREFIX}epoch"
PATIENCE = 5.0
"""Seconds to wait for an answer of the server."""
CONNECTIONS = 10_000
"""Each subscription holds one."""
_CHECK = """
if redis.call('GET', '%s') ~= ARGV[1] then return redis.error_reply('EPOCH') end
"""
_GREET = """
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return redis.call('GET', KEYS[1])
"""


class ServerAway(StorageError):
    """The server can't be reached now; it may come back."""

    kind = "server_away"


class DataLost(Exception):
    """The server is not the one that was greeted: it has lost what it held."""


class NoGroup(Exception):
    """The server does not know a group of a stream."""


class RedisServer:
    """``place`` names the server for people: its address may hold a password."""

    def __init__(self, url: str) -> None:
        self.place = _place(url)
        self._client = _client(url)
        self._scripts: dict[str, Any] = {}
        self.epoch = ""

    async def greet(self) -> str:
        """Learn the name of the server, and return it. Raises ServerAway, StorageError."""
        found = await self._answer(self._script(_GREET)(keys=[EPOCH], args=[uuid.uuid4().hex]))
        self.epoch = str(found)
        return self.epoch

    async def run(self, script: str, keys: Sequence[str], args: Sequence[str | int | float]) -> Any:
        """What ``script`` returns; its ARGV begin with the second. Raises ServerAway, DataLost, NoGroup, StorageError.

        A script must change nothing twice: whether it ran is not known when the connection breaks.
        """
        if not self.epoch:
            await self.greet()
        loaded = self._script(_CHECK % EPOCH + script)
        return await self._answer(loaded(keys=list(keys), args=[self.epoch, *args]))

    async def read(self, stream: str, group: str, consumer: str, most: int, wait: float) -> list[tuple[str, Any]]:
        """New entries of ``stream`` for ``consumer``, waiting ``wait`` seconds for the first. Raises as ``run``."""
        options = ("COUNT", most, "BLOCK", max(1, int(wait * 1000)), "STREAMS", stream, ">")
        asked = cast("Any", self._client).execute_command("XREADGROUP", "GROUP", group, consumer, *options)
        found = await self._answer(asked)
        return list(found[0][1]) if found else []

    async def close(self) -> None:
        pool = cast("Any", self._client).connection_pool
        await pool.disconnect(inuse_connections=True)
        await self._client.aclose()

    def _script(self, text: str) -> Callable[..., Awaitable[Any]]:
        if text not in self._scripts:
            self._scripts[text] = self._client.register_script(text)
        return self._scripts[text]

    async def _answer(self, asked: Awaitable[Any]) -> Any:
        from redis import exceptions  # noqa: PLC0415 - an extra

        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        try:
            found = await asked
        except exceptions.AuthenticationError as error:
            raise self._refused("it refuses the user or the password") from error
        except exceptions.ResponseError as error:
            text = str(error)
            if text.startswith("EPOCH"):
                raise DataLost from error
            if text.startswith(("NOGROUP", "UNBLOCKED")):
                raise NoGroup from error
            if text.startswith(("LOADING", "MASTERDOWN", "BUSY", "OOM", "READONLY", "TRYAGAIN")):
                raise ServerAway(f"The Redis server {self.place} can't answer now: {text}.") from error
            raise self._refused(text) from error
        except (exceptions.RedisError, OSError) as error:
            # Its text may name the address, never the password; the name of its class says enough.
            why = "it does not answer" if isinstance(error, exceptions.TimeoutError) else "no connection"
            raise ServerAway(f"The Redis server {self.place} can't be reached: {why}.") from error
        finally:
            if task and task.cancelling() > before:
                # Timeouts within the package may take a cancel for their own, and go on.
                raise asyncio.CancelledError
        return found

    def _refused(self, why: str) -> StorageError:
        message = f"The Redis server {self.place} can't be used: {why}."
        return StorageError(message, "Check the setting team.bus_url.")


def _place(url: str) -> str:
    """The host, and the port where it is not the usual one."""
    found = urlsplit(url)
    if not found.hostname:
        return "at a socket"
    return f"{found.hostname}:{found.port}" if found.port not in {None, 6379} else found.hostname


def _client(url: str) -> Redis:
    """Raises UsageError without the package redis, or for an address that is none."""
    try:
        from redis.asyncio import Redis  # noqa: PLC0415 - an extra
        from redis.asyncio.retry import Retry  # noqa: PLC0415
        from redis.backoff import NoBackoff  # noqa: PLC0415
    except ImportError as error:
        hint = "pip install 'ba-tui[redis]'"
        raise UsageError("The package redis is missing, and team.bus_url needs it.", hint) from error
    options: dict[str, Any] = {
        "decode_responses": True,
        # What others wrote may be anything.
        "encoding_errors": "replace",
        # Its answers have the same shape in all versions of the package.
        "protocol": 2,
        # A lost connection must be noticed: the server may have lost more than that.
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": 2 * PATIENCE,
        "socket_connect_timeout": PATIENCE,
        "max_connections": CONNECTIONS,
    }
    try:
        return cast("Any", Redis).from_url(url, **options)
    except ValueError as error:
        raise UsageError("team.bus_url is no address of a Redis server.", "redis://HOST:6379/0") from error
