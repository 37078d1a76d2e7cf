"""The doctor's checks of a folder: ba's environment, model servers, the base, and the checks of each feature."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from ba_tui.assembly.session import tools_alone
from ba_tui.context.files import find_ripgrep
from ba_tui.core.ports.contributions import CheckResult
from ba_tui.feature import CheckContext, installed_features, known_features
from ba_tui.observe.doctor import Patient, asked_model, examine, server_checks
from ba_tui.permissions.session import rule_checks, settings_of, trust_check
from ba_tui.permissions.trust.grants import Trust
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.catalog import chosen_catalog
from ba_tui.resources import places, project_root
from ba_tui.tools.checks import sandbox_checks, tool_checks
from ba_tui.tools.registry import Registry


def examined(folder: Path) -> Iterator[CheckResult]:
    """Yield the results for ``folder`` as soon as each is known. Takes seconds: iterate in a thread."""
    loaded, where, root = settings_of(folder, places()), places(), project_root(folder)
    access, trust = ProviderAccess(loaded, chosen_catalog(where, strict=False)[0], where), Trust(where)
    yield from examine(Patient(where, loaded, find_ripgrep(), model=asked_model(access)))
    yield from server_checks(access, where)
    yield from rule_checks(loaded, where, folder)
    yield trust_check(trust.look(root))
    yield from sandbox_checks(loaded.settings, where)
    yield from tool_checks(lambda: _registry(folder))
    for problem in installed_features().problems:
        yield CheckResult("features", "warn", problem, "Correct features in config.yaml, or install the package.")
    for feature in known_features():
        yield from feature.checked(CheckContext(loaded, where, folder, root, trust.trusted))


@contextmanager
def _registry(folder: Path) -> Generator[Registry]:
    with tools_alone(folder, {}) as tools:
        yield tools.registry
