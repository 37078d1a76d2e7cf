"""What the doctor looks at in one folder: ba's surroundings, model servers, and what each room checks."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from ba_tui.assembly.alone import tools_alone
from ba_tui.assembly.rooms import checked_rooms
from ba_tui.core.ports.rooms import CheckResult
from ba_tui.observe.doctor import Patient, examine
from ba_tui.observe.model_checks import asked_model, server_checks
from ba_tui.permissions.trust.settings import settings_of
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.catalog import chosen_catalog
from ba_tui.resources import places
from ba_tui.tools.builtin.search import find_ripgrep
from ba_tui.tools.registry import Registry


def examined(folder: Path) -> Iterator[CheckResult]:
    """All findings for ``folder``, each as soon as it is known. Takes seconds: iterate it in a thread."""
    loaded, where = settings_of(folder, places()), places()
    access = ProviderAccess(loaded, chosen_catalog(where, strict=False)[0], where)
    yield from examine(Patient(where, loaded, find_ripgrep(), model=asked_model(access)))
    yield from server_checks(access, where)
    rooms = checked_rooms(loaded, where, folder, lambda: _registry(folder))
    yield from (finding for room in rooms for check in room.checks for finding in check())


@contextmanager
def _registry(folder: Path) -> Generator[Registry]:
    with tools_alone(folder, {}) as tools:
        yield tools.registry
