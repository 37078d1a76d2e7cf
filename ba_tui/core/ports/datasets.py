"""The data of a conversation as faces see it: what there is, rows of it, statistics, and files written of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias

from ba_tui.core.displays.charts import Chart, ChartRequest
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.python import PythonSession
from ba_tui.core.ports.tables import (
    Arrangement,
    Catalogue,
    ColumnProfile,
    Dataset,
    Finding,
    Page,
    Progress,
    QueryResult,
)
from ba_tui.core.text.figures import SourceFile
from ba_tui.core.values import frozen

OutputFormat: TypeAlias = Literal["csv", "jsonl"]


class NeedsConfirmation(UsageError):
    """An export would overwrite a file, or write outside of the session's folders."""


@frozen
class Exported:
    """A file that was written: its ``path`` for people, ``size`` in bytes."""

    path: str
    size: int


@frozen
class SourceInfo:
    """A database or engine of the person's settings. ``tables``: None before somebody listed them."""

    name: str
    engine: str
    tables: tuple[str, ...] | None = None


class DataSources(Protocol):
    """Databases and engines elsewhere. All but ``listed`` may raise BaError, whose words are one line for people."""

    def listed(self) -> Sequence[SourceInfo]:
        """The sources of the settings. Starts nothing."""
        ...

    async def tables(self, source: str) -> Sequence[str]:
        """Connect to a source and list its tables."""
        ...

    async def preview(self, source: str, table: str) -> str:
        """Query the first rows of a source's table; returns the handle of the result."""
        ...


class DataExports(Protocol):
    """Files that the person has written of data, where the rules allow it."""

    async def table(self, name: str, path: str, arrangement: Arrangement, *, confirmed: bool = False) -> Exported:
        """Write the rows of ``arrangement`` to ``path`` in the format of its ending.

        Raises:
            NeedsConfirmation: the person should say so first, and ``confirmed`` is False. UsageError: no format has
            this ending, or the path may not be written.
        """
        ...

    async def report(
        self,
        path: str,
        *,
        title: str,
        confirmed: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Exported:
        """Write questions, answers and results as a report, in the format of the ending of ``path``: to read (.html,
        .md), or to run again (.ipynb, .py, with a folder of data beside it). Raises as ``table`` does."""
        ...

    async def chart(self, chart: Chart, path: str, *, confirmed: bool = False) -> Exported:
        """Draw a chart into ``path``, which ends in .svg or .png. Raises as ``table``."""
        ...


class Datasets(Protocol):
    """Datasets and results of one session, by name. For the event loop; cancelling a request interrupts its query.

    All may raise BaError, whose words are one line for people.
    """

    @property
    def python(self) -> PythonSession | None:
        """Python code of the session with its variables; None where there is none."""
        ...

    @property
    def sources(self) -> DataSources: ...

    @property
    def exports(self) -> DataExports: ...

    @property
    def begun(self) -> bool:
        """Whether the session has data. Starts nothing."""
        ...

    async def catalogue(self) -> Catalogue: ...

    async def register(
        self, source: str, *, part: str = "", on_progress: Callable[[Progress], None] | None = None
    ) -> tuple[Dataset, ...]:
        """Read a file, a glob, or a sheet or table of a file; what is registered and did not change stays as it is."""
        ...

    async def register_output(self, text: str, format: OutputFormat, ref: str | None = None) -> Dataset:
        """Make a dataset of what a tool printed: ``text``, or the stored whole ``ref``."""
        ...

    async def unmask(self, column: str) -> None:
        """Let models see the values of a column, as TABLE.COLUMN, although they look personal. Kept in the settings."""
        ...

    async def findings(self, name: str) -> tuple[Finding, ...]:
        """The traps of a dataset or result, those that are muted marked."""
        ...

    async def mute(self, finding: Finding, *, muted: bool) -> None:
        """Tell the kind of a finding no more for its dataset, in this and later sessions, or tell it again."""
        ...

    async def query(self, sql: str) -> QueryResult:
        """Run one statement that only reads, and keep its rows as the next result."""
        ...

    async def page(
        self, name: str, arrangement: Arrangement | None = None, *, offset: int = 0, limit: int = 100
    ) -> Page: ...

    async def column(self, name: str, column: str, arrangement: Arrangement | None = None) -> ColumnProfile:
        """Statistics of a column, of the rows that ``arrangement`` lets through."""
        ...

    async def chart(self, wanted: ChartRequest, arrangement: Arrangement | None = None) -> Chart:
        """Compute a chart of the rows that ``arrangement`` lets through."""
        ...

    async def changed(self, files: Sequence[SourceFile]) -> tuple[str, ...]:
        """Return the paths of ``files`` that are not what they were when they were read."""
        ...
