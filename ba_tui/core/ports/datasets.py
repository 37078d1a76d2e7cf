"""Ports of a conversation's data: datasets and results, sources, exports, and the Python session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.tables import (
    Arrangement,
    Catalogue,
    ColumnProfile,
    Dataset,
    FoundRows,
    Page,
    Progress,
    QueryResult,
    TrapFinding,
)
from ba_tui.core.results import Chart, ChartRequest
from ba_tui.core.values import frozen


@frozen
class Variable:
    """A Python variable. ``shape`` is its size, or its value if short."""

    name: str
    type: str
    shape: str = ""


@frozen
class PythonFile:
    """A file that Python code wrote, by its path in the files folder, or a copy of it. ``size`` in bytes."""

    name: str
    size: int


@frozen
class PythonState:
    """``running``: a process holds variables. ``busy``: code runs, so variables are not listed."""

    running: bool = False
    busy: bool = False
    variables: Sequence[Variable] = ()
    files: Sequence[PythonFile] = ()


class PythonSession(Protocol):
    """The Python session. For the event loop. All methods may raise BaError with a one-line message."""

    async def state(self) -> PythonState:
        """Return variables and files. Starts nothing."""
        ...

    async def keep(self, name: str) -> str:
        """Store the DataFrame in variable ``name`` as a result of the session, and return its handle."""
        ...

    async def reset(self) -> bool:
        """End the process and discard its variables. Returns False if none ran."""
        ...

    async def save(self, name: str, path: str = "") -> PythonFile:
        """Copy the file ``name`` to a new file ``path`` in the session's folders, by default under the same name."""
        ...


OutputFormat: TypeAlias = Literal["csv", "jsonl"]


class NeedsConfirmation(UsageError):
    """An export would overwrite a file, or write outside the session's folders."""


@frozen
class ExportedFile:
    """A file that was written: its ``path`` for people, ``size`` in bytes."""

    path: str
    size: int


@frozen
class SourceInfo:
    """A database or engine in the user's settings. ``tables`` is None until they were listed."""

    name: str
    engine: str
    tables: tuple[str, ...] | None = None


class DataSources(Protocol):
    """External databases and engines. All methods but ``listed`` may raise BaError with a one-line message."""

    def listed(self) -> Sequence[SourceInfo]:
        """Return the configured sources. Does not connect."""
        ...

    async def tables(self, source: str) -> Sequence[str]:
        """Connect to a source and return its tables."""
        ...

    async def preview(self, source: str, table: str) -> str:
        """Query the first rows of a source's table; returns the handle of the result."""
        ...


class DataExports(Protocol):
    """Exports of data that the user requests, as far as rules allow them."""

    async def table(self, name: str, path: str, arrangement: Arrangement, *, confirmed: bool = False) -> ExportedFile:
        """Write the rows of ``arrangement`` to ``path``, in the format of its suffix.

        Raises:
            NeedsConfirmation: the user must confirm, and ``confirmed`` is False.
            UsageError: no format has this suffix, or the path may not be written.
        """
        ...

    async def report(
        self,
        path: str,
        *,
        title: str,
        confirmed: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> ExportedFile:
        """Write questions, answers and results as a report, in the format of the suffix of ``path``: to read (.html,
        .md), or to run again (.ipynb, .py, with a data folder next to it). Raises as ``table``."""
        ...

    async def chart(self, chart: Chart, path: str, *, confirmed: bool = False) -> ExportedFile:
        """Draw a chart into ``path``, a .svg or .png file. Raises as ``table``."""
        ...


class Datasets(Protocol):
    """Datasets and results of one session, by name. For the event loop; cancelling a request interrupts its query. All
    methods may raise BaError with a one-line message."""

    @property
    def python(self) -> PythonSession | None:
        """Return the Python session; None if there is none."""
        ...

    @property
    def sources(self) -> DataSources: ...

    @property
    def exports(self) -> DataExports: ...

    @property
    def begun(self) -> bool:
        """Return whether the session has data. Starts nothing."""
        ...

    async def catalogue(self) -> Catalogue: ...

    async def register(
        self, source: str, *, part: str = "", on_progress: Callable[[Progress], None] | None = None
    ) -> tuple[Dataset, ...]:
        """Read a file, a glob, or a sheet or table of a file. Datasets whose files did not change stay registered."""
        ...

    async def register_output(self, text: str, format: OutputFormat, ref: str | None = None) -> Dataset:
        """Make a dataset of tool output: ``text``, or the stored output ``ref``."""
        ...

    async def unmask(self, column: str) -> None:
        """Let models see the values of a column (TABLE.COLUMN) although they look personal. Saved in the settings."""
        ...

    async def findings(self, name: str) -> tuple[TrapFinding, ...]:
        """Return the traps of a dataset or result, with muted ones marked."""
        ...

    async def mute(self, finding: TrapFinding, *, muted: bool) -> None:
        """Mute or unmute a finding's kind for its dataset, in this session and later ones."""
        ...

    async def query(self, sql: str) -> QueryResult:
        """Run one read-only statement and store its rows as the next result."""
        ...

    async def page(
        self, name: str, arrangement: Arrangement | None = None, *, offset: int = 0, limit: int = 100
    ) -> Page: ...

    async def column(self, name: str, column: str, arrangement: Arrangement | None = None) -> ColumnProfile:
        """Return statistics of a column over the rows of ``arrangement``."""
        ...

    async def chart(self, wanted: ChartRequest, arrangement: Arrangement | None = None) -> Chart:
        """Compute a chart of the rows of ``arrangement``."""
        ...

    async def find(
        self, name: str, ranges: Sequence[tuple[float, float]], *, most: int, timeout: float
    ) -> tuple[FoundRows, ...]:
        """Find numbers within ``ranges`` in a result: at most ``most`` rows for each range and column. Raises BaError,
        also after ``timeout`` seconds."""
        ...
