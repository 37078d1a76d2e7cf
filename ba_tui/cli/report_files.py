"""A session as a report: questions, answers and results, to read or to run again."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ba_tui.core.errors import UsageError, run_loop
from ba_tui.core.ports.datasets import Datasets, Exported
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.services import Library
from ba_tui.core.text.wording import byte_size

PROGRAMS = frozenset({"ipynb", "py"})
DOCUMENTS = frozenset({"md", "html"})


def write_report(library: Library, info: SessionInfo, format: str, output: Path | None) -> str:
    """Write the report of a session to ``output``; returns what to tell. An older report there is replaced.

    Raises:
        UsageError: no file is named, or its ending is not the format's.
    """
    if format not in PROGRAMS | DOCUMENTS:
        raise UsageError(f"A report can't be written as {format}.", "Use md, html, ipynb or py.")
    if output is None:
        raise UsageError("A report needs a file.", f"Add --output report.{format}.")
    if output.suffix.lower() != f".{format}":
        raise UsageError(f"{output.name} does not end in .{format}.", f"Name it {output.stem}.{format}.")
    done = run_loop(_written(library, info, output))
    return f"Wrote {output} ({byte_size(done.size)})."


async def _written(library: Library, info: SessionInfo, output: Path) -> Exported:
    conversation = await asyncio.to_thread(library.view, info.id)
    try:
        datasets = conversation.inventory.feature(Datasets)
        if datasets is None:
            raise UsageError("This session can't be opened for its data.")
        target = str(Path.cwd() / output.expanduser())
        return await datasets.exports.report(target, title=info.title, confirmed=True)
    finally:
        await conversation.close()
