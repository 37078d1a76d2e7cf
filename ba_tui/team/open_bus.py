"""The bus that the settings ask for."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.ports.bus import MessageBus
from ba_tui.resources import open_places
from ba_tui.settings.keys import read_key
from ba_tui.settings.sections.team import TeamSettings
from ba_tui.team.accepted import Accepted, MemoryAccepted
from ba_tui.team.bus import MemoryBus
from ba_tui.team.over_redis.bus import RedisBus, Tell
from ba_tui.team.over_redis.server import RedisServer
from ba_tui.team.over_redis.signing import Signing
from ba_tui.team.over_redis.state import RedisAccepted, RedisItems
from ba_tui.team.shared_context import Item, Items, MemoryItems
from ba_tui.team.wire import BusLimits, Redact

SECRET, VARIABLE = "team-secret", "BA_TEAM_SECRET"
"""What signs the messages of a team: an entry of the keyring or of ``keys.yaml``, and a variable."""


def limits_of(settings: TeamSettings) -> BusLimits:
    return BusLimits(settings.max_message_mb, settings.max_waiting, settings.lease, settings.deliveries)


def open_bus(settings: TeamSettings, redact: Redact, tell: Tell) -> MessageBus:
    """Over the server of ``team.bus_url``, or within this process without one. Nothing is connected yet. ``redact``
    takes secrets out of what leaves this process; ``tell`` says lines to the person.

    Raises:
        UsageError: the address or the secret is wrong, or the package for Redis is missing.
        StorageError: the file of keys can't be understood.
    """
    if settings.bus_url is None:
        return MemoryBus(limits_of(settings))
    key = read_key(SECRET, VARIABLE, open_places())
    signing = Signing(key.value if key else "")
    return RedisBus(RedisServer(settings.bus_url), limits_of(settings), redact, tell, signing)


def items_of(bus: MessageBus, team: str, before: Sequence[Item] = ()) -> Items:
    """Where the shared items of a team lie: with its bus. ``before``: those of an earlier run in memory."""
    return RedisItems(bus, team) if isinstance(bus, RedisBus) else MemoryItems(before)


def accepted_of(bus: MessageBus) -> Accepted:
    """Where it is written which result of a task counts."""
    return RedisAccepted(bus) if isinstance(bus, RedisBus) else MemoryAccepted()
