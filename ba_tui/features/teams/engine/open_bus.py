"""The bus that the settings choose."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from ba_tui.features.teams.engine.bus import AcceptedResults, MemoryAccepted, MemoryBus, MessageBus
from ba_tui.features.teams.engine.messages import BusLimits, Redact
from ba_tui.features.teams.engine.over_redis.bus import RedisBus, Tell
from ba_tui.features.teams.engine.over_redis.membership import Membership
from ba_tui.features.teams.engine.over_redis.server import RedisServer
from ba_tui.features.teams.engine.over_redis.signing import Signer, Spent
from ba_tui.features.teams.engine.over_redis.state import RedisAccepted, RedisItems
from ba_tui.features.teams.engine.shared_context import Item, Items, MemoryItems
from ba_tui.resources import UserFolders, open_places
from ba_tui.settings.sections.agents import TeamSettings


def limits_of(settings: TeamSettings) -> BusLimits:
    return BusLimits(settings.max_message_mb, settings.max_waiting, settings.lease, settings.deliveries)


def open_bus(settings: TeamSettings, redact: Redact, tell: Tell) -> MessageBus:
    """Return the bus of a lead: over the server ``team.bus_url``, or in memory without one. It is not connected yet.
    ``redact`` removes secrets from outgoing messages; ``tell`` shows lines to the user. Blocks.

    Raises:
        UsageError: the address is wrong, this machine may not lead, or the package for Redis is missing. StorageError:
        the keys or the list of members can't be read.
    """
    if settings.bus_url is None:
        return MemoryBus(limits_of(settings))
    member = Membership(where := open_places())
    identity, roster = member.as_lead(), member.roster()
    # An invited lead learns revocations from the server, and must not forget them.
    spent = None if identity.member.key == identity.lead else Spent(spent_file(where, identity.lead))
    signing = Signer(identity, {**roster.revoked, **(spent.revoked() if spent else {})})
    return RedisBus(RedisServer(settings.bus_url), signing, limits_of(settings), redact, tell, spent)


def open_worker_bus(settings: TeamSettings, host: str, redact: Redact, tell: Tell) -> RedisBus:
    """Return the bus of a worker on the machine ``host``. See ``open_bus``.

    Raises:
        UsageError: the address is wrong, this machine joined no team, or the package for Redis is missing.
        StorageError: its keys can't be read.
    """
    assert settings.bus_url is not None
    where = open_places()
    identity = Membership(where).as_worker(host)
    spent = Spent(spent_file(where, identity.lead))
    signing = Signer(identity, spent.revoked())
    return RedisBus(RedisServer(settings.bus_url), signing, limits_of(settings), redact, tell, spent)


def spent_file(where: UserFolders, lead: str) -> Path:
    """Return the file that records the messages of one lead's team that workers of this machine processed."""
    return where.state / "team" / f"handled-{hashlib.sha256(lead.encode()).hexdigest()[:16]}.db"


def items_of(bus: MessageBus, team: str, before: Sequence[Item] = ()) -> Items:
    """Return the store of a team's shared items, which is where its bus is. ``before``: items of an earlier run in
    memory.
    """
    return RedisItems(bus, team) if isinstance(bus, RedisBus) else MemoryItems(before)


def accepted_of(bus: MessageBus) -> AcceptedResults:
    """Return the record of accepted results."""
    return RedisAccepted(bus) if isinstance(bus, RedisBus) else MemoryAccepted()
