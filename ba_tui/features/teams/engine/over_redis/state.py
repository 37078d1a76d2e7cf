"""What members of several processes know together, on the Redis server of their bus: accepted results, shared items.

Each method waits while the server is away. A server without persistence loses all of it in a restart.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.teamwork.teams import AgentMessage
from ba_tui.features.teams.engine.bus import DEAD, DeadLetter
from ba_tui.features.teams.engine.over_redis.bus import RedisBus
from ba_tui.features.teams.engine.over_redis.scripts import BEGIN, DROP, FIND, FIRST, ITEMS, LETTERS, PUT, WRITE
from ba_tui.features.teams.engine.over_redis.seals import REVOKED
from ba_tui.features.teams.engine.over_redis.server import PREFIX, NoGroup, RedisServer, ServerAway
from ba_tui.features.teams.engine.over_redis.signing import Member, NotAllowed, Unsigned
from ba_tui.features.teams.engine.shared_context import Item, StaleWrite, checked_item
from ba_tui.features.teams.engine.wire import cleaned, decoded, discreet, encoded

T = TypeVar("T")


async def _waiting(bus: RedisBus, ask: Callable[[], Awaitable[T]]) -> T:
    """What ``ask`` returns once the server is there. Raises StorageError once the bus is closed."""
    while not bus.closed:
        try:
            return await ask()
        except (ServerAway, NoGroup):
            await bus.back()
    raise StorageError("The bus of this team is closed.")


async def dead_letters(server: RedisServer) -> Sequence[DeadLetter]:
    """What was set aside on the server because nobody could handle it, the oldest message first. Signatures are not
    checked: refused messages are shown too.

    Raises:
        StorageError: the server can't be used. ServerAway: it is away.
    """
    place = f"{PREFIX}dead:"
    rows = cast("list[list[str]]", await server.run(LETTERS, (), (f"{place}*", DEAD)))
    found: list[DeadLetter] = []
    for key, text in rows:
        with contextlib.suppress(UsageError, ValueError, KeyError, TypeError):
            letter = json.loads(text)
            body = str(letter["message"])
            message = decoded(body[body.index("{") :])
            found.append(DeadLetter(key.removeprefix(place), str(letter["group"]), message, str(letter["reason"])))
    return sorted(found, key=lambda each: each.message.at)


async def publish_revoked(bus: RedisBus) -> None:
    """Publish the members that the lead revoked; only the lead itself does. Raises ServerAway, StorageError."""
    signing = bus.signing
    if signing.revoked and signing.identity.member.key == signing.identity.lead:
        await bus.run(PUT, [REVOKED], [signing.seal(REVOKED, json.dumps(signing.revoked))])


class RedisAccepted:
    """team.accepted.Accepted."""

    def __init__(self, bus: RedisBus) -> None:
        self._bus = bus

    async def find(self, key: str) -> AgentMessage | None:
        found = await self._run(FIND, f"{PREFIX}accepted:{key}")
        return self._opened(key, found) if found else None

    async def first(self, key: str, response: AgentMessage) -> AgentMessage:
        text = encoded(discreet(response, self._bus.redact), self._bus.limits)
        text = self._bus.signing.seal(key, text)
        return self._opened(key, await self._run(FIRST, f"{PREFIX}accepted:{key}", text))

    def _opened(self, key: str, text: str) -> AgentMessage:
        """Raises Unsigned for a result that no member signed, or one in the name of another."""
        opened = self._bus.signing.open(key, text)
        message = decoded(opened.text, self._bus.limits)
        _check_name(opened.signer, message.sender)
        return message

    async def begin(self, key: str, member: str) -> str:
        return str(await self._run(BEGIN, f"{PREFIX}begun:{key}", member) or "")

    async def ended(self, key: str) -> None:
        await self._run(DROP, f"{PREFIX}begun:{key}")

    async def _run(self, script: str, key: str, *args: str) -> Any:
        return await _waiting(self._bus, lambda: self._bus.run(script, [key], args))


class RedisItems:
    """team.shared_context.Items of one team."""

    def __init__(self, bus: RedisBus, team: str) -> None:
        self._bus = bus
        self._key = f"{PREFIX}items:{team}"

    async def all(self) -> Sequence[Item]:
        found = cast("list[str]", await _waiting(self._bus, lambda: self._bus.run(ITEMS, [self._key], ())))
        items: list[Item] = []
        for text in found:
            try:
                items.append(self._item(text))
            except Unsigned as error:
                # A stranger must not keep the team from reading its own items.
                self._bus.seals.refuse(self._key, error)
        return sorted(items, key=lambda item: item.key)

    async def get(self, key: str) -> Item | None:
        found = await _waiting(self._bus, lambda: self._bus.run(ITEMS, [self._key], (key,)))
        return self._item(found[0]) if found else None

    async def put(self, item: Item) -> None:
        value = cleaned(item.value, self._bus.redact)
        text = json.dumps({"key": item.key, "value": value, "version": item.version, "by": item.by, "at": item.at})
        args = (item.key, item.version, self._bus.signing.seal(self._key, text))
        wrong = await _waiting(self._bus, lambda: self._bus.run(WRITE, [self._key], args))
        if wrong:
            raise StaleWrite(self._item(cast("str", wrong)) if wrong != "none" else None, item)

    def _item(self, text: str) -> Item:
        """Raises UsageError for what is no item, or not the team's: anybody may have written it."""
        try:
            opened = self._bus.signing.open(self._key, text)
            item = checked_item(json.loads(opened.text))
        except (ValueError, RecursionError, OverflowError) as error:
            raise UsageError("A shared item on the Redis server is no JSON.") from error
        _check_name(opened.signer, item.by)
        return item


def _check_name(signer: Member, name: str) -> None:
    """Raises NotAllowed unless ``signer`` may write in that name. A lead also stores what its workers sent."""
    if not (signer.leads or signer.speaks_for(name)):
        raise NotAllowed(f"The member {signer.name} wrote it in the name of {name}.")
