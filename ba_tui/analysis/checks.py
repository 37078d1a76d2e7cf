"""What the doctor says of the data engine and of Python's kernel: each is started once, for a moment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from ba_tui.analysis.engine import Analysis, EnginePlace
from ba_tui.analysis.errors import AnalysisError
from ba_tui.analysis.kernel.client import PythonKernel
from ba_tui.analysis.kernel.values import ShownText
from ba_tui.core.errors import BaError
from ba_tui.core.ports.rooms import CheckResult
from ba_tui.core.text.wording import one_line
from ba_tui.processes.limits import GIGABYTE

NAME, KERNEL = "data engine", "python kernel"
VERSIONS = """
import sys
from importlib.metadata import PackageNotFoundError, version
found = ["Python " + sys.version.split()[0]]
for name in ("pandas", "polars", "matplotlib"):
    try:
        found.append(name + " " + version(name))
    except PackageNotFoundError:
        pass
print(", ".join(found))
"""


def engine_check(place: EnginePlace) -> Iterator[CheckResult]:
    """Start the engine in a temporary ``place`` and run one query."""
    started = time.monotonic()
    try:
        engine = asyncio.run(_version(Analysis(place)))
    except AnalysisError as error:
        yield CheckResult(NAME, "fail", str(error), error.hint or "Install ba again.")
        return
    limits, seconds = place.limits, time.monotonic() - started
    used = f"{limits.memory / GIGABYTE:.1f} GB of memory, {limits.threads} threads"
    yield CheckResult(NAME, "ok", f"{engine}, ready in {seconds:.1f} s; {used}")


def kernel_check(kernel: PythonKernel) -> Iterator[CheckResult]:
    """Start a kernel and ask it for its versions."""
    started = time.monotonic()
    try:
        versions = asyncio.run(_versions(kernel))
    except BaError as error:
        yield CheckResult(KERNEL, "fail", str(error), error.hint or "See ba guide python.")
        return
    yield CheckResult(KERNEL, "ok", f"{versions}, ready in {time.monotonic() - started:.1f} s")


async def _versions(kernel: PythonKernel) -> str:
    try:
        ran = await kernel.run(VERSIONS, 20)
    finally:
        await kernel.close()
    return one_line("".join(each.text for each in ran.shown if isinstance(each, ShownText)), 200)


async def _version(analysis: Analysis) -> str:
    try:
        return (await analysis.query("SELECT 1", timeout=20)).provenance.engine
    finally:
        await analysis.close()
