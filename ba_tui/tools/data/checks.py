"""What the doctor says of data: the engine, which is started once for a moment, and whether Python has a kernel."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ba_tui.analysis.checks import engine_check
from ba_tui.core.ports.rooms import CheckResult
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.rules.rulebook import all_rules
from ba_tui.permissions.session import SessionPermissions
from ba_tui.processes.limits import GIGABYTE
from ba_tui.resources import Places
from ba_tui.settings import Loaded
from ba_tui.tools.data.python_place import EXTRA, PythonPlace, interpreter, missing, python_memory
from ba_tui.tools.data_engine import temporary_place

NAME = "python kernel"
SHOWN = ("ipykernel", "pandas", "polars", "matplotlib")


def data_checks(loaded: Loaded, where: Places, folder: Path) -> Iterator[CheckResult]:
    """For a session in ``folder``."""
    settings = loaded.settings
    yield from engine_check(temporary_place(settings, where, folder))
    rules = all_rules(loaded.rules, settings.commands.domains)
    permissions = SessionPermissions(settings, where, Workspace(folder), rules, untrusted=False)
    if why := PythonPlace(permissions, None, settings, {"PATH": os.defpath}).lacking():
        fix = f"{EXTRA}; see ba guide python." if missing() else "See ba guide python."
        yield CheckResult(NAME, "warn", f"the tool python keeps no variables and asks, because {why}", fix)
        return
    memory = f"{python_memory(settings) / GIGABYTE:.1f} GB of memory"
    python = interpreter(folder)
    packages = ", ".join(_versions()) if python == Path(sys.executable) else "packages of its own"
    yield CheckResult(NAME, "ok", f"{python} with {packages}; {memory}")


def _versions() -> Iterator[str]:
    """What is installed beside ba."""
    for name in SHOWN:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
