"""What servers told of their models, kept in a small file, so that the next start knows it before anybody is asked.

Only a cache: what can't be read is asked again, what can't be written is lost with the process.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ba_tui.core.errors import StorageError
from ba_tui.core.provider import Prices
from ba_tui.core.values import frozen
from ba_tui.providers.facts.servers import ModelServer
from ba_tui.providers.facts.values import LARGEST, SMALLEST, ModelFacts
from ba_tui.providers.wire.shapes import decode, fields, text_of
from ba_tui.resources import exclusive, read_regular, save_whole

FILE = "model-facts.json"
"""In ba's cache folder."""
KEPT = 300
"""Models of which facts are kept, the latest told."""
LONGEST = 500_000
"""Bytes of the file that are read."""
DAY = 86_400.0
FRESH = DAY
"""Seconds for which a vendor is not asked again. A server of one's own is asked once by each start: it may have been
started with another window."""
OLDEST = 90 * DAY


@frozen
class ToldFacts:
    """``at``: when they were told, in seconds since 1970."""

    facts: ModelFacts
    at: float


class KnownFacts:
    """Facts by server and model, in ``file``."""

    def __init__(self, file: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock
        self._told: dict[str, ToldFacts] | None = None
        self._asked: set[str] = set()
        self.version = 0
        """Another number once something new was told."""

    def find(self, server: ModelServer, name: str) -> ModelFacts | None:
        """What ``server`` told of the model ``name``, its prices with the day they were told."""
        told = self._known().get(_key(server, name))
        if told is None:
            return None
        prices = told.facts.prices
        day = datetime.fromtimestamp(told.at, UTC).date().isoformat()
        return replace(told.facts, prices=replace(prices, date=day)) if prices else told.facts

    def wanted(self, server: ModelServer, name: str) -> bool:
        """Whether ``server`` is to be asked now; True once for a start."""
        key = _key(server, name)
        told = self._known().get(key)
        fresh = told is not None and not server.own and 0 <= self._clock() - told.at < FRESH
        if not server.tells or fresh or key in self._asked:
            return False
        self._asked.add(key)
        return True

    def learn(self, server: ModelServer, facts: ModelFacts) -> None:
        """Keep ``facts``, beside what other processes have kept. Blocks for the disk; never raises."""
        told = ToldFacts(facts, self._clock())
        self._known()[_key(server, facts.name)] = told
        self.version += 1
        if self._file is None:
            return
        with suppress(StorageError, OSError), exclusive(self._file.parent):
            kept = {**_read(self._file, self._clock()), _key(server, facts.name): told}
            latest = sorted(kept.items(), key=lambda item: item[1].at)[-KEPT:]
            text = json.dumps({key: _encoded(one) for key, one in latest}, ensure_ascii=False, indent=1)
            save_whole(self._file, text + "\n", mode=0o600)

    def _known(self) -> dict[str, ToldFacts]:
        if self._told is None:
            self._told = _read(self._file, self._clock()) if self._file else {}
        return self._told


def _key(server: ModelServer, name: str) -> str:
    return f"{server.base} {name}"


def _encoded(told: ToldFacts) -> dict[str, Any]:
    said = {key: value for key, value in asdict(told.facts).items() if value not in (None, "")}
    if prices := told.facts.prices:
        said["prices"] = [prices.input, prices.output, prices.cache_read, prices.cache_write]
    return {**said, "at": int(told.at)}


def _read(file: Path, now: float) -> dict[str, ToldFacts]:
    with suppress(OSError, ValueError):
        pairs = fields(decode(read_regular(file, LONGEST)))
        told = ((key, _decoded(fields(value))) for key, value in pairs.items())
        return {key: one for key, one in told if one and 0 <= now - one.at < OLDEST}
    return {}


def _decoded(value: dict[str, Any]) -> ToldFacts | None:
    at, name = value.get("at"), text_of(value.get("name"))
    if not name or not isinstance(at, int | float):
        return None

    def tokens(key: str) -> int | None:
        number = value.get(key)
        return number if isinstance(number, int) and SMALLEST <= number <= LARGEST else None

    def flag(key: str) -> bool | None:
        said = value.get(key)
        return said if isinstance(said, bool) else None

    facts = ModelFacts(
        name,
        tokens("window"),
        tokens("max_output"),
        _prices(value.get("prices")),
        flag("vision"),
        flag("tools"),
        flag("thinking"),
        flag("temperature"),
        text_of(value.get("owner")),
    )
    return ToldFacts(facts, float(at))


def _prices(value: Any) -> Prices | None:
    match value:
        case [int() | float() as first, int() | float() as second, int() | float() as third, int() | float() as fourth]:
            return Prices(first, second, third, fourth) if min(first, second, third, fourth) >= 0 else None
        case _:
            return None
