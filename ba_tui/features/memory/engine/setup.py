"""The setup of a memory store: its embedder, its shared server, and its retention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from ba_tui.core.ports.memory import Kind
from ba_tui.core.values import frozen

if TYPE_CHECKING:
    # The helper process takes its setup from here; the settings would double its modules.
    from ba_tui.settings.sections.data import MemorySettings

BY_WORDS = "off"
"""The embedder of a store that is searched by words only."""


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
    """All settings of a ``MemoryStore`` except its folder.

    ``embedder``: ``fuse``, ``e5``, ``endpoint`` or ``off``. ``expiry``: seconds without use after which entries are
    removed, by kind. ``most``: maximum entries of one shelf.
    """

    embedder: str = "fuse"
    endpoint: Endpoint | None = None
    server: TeamServer | None = None
    most: int = 100_000
    expiry: Mapping[Kind, float] = field(default_factory=dict[Kind, float])


_DAY = 86_400.0


def setup_of(settings: MemorySettings, project: str, key: Callable[[str], str]) -> StoreSetup:
    """Return the setup for ``settings``. ``key`` returns the value of an environment variable, or ""."""
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
