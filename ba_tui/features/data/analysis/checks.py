"""The doctor's check of the data engine: starts it, runs one query, and ends it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from ba_tui.core.ports.rooms import CheckResult
from ba_tui.features.data.analysis.engine import Analysis, EnginePlace
from ba_tui.features.data.analysis.errors import AnalysisError
from ba_tui.processes.limits import GIGABYTE

NAME = "data engine"


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


async def _version(analysis: Analysis) -> str:
    try:
        return (await analysis.query("SELECT 1", timeout=20)).provenance.engine
    finally:
        await analysis.close()
