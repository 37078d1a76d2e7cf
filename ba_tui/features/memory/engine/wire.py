"""Requests to the memory helper and its answers, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import date
from typing import Any, cast

from ba_tui.core.ports.memory import Entry
from ba_tui.core.values import frozen
from ba_tui.features.memory.engine.entries import as_record, entry_of
from ba_tui.features.memory.engine.recall import Ask, Found, Hit
from ba_tui.features.memory.engine.scoring import Signals
from ba_tui.features.memory.engine.setup import Endpoint, StoreSetup, TeamServer

SEARCH, FORGET, CATCH_UP, REBUILD, OPEN, LOOK = "search", "forget", "catch_up", "rebuild", "open", "look"
"""The methods of the helper."""
STATE = "state"
"""Its notice."""


@frozen
class HelperState:
    """How the helper stands: entries that have a vector in the index (``done``), and all (``total``); ``why``: what is
    wrong, for people; ``memory``: the most bytes that the process took.
    """

    done: int = 0
    total: int = 0
    why: str = ""
    model: str = ""
    memory: int = 0


def asked(ask: Ask) -> dict[str, Any]:
    """``ask`` as JSON."""
    return {
        "text": ask.text,
        "limit": ask.limit,
        "explicit": ask.explicit,
        "today": ask.today.isoformat() if ask.today else None,
        "kinds": sorted(ask.kinds) if ask.kinds is not None else None,
        "tokens": ask.tokens,
        "leave_out": sorted(ask.leave_out),
    }


def ask_of(given: Mapping[str, Any]) -> Ask:
    """The ask that ``asked`` has written."""
    kinds = given["kinds"]
    return Ask(
        given["text"],
        given["limit"],
        given["explicit"],
        date.fromisoformat(given["today"]) if given["today"] else None,
        frozenset(kinds) if kinds is not None else None,
        given["tokens"],
        frozenset(given["leave_out"]),
    )


def told(found: Found) -> dict[str, Any]:
    """``found`` as JSON."""
    hits = [
        {field.name: getattr(hit, field.name) for field in fields(Hit)}
        | {"entry": as_record(hit.entry), "signals": asdict(hit.signals)}
        for hit in found.hits
    ]
    return {"hits": hits, "step": found.step, "why": found.why}


def found_of(reply: object) -> Found:
    """The result that ``told`` has written."""
    given = cast("Mapping[str, Any]", reply)
    return Found(tuple(_hit(each) for each in given["hits"]), given["step"], given["why"])


def _hit(given: Mapping[str, Any]) -> Hit:
    made: dict[str, Any] = {
        "entry": entry_of(given["entry"]) or Entry("", ""),
        "signals": Signals(**given["signals"]),
        "twins": tuple(given["twins"]),
    }
    return Hit(**{**given, **made})


def set_up(setup: StoreSetup) -> dict[str, Any]:
    """What the helper is told of ``setup``. Holds keys: it goes over the channel alone, never into a log."""
    return {
        "embedder": setup.embedder,
        "endpoint": asdict(setup.endpoint) if setup.endpoint else None,
        "server": asdict(setup.server) if setup.server else None,
    }


def setup_from(given: Mapping[str, Any]) -> StoreSetup:
    """The setup that ``set_up`` has written."""
    endpoint, server = given["endpoint"], given["server"]
    return StoreSetup(
        given["embedder"], Endpoint(**endpoint) if endpoint else None, TeamServer(**server) if server else None
    )
