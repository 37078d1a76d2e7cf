"""The data of a conversation as faces see it: what there is, rows of it, statistics, and files written of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.tables import Arrangement, Catalogue, ColumnProfile, Dataset, Page, Progress
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


class Datasets(Protocol):
    """Datasets and results of one session, by name. For the event loop; cancelling a request interrupts its query.

    All may raise BaError, whose words are one line for people.
    """

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

    async def page(
        self, name: str, arrangement: Arrangement | None = None, *, offset: int = 0, limit: int = 100
    ) -> Page: ...

    async def column(self, name: str, column: str, arrangement: Arrangement | None = None) -> ColumnProfile:
        """Statistics of a column, of the rows that ``arrangement`` lets through."""
        ...

    async def changed(self, files: Sequence[SourceFile]) -> tuple[str, ...]:
        """Return the paths of ``files`` that are not what they were when they were read."""
        ...

    async def export(self, name: str, path: str, arrangement: Arrangement, *, confirmed: bool = False) -> Exported:
        """Write the rows of ``arrangement`` to ``path`` in the format of its ending.

        Raises:
            NeedsConfirmation: the person should say so first, and ``confirmed`` is False. UsageError: no format has
            this ending, or the path may not be written.
        """
        ...
