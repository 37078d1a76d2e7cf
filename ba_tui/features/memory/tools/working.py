"""Working memory of a task: in the session's journal, or on a Redis server for a team of several processes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.events import WorkingChanged
from ba_tui.core.messages import clean_json, clean_text
from ba_tui.core.ports.memory import WorkingMemory
from ba_tui.core.turn import Branch

if TYPE_CHECKING:
    from redis.asyncio import Redis

LARGEST = 64_000
"""Maximum bytes of all values of a scope as JSON."""
T = TypeVar("T")
PREFIX = "ba:working:"
LEFT = 7 * 86_400
"""Seconds after which the server drops the values of a killed process."""
PATIENCE = 5.0
"""Seconds to wait for the server."""
SESSION = ""
"""The scope of values without a task: they stay until the session ends, and return when it is resumed."""


def storable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``values`` as JSON stores them. Raises UsageError for other types."""
    try:
        read: dict[str, Any] = json.loads(json.dumps(clean_json(dict(values)), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"Working memory holds JSON values only: {error}.") from error
    return {clean_text(key): value for key, value in read.items()}


def check_size(values: Mapping[str, Any]) -> None:
    """Raise UsageError if ``values`` are too large."""
    size = len(json.dumps(values))
    if size > LARGEST:
        raise UsageError(
            f"Working memory holds at most {LARGEST:,} bytes, and these values have {size:,}.",
            "Put large data into a file and keep its path.",
        )


class JournaledWorking:
    """core.ports.memory.WorkingMemory in the transcript of ``branch``: each change is an event of the session."""

    def __init__(self, branch: Branch, scope: str = SESSION) -> None:
        self._branch = branch
        self._scope = scope

    async def get(self, key: str, default: Any = None) -> Any:
        return deepcopy(self._values.get(key, default))

    async def set(self, key: str, value: Any) -> None:
        await self.update({key: value})

    async def update(self, values: Mapping[str, Any]) -> None:
        self._write({**self._values, **storable(values)})

    async def clear(self) -> None:
        if self._values:
            self._write({})

    async def to_dict(self) -> dict[str, Any]:
        return deepcopy(dict(self._values))

    @property
    def _values(self) -> Mapping[str, Any]:
        return self._branch.transcript.working.get(self._scope, {})

    def _write(self, values: dict[str, Any]) -> None:
        check_size(values)
        self._branch.emit(WorkingChanged(self._scope, values))


@asynccontextmanager
async def task_memory(branch: Branch, task: str, url: str | None = None) -> AsyncGenerator[WorkingMemory]:
    """Yield the working memory of ``task``; it is cleared after the block, and the journal keeps its last values.

    With ``url``, that of a Redis server, other processes share it under the same name.

    Raises:
        UsageError: the task has no name, or the package for Redis is missing. StorageError: the server does not answer.
    """
    if not task.strip():
        raise UsageError("A task needs a name for its working memory.")
    if url is None:
        memory = JournaledWorking(branch, task)
        try:
            yield memory
        finally:
            await memory.clear()
        return

    async with connected(url, task) as shared:
        try:
            yield shared
        finally:
            if held := await shared.to_dict():
                branch.emit(WorkingChanged(task, held))
                branch.emit(WorkingChanged(task, {}))
            await shared.clear()


class RedisWorking:
    """The values of ``task`` as one hash on the server, each as JSON. ``place`` names the server in messages."""

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
        """Return the server's answer. Raises StorageError."""
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
    """Return the working memory of ``task`` on the server at ``url``. Raises UsageError without the package redis."""
    try:
        from redis.asyncio import Redis  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UsageError(
            "The package redis is missing, and memory.redis needs it.", "pip install 'ba-tui[redis]'"
        ) from error
    # The address may contain a password.
    place = urlsplit(url).hostname or "at a socket"
    options: dict[str, Any] = {"socket_timeout": PATIENCE, "socket_connect_timeout": PATIENCE}
    client: Redis = cast("Any", Redis).from_url(url, decode_responses=True, **options)
    try:
        yield RedisWorking(client, task, place)
    finally:
        await client.aclose()
