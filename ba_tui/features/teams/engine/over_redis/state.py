"""State that members of several processes share on the Redis server of their bus: accepted results and shared items.

Each method waits while the server is unreachable. A server without persistence loses all of it in a restart.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.teamwork import AgentMessage
from ba_tui.features.teams.engine.bus import DEAD, DeadLetter
from ba_tui.features.teams.engine.messages import cleaned, decoded, discreet, encoded
from ba_tui.features.teams.engine.over_redis.bus import RedisBus
from ba_tui.features.teams.engine.over_redis.server import (
    BEGIN,
    DROP,
    FIND,
    FIRST,
    ITEMS,
    LETTERS,
    PREFIX,
    PUT,
    WRITE,
    NoGroup,
    RedisServer,
    ServerAway,
)
from ba_tui.features.teams.engine.over_redis.signing import REVOKED, CertifiedMember, NotAllowed, UnsignedText
from ba_tui.features.teams.engine.shared_context import Item, StaleWrite, checked_item

T = TypeVar("T")


async def _waiting(bus: RedisBus, ask: Callable[[], Awaitable[T]]) -> T:
    """Return the result of ``ask`` once the server is reachable. Raises StorageError once the bus is closed."""
    while not bus.closed:
        try:
            return await ask()
        except (ServerAway, NoGroup):
            await bus.back()
    raise StorageError("The bus of this team is closed.")


async def dead_letters(server: RedisServer) -> Sequence[DeadLetter]:
    """Return the server's dead letters, oldest message first. Signatures are not checked: refused messages are
    included.

    Raises:
        StorageError: the server can't be used. ServerAway: it is unreachable.
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
    """Publish the revoked members; only the lead itself does. Raises ServerAway, StorageError."""
    signing = bus.signing
    if signing.revoked and signing.identity.member.key == signing.identity.lead:
        await bus.run(PUT, [REVOKED], [signing.seal(REVOKED, json.dumps(signing.revoked))])


class RedisAccepted:
    """``engine.bus.AcceptedResults`` on the Redis server."""

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
        """Return a checked result. Raises UnsignedText for one that no member signed, or that is in another member's
        name.
        """
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
    """``engine.shared_context.Items`` of one team on the Redis server."""

    def __init__(self, bus: RedisBus, team: str) -> None:
        self._bus = bus
        self._key = f"{PREFIX}items:{team}"

    async def all(self) -> Sequence[Item]:
        found = cast("list[str]", await _waiting(self._bus, lambda: self._bus.run(ITEMS, [self._key], ())))
        items: list[Item] = []
        for text in found:
            try:
                items.append(self._item(text))
            except UnsignedText as error:
                # An invalid entry must not prevent the team from reading its own items.
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
        """Return a checked item. Raises UsageError for an invalid one, or one of another team: anyone may have written
        it.
        """
        try:
            opened = self._bus.signing.open(self._key, text)
            item = checked_item(json.loads(opened.text))
        except (ValueError, RecursionError, OverflowError) as error:
            raise UsageError("A shared item on the Redis server is no JSON.") from error
        _check_name(opened.signer, item.by)
        return item


def _check_name(signer: CertifiedMember, name: str) -> None:
    """Raise NotAllowed unless ``signer`` may write in that name. A lead also stores the items of its workers."""
    if not (signer.leads or signer.speaks_for(name)):
        raise NotAllowed(f"The member {signer.name} wrote it in the name of {name}.")
