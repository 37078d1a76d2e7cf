"""Connection to the Redis server of a team, and its scripts. The only module of teams that imports the package redis.

Each change is one script, so it is atomic. A script refuses to run if the server has lost its data since the greeting:
``EPOCH`` is a name that the first member stores on the server, and a server without persistence loses it with the data.
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
"""Differs from the prefix of older versions, whose workers would discard signed tasks."""
EPOCH = f"{PREFIX}epoch"
PATIENCE = 5.0
"""Seconds to wait for an answer of the server."""
CONNECTIONS = 10_000
"""Maximum connections; each subscription uses one."""
_CHECK = """
if redis.call('GET', '%s') ~= ARGV[1] then return redis.error_reply('EPOCH') end
"""
_GREET = """
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return redis.call('GET', KEYS[1])
"""


class ServerAway(StorageError):
    """The server is unreachable now; it may come back."""

    kind = "server_away"


class DataLost(Exception):
    """The server has lost its data since it was greeted."""


class NoGroup(Exception):
    """The server has no such group of a stream."""


class RedisServer:
    """A Redis server. ``place`` names it in messages, without the password that its address may contain."""

    def __init__(self, url: str) -> None:
        self.place = _place(url)
        self._client = _client(url)
        self._scripts: dict[str, Any] = {}
        self.epoch = ""

    async def greet(self) -> str:
        """Read the server's name, and return it. Raises ServerAway, StorageError."""
        found = await self._answer(self._script(_GREET)(keys=[EPOCH], args=[uuid.uuid4().hex]))
        self.epoch = str(found)
        return self.epoch

    async def run(self, script: str, keys: Sequence[str], args: Sequence[str | int | float]) -> Any:
        """Return the result of ``script``; its own arguments begin with ARGV[2]. Raises ServerAway, DataLost, NoGroup,
        StorageError.

        A script must be idempotent: when the connection breaks, it is unknown whether it ran.
        """
        if not self.epoch:
            await self.greet()
        loaded = self._script(_CHECK % EPOCH + script)
        return await self._answer(loaded(keys=list(keys), args=[self.epoch, *args]))

    async def read(self, stream: str, group: str, consumer: str, most: int, wait: float) -> list[tuple[str, Any]]:
        """Return new entries of ``stream`` for ``consumer``, waiting ``wait`` seconds for the first. Raises as
        ``run``.
        """
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
            # The error text may contain the address, never the password; the class name is enough.
            why = "it does not answer" if isinstance(error, exceptions.TimeoutError) else "no connection"
            raise ServerAway(f"The Redis server {self.place} can't be reached: {why}.") from error
        finally:
            if task and task.cancelling() > before:
                # Timeouts within the package may swallow a cancellation.
                raise asyncio.CancelledError
        return found

    def _refused(self, why: str) -> StorageError:
        message = f"The Redis server {self.place} can't be used: {why}."
        return StorageError(message, "Check the setting team.bus_url.")


def _place(url: str) -> str:
    """Return the host, with the port if it is not the default."""
    found = urlsplit(url)
    if not found.hostname:
        return "at a socket"
    return f"{found.hostname}:{found.port}" if found.port not in {None, 6379} else found.hostname


def _client(url: str) -> Redis:
    """Return a client. Raises UsageError without the package redis, or for an invalid address."""
    try:
        from redis.asyncio import Redis  # noqa: PLC0415 - an extra
        from redis.asyncio.retry import Retry  # noqa: PLC0415
        from redis.backoff import NoBackoff  # noqa: PLC0415
    except ImportError as error:
        hint = "pip install 'ba-tui[redis]'"
        raise UsageError("The package redis is missing, and team.bus_url needs it.", hint) from error
    options: dict[str, Any] = {
        "decode_responses": True,
        # Other members may have stored anything.
        "encoding_errors": "replace",
        # RESP2 answers have the same shape in all versions of the package.
        "protocol": 2,
        # A lost connection must be noticed: the server may have lost its data as well.
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": 2 * PATIENCE,
        "socket_connect_timeout": PATIENCE,
        "max_connections": CONNECTIONS,
    }
    try:
        return cast("Any", Redis).from_url(url, **options)
    except ValueError as error:
        raise UsageError("team.bus_url is no address of a Redis server.", "redis://HOST:6379/0") from error


# The Lua scripts of the bus. Each of them checks ARGV[1] first, see the module's docstring.
#
# A topic is a stream; ``open`` has, for each of its entries, the number of groups that have not acknowledged it. An
# entry that all groups acknowledged is removed, so the size of a topic is its backlog, and nothing else is trimmed.

KEEP = 7 * 86_400
"""Seconds after which the server drops unused keys."""
KNOWN = 86_400
"""Seconds for which the server remembers the ids of sent messages."""

PUBLISH = f"""
-- KEYS: stream, sequences, sent, groups, open. ARGV: sender, body, least sequence, given sequence, most, newest
local known = redis.call('GET', KEYS[3])
if known then
    local at = string.find(known, ' ')
    return {{tonumber(string.sub(known, 1, at - 1)), string.sub(known, at + 1)}}
end
local newest, groups = tonumber(ARGV[7]), redis.call('SCARD', KEYS[4])
if newest == 0 and redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[6]) then return {{-1, ''}} end
local last = math.max(tonumber(redis.call('HGET', KEYS[2], ARGV[2]) or '0'), tonumber(ARGV[4]))
local sequence = tonumber(ARGV[5])
if sequence == 0 then sequence = last + 1 end
redis.call('HSET', KEYS[2], ARGV[2], math.max(last, sequence))
redis.call('EXPIRE', KEYS[2], {KEEP})
redis.call('EXPIRE', KEYS[4], {KEEP})
local entry = ''
if newest == 0 or groups > 0 then
    entry = redis.call('XADD', KEYS[1], '*', 'm', ARGV[3], 's', sequence)
    redis.call('EXPIRE', KEYS[1], {KEEP})
end
if newest > 0 then
    redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', newest)
else
    redis.call('HSET', KEYS[5], entry, math.max(groups, 1))
    redis.call('EXPIRE', KEYS[5], {KEEP})
    redis.call('SET', KEYS[3], sequence .. ' ' .. entry, 'EX', {KNOWN})
end
return {{sequence, entry}}
"""

JOIN = f"""
-- KEYS: stream, groups. ARGV: group, whether it must miss nothing
if ARGV[3] == '0' and redis.call('SISMEMBER', KEYS[2], ARGV[2]) == 1 then return 0 end
local from = '$'
if ARGV[3] == '1' or redis.call('SCARD', KEYS[2]) == 0 then from = '0' end
-- It fails for a group that is still there.
redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[2], from, 'MKSTREAM')
redis.call('SADD', KEYS[2], ARGV[2])
redis.call('EXPIRE', KEYS[2], {KEEP})
redis.call('EXPIRE', KEYS[1], {KEEP})
return 1
"""

SETTLE = """
-- KEYS: stream, open, dead. ARGV: group, entry, dead letter or nothing, most dead letters
local settled = 0
if redis.call('EXISTS', KEYS[1]) == 1 then settled = redis.call('XACK', KEYS[1], ARGV[2], ARGV[3]) end
if settled == 1 then
    if redis.call('HEXISTS', KEYS[2], ARGV[3]) == 1 and redis.call('HINCRBY', KEYS[2], ARGV[3], -1) <= 0 then
        redis.call('XDEL', KEYS[1], ARGV[3])
        redis.call('HDEL', KEYS[2], ARGV[3])
    end
    if ARGV[4] ~= '' then
        redis.call('LPUSH', KEYS[3], ARGV[4])
        redis.call('LTRIM', KEYS[3], 0, tonumber(ARGV[5]) - 1)
    end
end
return settled
"""

LETTERS = """
-- ARGV: pattern of keys, most of each. Returns key and dead letter of each, the newest first
local found, cursor = {}, '0'
repeat
    local page = redis.call('SCAN', cursor, 'MATCH', ARGV[2], 'COUNT', 1000)
    cursor = page[1]
    for _, key in ipairs(page[2]) do
        for _, letter in ipairs(redis.call('LRANGE', key, 0, tonumber(ARGV[3]) - 1)) do
            table.insert(found, {key, letter})
        end
    end
until cursor == '0'
return found
"""

CLAIM = """
-- KEYS: stream. ARGV: group, consumer, milliseconds, most. Returns entry, body, sequence, times of each
local claimed = redis.call('XAUTOCLAIM', KEYS[1], ARGV[2], ARGV[3], ARGV[4], '0-0', 'COUNT', ARGV[5])[2]
local found = {}
for _, each in ipairs(claimed) do
    local held = redis.call('XPENDING', KEYS[1], ARGV[2], each[1], each[1], 1)[1]
    table.insert(found, {each[1], each[2][2], each[2][4], held and held[4] or 1})
end
return found
"""

RENEW = """
-- KEYS: stream. ARGV: group, consumer, entry
local held = redis.call('XPENDING', KEYS[1], ARGV[2], ARGV[4], ARGV[4], 1)[1]
if held and held[2] == ARGV[3] then
    redis.call('XCLAIM', KEYS[1], ARGV[2], ARGV[3], 0, ARGV[4], 'JUSTID')
    return 1
end
return 0
"""

LEAVE = """
-- KEYS: stream, groups. ARGV: group, consumer, milliseconds, whether nothing is kept for the group
if ARGV[5] == '1' then
    redis.call('SREM', KEYS[2], ARGV[2])
    return redis.call('XGROUP', 'DESTROY', KEYS[1], ARGV[2])
end
local held = redis.call('XPENDING', KEYS[1], ARGV[2], '-', '+', 10000, ARGV[3])
for _, each in ipairs(held) do
    redis.call('XCLAIM', KEYS[1], ARGV[2], ARGV[3], 0, each[1], 'IDLE', ARGV[4], 'JUSTID')
end
if #held == 0 then redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[2], ARGV[3]) end
return #held
"""

OPEN = """
-- KEYS: open. ARGV: entries. Returns 1 for each that some group has not acknowledged
local found = {}
for at = 2, #ARGV do table.insert(found, redis.call('HEXISTS', KEYS[1], ARGV[at])) end
return found
"""

FIND = "return redis.call('GET', KEYS[1])"

PUT = "return redis.call('SET', KEYS[1], ARGV[2])"

FIRST = f"""
-- KEYS: record. ARGV: response. Returns what was written first
redis.call('SET', KEYS[1], ARGV[2], 'NX', 'EX', {KEEP})
return redis.call('GET', KEYS[1])
"""

BEGIN = f"""
-- KEYS: mark. ARGV: member. Returns whose mark it was
local before = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[2], 'EX', {KEEP})
return before
"""

DROP = "return redis.call('DEL', KEYS[1])"

ITEMS = """
-- KEYS: items. ARGV: key, or nothing for all
if ARGV[2] then
    local one = redis.call('HGET', KEYS[1], ARGV[2])
    return one and {one} or {}
end
return redis.call('HVALS', KEYS[1])
"""

WRITE = f"""
-- KEYS: items. ARGV: key, version, item. Returns what is there when it is not the version before
local now = redis.call('HGET', KEYS[1], ARGV[2])
-- A signature may precede an item.
local version = now and cjson.decode(string.sub(now, string.find(now, '{{', 1, true) or 1)).version or 0
if version ~= tonumber(ARGV[3]) - 1 then return now or 'none' end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[4])
redis.call('EXPIRE', KEYS[1], {KEEP})
return false
"""
