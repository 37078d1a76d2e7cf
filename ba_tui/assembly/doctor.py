"""What the doctor looks at in one folder: ba's surroundings, model servers, and what each room checks.

The looks themselves are those of ``observe.doctor`` and of the rooms.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from ba_tui.assembly.rooms import checked_rooms
from ba_tui.assembly.services import tools_alone
from ba_tui.core.errors import StorageError
from ba_tui.core.ports.rooms import CheckResult
from ba_tui.observe.doctor import Patient, examine
from ba_tui.permissions.trust.grants import Trust
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.catalog import chosen_catalog
from ba_tui.providers.setup import ProviderSetup
from ba_tui.resources import Places, places, project_root
from ba_tui.settings import load_settings, printable
from ba_tui.tools.builtin.search import find_ripgrep

NAMED = 5
"""Models of a server that are named."""
FIX = "Type its address in /setup, or correct it: ba config edit."


def examined(folder: Path) -> Iterator[CheckResult]:
    """All findings for ``folder``, each as soon as it is known. Takes seconds: iterate it in a thread."""
    where, root = places(), project_root(folder)
    loaded = load_settings({}, where, root, trusted=Trust(where).trusted(root))
    access = ProviderAccess(loaded, chosen_catalog(where, strict=False)[0], where)
    yield from examine(Patient(where, loaded, find_ripgrep(), model=_model(access)))
    yield from _servers(access, where)
    for room in checked_rooms(loaded, where, folder, lambda: tools_alone(folder, {}).registry):
        for check in room.checks:
            yield from check()


def _model(access: ProviderAccess) -> str:
    """The model that would be asked; empty where the key file can't be understood, which is a finding of its own."""
    try:
        return access.default_model()
    except StorageError:
        return ""


def _servers(access: ProviderAccess, where: Places) -> Iterator[CheckResult]:
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
