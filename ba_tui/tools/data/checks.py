"""What the doctor says of data: the engine and Python's kernel, each started once for a moment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ba_tui.analysis.checks import KERNEL, engine_check, kernel_check
from ba_tui.analysis.engine import Analysis
from ba_tui.core.ports.rooms import CheckResult
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.rules.rulebook import all_rules
from ba_tui.permissions.session import SessionPermissions
from ba_tui.resources import Places
from ba_tui.settings import Loaded
from ba_tui.tools.data.python_kernels import Kernels
from ba_tui.tools.data.python_place import EXTRA, PythonPlace, missing
from ba_tui.tools.data_engine import temporary_place


def data_checks(loaded: Loaded, where: Places, folder: Path) -> Iterator[CheckResult]:
    """For a session in ``folder``."""
    settings = loaded.settings
    place = temporary_place(settings, where, folder)
    yield from engine_check(place)
    rules = all_rules(loaded.rules, settings.commands.domains)
    permissions = SessionPermissions(settings, where, Workspace(folder), rules, untrusted=False)
    python = PythonPlace(permissions, None, settings, {"PATH": os.defpath})
    if why := python.lacking():
        fix = f"{EXTRA}; see ba guide python" if missing() else "See ba guide python."
        yield CheckResult(KERNEL, "warn", f"the tool python keeps no variables, because {why}", fix)
        return
    yield from kernel_check(Kernels(python, Analysis(place)).main)
    python.close()
