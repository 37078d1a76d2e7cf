"""core.ports.working.WorkingMemory on a Redis server. The only module of memory that knows the package redis."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.features.memory.tools.working_values import check_size, storable

if TYPE_CHECKING:
    from redis.asyncio import Redis

T = TypeVar("T")
PREFIX = "ba:working:"
LEFT = 7 * 86_400
"""Seconds after which the server drops what a killed process left."""
PATIENCE = 5.0
"""Seconds to wait for the server."""


class RedisWorking:
    """The values of ``task`` as one hash of the server, each as JSON. ``place`` names the server for people."""

    def __init__(self, client: Redis, task: str, place: str) -> None:
        self._client = client
        self._key = f"{PREFIX}{task}"
        self._place = place

    async def get(self, key: str, default: Any = None) -> Any:
        found = await self._answer(self._client.hget(self._key, key))
        return default if found is None else json.loads(cast("str", found))

    async def set(self, key: str, value: Any) -> None:
        await self.update({key: value})

    async def update(self, values: Mapping[str, Any]) -> None:
        given = storable(values)
        check_size({**await self.to_dict(), **given})
        if not given:
            return
        async with self._client.pipeline(transaction=True) as together:
            together.hset(self._key, mapping={key: json.dumps(value) for key, value in given.items()})
            together.expire(self._key, LEFT)
            await self._answer(together.execute())

    async def clear(self) -> None:
        await self._answer(self._client.delete(self._key))

    async def to_dict(self) -> dict[str, Any]:
        found = cast("dict[str, str]", await self._answer(self._client.hgetall(self._key)))
        return {key: json.loads(value) for key, value in found.items()}

    async def _answer(self, asked: Awaitable[T] | T) -> T:
        """What the server answers. Raises StorageError."""
        from redis.exceptions import RedisError  # noqa: PLC0415 - an extra

        try:
            return await cast("Awaitable[T]", asked)
        except (RedisError, OSError) as error:
            raise StorageError(
                f"The Redis server {self._place} does not answer: {error or type(error).__name__}.",
                "Check the setting memory.redis, or whether the server runs.",
            ) from error


@asynccontextmanager
async def connected(url: str, task: str) -> AsyncGenerator[RedisWorking]:
    """The working memory of ``task`` on the server at ``url``. Raises UsageError without the package redis."""
    try:
        from redis.asyncio import Redis  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UsageError(
            "The package redis is missing, and memory.redis needs it.", "pip install 'ba-tui[redis]'"
        ) from error
    # The address may hold a password.
    place = urlsplit(url).hostname or "at a socket"
    options: dict[str, Any] = {"socket_timeout": PATIENCE, "socket_connect_timeout": PATIENCE}
    client: Redis = cast("Any", Redis).from_url(url, decode_responses=True, **options)
    try:
        yield RedisWorking(client, task, place)
    finally:
        await client.aclose()
