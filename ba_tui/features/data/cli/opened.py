"""The engine of one ``ba data`` command: files to register, a line of progress, exit codes."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Coroutine, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ba_tui.cli.config import load, say
from ba_tui.cli.streams import open_input, write_output
from ba_tui.core.errors import UsageError
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import with_hint
from ba_tui.core.values import frozen
from ba_tui.processes.scratch import clear_scratch, scratch
from ba_tui.resources import places

if TYPE_CHECKING:
    from ba_tui.core.ports.tables import Progress, QueryResult
    from ba_tui.features.data.analysis.engine import Analysis, EnginePlace
    from ba_tui.features.data.analysis.errors import AnalysisError

STDIN = "-"
OK, USAGE, INFRASTRUCTURE, LIMIT, DENIED = range(5)
LIMITS = frozenset({"timeout", "resource_error"})
T = TypeVar("T")
Locale = Annotated[str, typer.Option(metavar="NAME", help="How tables write numbers: de_DE, en_GB, fr …")]


async def head(engine: Analysis, result: QueryResult, wanted: int) -> list[tuple[Any, ...]]:
    from ba_tui.features.data.analysis.engine import PAGE_ROWS  # noqa: PLC0415 - see query

    shown: list[tuple[Any, ...]] = list(result.head[:wanted])
    while len(shown) < min(wanted, result.rows):
        limit = min(PAGE_ROWS, wanted - len(shown))
        shown += (await engine.page(result.handle, offset=len(shown), limit=limit)).rows
    return shown


def export(data: OpenedData, handle: str, format: Any, output: Path | None) -> int:
    export = data.engine.exported(handle, format, on_progress=data.line.show)
    with data.run(export.__aenter__()).open("rb") as source:
        if output:
            write_output(output, source)
        else:
            sys.stdout.flush()
            shutil.copyfileobj(source, sys.stdout.buffer)
    return OK


def told(error: AnalysisError) -> int:
    """Say what failed; returns the exit code for it."""
    from ba_tui.features.data.analysis.errors import (  # noqa: PLC0415
        DataRefused,
        DataUnreadable,
        EngineFailed,
        QueryRefused,
        SourceFailed,
    )

    say(with_hint(str(error), error.hint))
    if isinstance(error, DataRefused | QueryRefused):
        return DENIED
    if isinstance(error, DataUnreadable | EngineFailed | SourceFailed):
        return INFRASTRUCTURE
    return LIMIT if error.kind in LIMITS else USAGE


class ProgressLine:
    """One line on stderr that says what is done; nothing where no person looks."""

    def __init__(self) -> None:
        self._shown = False

    def show(self, progress: Progress) -> None:
        if sys.stderr.isatty():
            share = f" {progress.share:.0%}" if progress.share is not None else ""
            sys.stderr.write(f"\r\x1b[K{paintable(progress.doing, newlines=False)}{share}")
            sys.stderr.flush()
            self._shown = True

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False


@frozen
class OpenedData:
    """The engine of one command, ``files`` to register, and the ``runner`` of its loop."""

    engine: Analysis
    place: EnginePlace
    files: Sequence[str]
    runner: asyncio.Runner
    line: ProgressLine

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What ``work`` returns. Ctrl+C cancels it and goes on as KeyboardInterrupt."""
        try:
            return self.runner.run(work)
        finally:
            self.line.clear()


@contextmanager
def opened_data(folder: Path, named: Sequence[str]) -> Generator[OpenedData]:
    """An engine for the files that are named, and those of ``folder``; all it kept is gone afterwards."""
    from ba_tui.features.data.analysis.engine import Analysis  # noqa: PLC0415 - see query
    from ba_tui.features.data.tools.data_engine import muted_traps, temporary_place  # noqa: PLC0415

    with scratch("stdin") as made, asyncio.Runner() as runner:
        files = [str(_stdin(made)) if name == STDIN else os.path.expanduser(name) for name in named]  # noqa: PTH111
        outside = [Path(folder, file).parent for file in files]
        settings, where = load(folder).settings, places()
        place = temporary_place(settings, where, folder, outside)
        engine = Analysis(place, muted_traps(where.state, settings))
        try:
            yield OpenedData(engine, place, files, runner, ProgressLine())
        finally:
            runner.run(engine.close())
            clear_scratch()


def _stdin(folder: Path) -> Path:
    """Standard input as a file, which the engine may read as often as it likes."""
    if sys.stdin.isatty():
        raise UsageError("Standard input is a terminal.", 'Pipe data in: cat sales.csv | ba data query "FROM stdin" -')
    file = folder / "stdin.csv"
    with file.open("wb") as target:
        shutil.copyfileobj(open_input(), target)
    return file
