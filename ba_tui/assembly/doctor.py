"""What the doctor looks at in one folder: ba's surroundings, model servers, the base, and what each feature checks."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from ba_tui.assembly.alone import tools_alone
from ba_tui.core.ports.rooms import CheckResult
from ba_tui.feature import CheckContext, known_features
from ba_tui.hooks.checks import hook_checks
from ba_tui.observe.doctor import Patient, examine
from ba_tui.observe.model_checks import asked_model, server_checks
from ba_tui.permissions.checks import rule_checks, trust_check
from ba_tui.permissions.trust.grants import Trust
from ba_tui.permissions.trust.settings import settings_of
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.catalog import chosen_catalog
from ba_tui.resources import places, project_root
from ba_tui.tools.builtin.search import find_ripgrep
from ba_tui.tools.checks import sandbox_checks, tool_checks
from ba_tui.tools.registry import Registry


def examined(folder: Path) -> Iterator[CheckResult]:
    """All findings for ``folder``, each as soon as it is known. Takes seconds: iterate it in a thread."""
    loaded, where, root = settings_of(folder, places()), places(), project_root(folder)
    access, trust = ProviderAccess(loaded, chosen_catalog(where, strict=False)[0], where), Trust(where)
    yield from examine(Patient(where, loaded, find_ripgrep(), model=asked_model(access)))
    yield from server_checks(access, where)
    yield from rule_checks(loaded, where, folder)
    yield trust_check(trust.look(root))
    yield from sandbox_checks(loaded.settings, where)
    yield from hook_checks(loaded.hooks, root, trust.trusted)
    yield from tool_checks(lambda: _registry(folder))
    for feature in known_features():
        yield from feature.checked(CheckContext(loaded, where, folder, root, trust.trusted))


@contextmanager
def _registry(folder: Path) -> Generator[Registry]:
    with tools_alone(folder, {}) as tools:
        yield tools.registry
