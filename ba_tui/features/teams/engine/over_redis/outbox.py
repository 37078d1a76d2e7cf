"""What a member could not send, or sent and does not know to be handled: kept in memory until the server has it."""

from __future__ import annotations

from collections import OrderedDict, deque

from ba_tui.core.errors import StorageError
from ba_tui.core.values import frozen

KEPT = 10_000
KEPT_BYTES = 64_000_000


@frozen
class Publication:
    """A message on its way to ``topic``. ``sequence``: 0 before the server gave it one. ``entry``: its id there."""

    topic: str
    sender: str
    id: str
    body: str
    sequence: int = 0
    entry: str = ""


@frozen
class Settlement:
    """Acknowledges an entry for a group; with ``reason`` it is set aside."""

    topic: str
    group: str
    entry: str
    body: str = ""
    reason: str = ""


class Outbox:
    """In the order in which it is to be sent."""

    def __init__(self) -> None:
        self._waiting: deque[Publication | Settlement] = deque()
        self._size = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def messages(self) -> int:
        return sum(isinstance(each, Publication) for each in self._waiting)

    def keep(self, step: Publication | Settlement) -> None:
        """Raises StorageError when no more fits."""
        size = len(step.body)
        if len(self._waiting) >= KEPT or self._size + size > KEPT_BYTES:
            raise StorageError(
                f"The Redis server is away, and {len(self._waiting):,} messages wait for it: no more are kept.",
                "Start the server again; see the setting team.bus_url.",
            )
        self._waiting.append(step)
        self._size += size

    def first(self) -> Publication | Settlement | None:
        return self._waiting[0] if self._waiting else None

    def sent(self) -> None:
        """The first one is with the server."""
        self._size -= len(self._waiting.popleft().body)


class Unconfirmed:
    """The newest messages that the server has and that may not be handled yet: sent again if it loses them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Publication] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, sent: Publication) -> None:
        self.drop([sent.id])
        self._kept[sent.id] = sent
        self._size += len(sent.body)
        while len(self._kept) > KEPT or self._size > KEPT_BYTES:
            self.drop([next(iter(self._kept))])

    def drop(self, ids: list[str]) -> None:
        for id in ids:
            if known := self._kept.pop(id, None):
                self._size -= len(known.body)

    def all(self) -> list[Publication]:
        """Oldest first."""
        return list(self._kept.values())
