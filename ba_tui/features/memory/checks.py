"""Doctor checks of memory: its log, its index, and whether the search by meaning works."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

from ba_tui.core.errors import BaError
from ba_tui.core.ports.contributions import CheckResult
from ba_tui.core.ports.memory import MemoryState
from ba_tui.core.text.wording import byte_size, count
from ba_tui.feature import CheckContext
from ba_tui.features.memory.engine.setup import BY_WORDS, StoreSetup, setup_of
from ba_tui.features.memory.tools.names import named_settings
from ba_tui.resources import folder_slug

NAME = "memory"
PATIENCE = 30.0
"""Seconds for the helper to start and to answer."""
GUIDE = "See ba guide memory."


def memory_checks(context: CheckContext) -> Iterator[CheckResult]:
    """Open the project's memory, search it once, and yield the results."""
    loaded, where, root = context.loaded, context.where, context.root
    named, notices = named_settings(loaded, where, root)
    settings, project = named.memory, folder_slug(root)
    for notice in notices:
        yield CheckResult(NAME, "warn", notice.text, notice.hint)
    if not settings.enabled:
        yield CheckResult(NAME, "ok", "off: memory.enabled is false")
        return
    setup = setup_of(settings, project, lambda name: os.environ.get(name, ""))
    try:
        state = asyncio.run(_searched(where.memory, project, setup))
    except (BaError, TimeoutError) as error:
        hint = error.hint if isinstance(error, BaError) else "Run ba memory rebuild."
        yield CheckResult(NAME, "fail", str(error) or f"no answer within {PATIENCE:g} s", hint)
        return
    yield _judged(state, setup)
    if state.skipped:
        what = f"{count(state.skipped, 'line')} of the log cannot be read and do not count"
        yield CheckResult(NAME, "warn", what, f"They are kept in {where.memory}, in files named log.rejected.jsonl.")


def _judged(state: MemoryState, setup: StoreSetup) -> CheckResult:
    held = f"{count(state.entries, 'entry')}, {byte_size(state.size)}" if state.entries else "nothing stored yet"
    if setup.embedder == BY_WORDS:
        return CheckResult(NAME, "ok", f"{held}; searched by words, as memory.embedder is off")
    if not state.entries:
        return CheckResult(NAME, "ok", held)
    if state.why:
        return CheckResult(NAME, "warn", f"{held}; not searched by meaning. {state.why}", GUIDE)
    return CheckResult(NAME, "ok", f"{held}; searched by meaning ({setup.embedder})")


async def _searched(folder: Path, project: str, setup: StoreSetup) -> MemoryState:
    from ba_tui.features.memory.engine.recall import SearchRequest  # noqa: PLC0415 - see below
    from ba_tui.features.memory.engine.store import MemoryStore  # noqa: PLC0415 - not before there is something to open

    store = MemoryStore(folder, project, setup)
    try:
        async with asyncio.timeout(PATIENCE):
            await store.search(SearchRequest("memory", 1, explicit=True))
            return await store.state()
    finally:
        await store.close()
