"""How a store of memory is set up: what makes its vectors, which server it shares, and what it keeps for how long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from ba_tui.core.ports.memory import Kind
from ba_tui.core.values import frozen
from ba_tui.settings.sections.memory import MemorySettings

BY_WORDS = "off"
"""The embedder of a store that is searched by words alone."""


@frozen
class Endpoint:
    """A server with an OpenAI-compatible embeddings endpoint."""

    url: str
    model: str
    key: str = field(default="", repr=False)


@frozen
class TeamServer:
    """A Chroma server that holds the entries of ``project`` for a team."""

    url: str
    project: str
    token: str = field(default="", repr=False)


@frozen
class StoreSetup:
    """Everything that a ``MemoryStore`` is told beside where it lies.

    ``embedder``: ``fuse``, ``e5``, ``endpoint`` or ``off``. ``expiry``: seconds after which entries that nobody used
    are removed, by kind. ``most``: entries that one shelf keeps.
    """

    embedder: str = "fuse"
    endpoint: Endpoint | None = None
    server: TeamServer | None = None
    most: int = 100_000
    expiry: Mapping[Kind, float] = field(default_factory=dict[Kind, float])


_DAY = 86_400.0


def setup_of(settings: MemorySettings, project: str, key: Callable[[str], str]) -> StoreSetup:
    """The setup that ``settings`` ask for. ``key`` returns the value of an environment variable, or nothing."""
    given = settings.endpoint
    endpoint = Endpoint(given.url, given.model, _key(given.api_key_env, key)) if given.url else None
    shared = settings.project or project
    server = TeamServer(settings.url, shared, _key(settings.api_key_env, key)) if settings.url else None
    days = settings.expire_days
    kept: Mapping[Kind, float] = {
        "fact": days.facts,
        "preference": days.preferences,
        "summary": days.summaries,
        "outcome": days.outcomes,
        "turn": days.turns,
    }
    expiry: dict[Kind, float] = {kind: each * _DAY for kind, each in kept.items() if each}
    return StoreSetup(settings.embedder, endpoint, server, settings.max_entries, expiry)


def _key(variable: str, key: Callable[[str], str]) -> str:
    return key(variable).strip() if variable else ""
