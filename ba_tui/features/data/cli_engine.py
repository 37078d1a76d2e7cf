"""The engine of one ``ba data`` command, its progress line and exit codes, and rows as text."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import typer
from rich.cells import cell_len

from ba_tui.cli.config import load, say
from ba_tui.cli.streams import open_input, write_output
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.tables import Column, Dataset, Progress, QueryResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import one_line, with_hint
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import PAGE_ROWS, Analysis, EnginePlace
from ba_tui.features.data.analysis.errors import (
    AnalysisError,
    DataRefused,
    DataUnreadable,
    EngineFailed,
    QueryRefused,
    SourceFailed,
)
from ba_tui.features.data.tools.data_access import muted_traps, temporary_place
from ba_tui.processes.scratch import clear_scratch, scratch
from ba_tui.resources import places

STDIN = "-"
OK, USAGE, INFRASTRUCTURE, LIMIT, DENIED = range(5)
LIMITS = frozenset({"timeout", "resource_error"})
T = TypeVar("T")
Locale = Annotated[str, typer.Option(metavar="NAME", help="Number format of tables: de_DE, en_GB, fr …")]


async def head(engine: Analysis, result: QueryResult, wanted: int) -> list[tuple[Any, ...]]:
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


def print_error(error: AnalysisError) -> int:
    """Print an error; return its exit code."""
    say(with_hint(str(error), error.hint))
    if isinstance(error, DataRefused | QueryRefused):
        return DENIED
    if isinstance(error, DataUnreadable | EngineFailed | SourceFailed):
        return INFRASTRUCTURE
    return LIMIT if error.kind in LIMITS else USAGE


class ProgressLine:
    """A progress line on stderr; silent unless stderr is a terminal."""

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
    """The engine of one command, the ``files`` to register, and the ``runner`` of its event loop."""

    engine: Analysis
    place: EnginePlace
    files: Sequence[str]
    runner: asyncio.Runner
    line: ProgressLine

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of ``work``. Ctrl+C cancels it and raises KeyboardInterrupt."""
        try:
            return self.runner.run(work)
        finally:
            self.line.clear()

    def register(self, file: str, part: str = "") -> tuple[Dataset, ...]:
        return self.run(self.engine.register(file, part=part, on_progress=self.line.show))

    def query(self, sql: str) -> QueryResult:
        return self.run(self.engine.query(sql, on_progress=self.line.show))


@contextmanager
def opened_data(folder: Path, named: Sequence[str]) -> Generator[OpenedData]:
    """Yield an engine for the ``named`` files and those of ``folder``. Its data is removed afterwards."""
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
    """Save standard input as a file, because the engine may read it several times."""
    if sys.stdin.isatty():
        raise UsageError("Standard input is a terminal.", 'Pipe data in: cat sales.csv | ba data query "FROM stdin" -')
    file = folder / "stdin.csv"
    with file.open("wb") as target:
        shutil.copyfileobj(open_input(), target)
    return file


# Numbers in the notation of a locale: 1.234,5 in German, 1,234.5 in English. Only for printed tables.

FigureFormat: TypeAlias = Callable[[Any, Column], str | None]
"""Returns the text of a value; None to print it unchanged."""
GROUPED = 10_000
"""Smaller whole numbers get no thousands separators, as many are years."""
_NAME_OF_KEY = regex(r"(?i)(?:^|_|\b)(?:id|key|code|no|nr|number|year|jahr|zip|plz)$|id$")


def figure_format(locale: str) -> FigureFormat:
    """Return the format of ``locale``, such as ``de_DE`` or ``en-US``. Ids and years stay unchanged.

    Raises:
        UsageError: the locale is unknown, or the package babel is missing.
    """
    try:
        from babel import Locale, UnknownLocaleError  # noqa: PLC0415 - an extra
        from babel.numbers import format_decimal  # noqa: PLC0415
    except ImportError as error:
        raise UsageError("A locale needs the package babel.", "Run pip install 'ba-tui[locale]'.") from error
    try:
        known = Locale.parse(locale.replace("-", "_"))
    except (UnknownLocaleError, ValueError) as error:
        raise UsageError(f"There is no locale {locale!r}.", "Write it as de_DE, en_GB or fr.") from error

    def formatted(value: Any, column: Column) -> str | None:
        if value is None or not column.numeric or _NAME_OF_KEY.search(column.name):
            return None
        number = Decimal(str(value))
        if not number.is_finite() or (column.kind == "integer" and abs(number) < GROUPED):
            return None
        digits = max(0, -int(number.as_tuple().exponent))
        # Keep all digits: trailing zeros of a decimal show its precision.
        pattern = f"#,##0{'.' if digits else ''}{'0' * digits}"
        return format_decimal(number, format=pattern, locale=known)

    return formatted


LONGEST = 60
"""Most characters of a cell in aligned columns."""
GAP = "  "


def plainly(value: Any, column: Column) -> None:
    """Print every value unchanged."""
    del value, column


def table_lines(
    columns: Sequence[Column], rows: Sequence[tuple[Any, ...]], figures: FigureFormat = plainly
) -> Iterator[str]:
    """Yield aligned columns; numbers are right-aligned."""
    cells = [[one_line(column.name, LONGEST) for column in columns]]
    cells += [[one_line(text, LONGEST) for text in _texts(columns, row, figures)] for row in rows]
    widths = [max(cell_len(row[place]) for row in cells) for place in range(len(columns))]
    rule = ["─" * width for width in widths]
    for row in (cells[0], rule, *cells[1:]):
        padded = [_padded(text, widths[place], right=columns[place].numeric) for place, text in enumerate(row)]
        yield GAP.join(padded).rstrip()


def markdown_lines(
    columns: Sequence[Column], rows: Sequence[tuple[Any, ...]], figures: FigureFormat = plainly
) -> Iterator[str]:
    """Yield a Markdown table with uncut cells."""
    yield _marked(column.name for column in columns)
    yield f"| {' | '.join('---:' if column.numeric else '---' for column in columns)} |"
    for row in rows:
        yield _marked(_texts(columns, row, figures))


def _texts(columns: Sequence[Column], row: tuple[Any, ...], figures: FigureFormat) -> Iterator[str]:
    for column, value in zip(columns, row, strict=True):
        yield figures(value, column) or _text(value)


def _marked(texts: Any) -> str:
    escaped = (" ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|") for text in texts)
    return f"| {' | '.join(escaped)} |"


def _padded(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)
