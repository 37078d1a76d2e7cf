"""Checks of ``ba doctor``: the data engine, the Python kernel, and each source."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ba_tui.core.ports.contributions import CheckResult
from ba_tui.feature import CheckContext
from ba_tui.features.data.analysis.engine import Analysis, EnginePlace
from ba_tui.features.data.analysis.errors import AnalysisError
from ba_tui.features.data.analysis.nearby import missing_packages
from ba_tui.features.data.tools.data_access import temporary_place
from ba_tui.features.data.tools.python_kernels import EXTRA, PythonPlace, interpreter, python_memory
from ba_tui.features.data.tools.sources import Sources, session_sources
from ba_tui.permissions.answers import all_rules
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.session import SessionPermissions
from ba_tui.processes.values import GIGABYTE
from ba_tui.resources import UserFolders
from ba_tui.settings import LoadedSettings

ENGINE_NAME = "data engine"


def engine_check(place: EnginePlace) -> Iterator[CheckResult]:
    """Start the engine in the temporary ``place``, run one query and end it."""
    started = time.monotonic()
    try:
        engine = asyncio.run(_version(Analysis(place)))
    except AnalysisError as error:
        yield CheckResult(ENGINE_NAME, "fail", str(error), error.hint or "Install ba again.")
        return
    limits, seconds = place.limits, time.monotonic() - started
    used = f"{limits.memory / GIGABYTE:.1f} GB of memory, {limits.threads} threads"
    yield CheckResult(ENGINE_NAME, "ok", f"{engine}, ready in {seconds:.1f} s; {used}")


async def _version(analysis: Analysis) -> str:
    try:
        return (await analysis.query("SELECT 1", timeout=20)).provenance.engine
    finally:
        await analysis.close()


NAME = "python kernel"
SHOWN = ("ipykernel", "pandas", "polars", "matplotlib")
PATIENCE = 30.0
"""Seconds for all sources together."""


def data_checks(context: CheckContext) -> Iterator[CheckResult]:
    """Check the engine and the kernel, then all sources concurrently."""
    loaded, where, folder = context.loaded, context.where, context.folder
    settings = loaded.settings
    yield from engine_check(temporary_place(settings, where, folder))
    yield _kernel(loaded, where, folder)
    if settings.sources:
        place = temporary_place(settings, where, folder)
        yield from asyncio.run(_checked(session_sources(Analysis(place), place, settings, folder)))


def _kernel(loaded: LoadedSettings, where: UserFolders, folder: Path) -> CheckResult:
    """Check whether a Python kernel could run for a session in ``folder``, without starting one."""
    settings = loaded.settings
    rules = all_rules(loaded.rules, settings.commands.domains)
    permissions = SessionPermissions(settings, where, Workspace(folder), rules, untrusted=False)
    if why := PythonPlace(permissions, None, settings, {"PATH": os.defpath}).lacking():
        fix = f"{EXTRA}; see ba guide python." if missing_packages() else "See ba guide python."
        return CheckResult(NAME, "warn", f"the tool python keeps no variables and asks, because {why}", fix)
    memory = f"{python_memory(settings) / GIGABYTE:.1f} GB of memory"
    python = interpreter(folder)
    packages = ", ".join(_versions()) if python == Path(sys.executable) else "its own packages"
    return CheckResult(NAME, "ok", f"{python} with {packages}; {memory}")


def _versions() -> Iterator[str]:
    """Yield name and version of the installed data packages."""
    for name in SHOWN:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            continue


async def _checked(sources: Sources) -> list[CheckResult]:
    try:
        return await asyncio.gather(*(_one(sources, name) for name in sources.places))
    finally:
        await sources.close()


async def _one(sources: Sources, name: str) -> CheckResult:
    place, title, started = sources.places[name], f"source {name}", time.monotonic()
    try:
        async with asyncio.timeout(PATIENCE):
            version = await sources.check(name)
    except TimeoutError:
        return CheckResult(title, "fail", f"{place.engine} did not answer within {PATIENCE:g} s", "Check its address.")
    except AnalysisError as error:
        return CheckResult(
            title, "fail", str(error).removeprefix(f"{name}: "), error.hint or "Check sources in your settings."
        )
    how = "statements that change data ask" if place.writable else "read-only"
    return CheckResult(title, "ok", f"{version}, connected in {time.monotonic() - started:.1f} s; {how}")
