"""What the doctor says of models: which one would be asked, and the model servers that answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from ba_tui.core.errors import StorageError
from ba_tui.core.ports.rooms import CheckResult
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.setup import ProviderSetup
from ba_tui.resources import Places
from ba_tui.settings import printable

NAMED = 5
"""Models of a server that are named."""
FIX = "Type its address in /setup, or correct it: ba config edit."


def asked_model(access: ProviderAccess) -> str:
    """The model that would be asked; empty where the key file can't be understood, which is a finding of its own."""
    try:
        return access.default_model()
    except StorageError:
        return ""


def server_checks(access: ProviderAccess, where: Places) -> Iterator[CheckResult]:
    """The model servers that answer, with what they serve, and those of the settings that do not."""
    servers = asyncio.run(ProviderSetup(access, where).servers())
    if not servers:
        yield CheckResult("models", "ok", "no model server on the usual ports of this machine")
    for server in servers:
        names = ", ".join(printable(model.id) for model in server.models[:NAMED])
        more = len(server.models) - NAMED
        names += f" and {more:,} more" if more > 0 else ""
        place = f"{server.title} at {server.base_url}"
        if server.models:
            yield CheckResult("models", "ok", f"{place}: {names}")
        for line in server.troubles or (() if server.models else (f"{place} has no model yet.",)):
            yield CheckResult("models", "warn", printable(line), FIX)
