"""The settings of a server as config.yaml would hold them."""

from __future__ import annotations

from typing import Any

from ba_tui.settings.layers import as_data
from ba_tui.settings.sections.mcp import ServerSettings


def changed(settings: ServerSettings) -> dict[str, Any]:
    """``settings`` as data, without what has its default."""
    plain = ServerSettings(command="x") if settings.command else ServerSettings(url="http://x")
    known, found = as_data(plain), as_data(settings)
    rest = {key: value for key, value in found.items() if value != known[key] and key != "oauth"}
    oauth = {key: value for key, value in found["oauth"].items() if value not in ("", [], None)}
    return rest | ({"oauth": oauth} if oauth else {})
