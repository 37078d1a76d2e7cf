"""What the keys of a topic are called on the server. Pure."""

from __future__ import annotations

from ba_tui.features.teams.engine.over_redis.server import PREFIX


def stream(topic: str) -> str:
    return f"{PREFIX}topic:{topic}"


def groups(topic: str) -> str:
    return f"{PREFIX}groups:{topic}"


def opened(topic: str) -> str:
    return f"{PREFIX}open:{topic}"
