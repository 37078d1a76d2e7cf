"""The traps of one table in full, each with the query that proves it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Static

from ba_tui.core.errors import BaError
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.ports.settings import KINDS
from ba_tui.core.ports.tables import TrapFinding
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count, one_line
from ba_tui.faces.tui.grid.feed import RowFeed
from ba_tui.faces.tui.screens.list_screen import ListRow, ListScreen
from ba_tui.faces.tui.screens.sheet import app_of

LONGEST = 600


def warning_line(findings: Sequence[TrapFinding], key: str) -> str:
    """Return one line with the number of warnings and the first one; empty if there are none."""
    told = [each for each in findings if not each.muted]
    muted = len(findings) - len(told)
    if not told:
        return f"{count(muted, 'muted warning')} · {key} lists" if muted else ""
    return f"! {count(len(told), 'warning')} · {key} lists · {one_line(told[0].message, LONGEST)}"


@dataclass
class GridWanted(Message):
    """Request to show the rows of ``table``."""

    datasets: Datasets
    table: str


class WarningLine(Static):
    """Hidden if there is no warning about the table of ``feed``."""

    DEFAULT_CSS = """
    WarningLine { height: 1; color: $text-warning; display: none; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, datasets: Datasets, feed: RowFeed) -> None:
        super().__init__(classes="traps", markup=False)
        self._datasets = datasets
        self._feed = feed
        self._findings: Sequence[TrapFinding] = ()

    def on_mount(self) -> None:
        self._look()

    def open(self) -> bool:
        """Show the list of warnings; return False if there are none."""
        if not self._findings:
            return False
        shown = TrapList(self._datasets, self._feed.table, self._findings)
        app_of(self.screen).push_screen(shown, lambda _: self._look())
        return True

    def _look(self) -> None:
        self.run_worker(self._read, exclusive=True, exit_on_error=False)

    async def _read(self) -> None:
        with suppress(BaError):
            self._findings = await self._datasets.findings(self._feed.table)
        line = warning_line(self._findings, "w")
        self.display = bool(line)
        self.update(paintable(line, newlines=False))


class TrapList(ListScreen[TrapFinding]):
    """Enter runs the proof of a finding as a query and opens its rows. Dismissed with None."""

    FILTERED: ClassVar[bool] = False
    DETAIL: ClassVar[bool] = True
    ENTER: ClassVar[str] = "show the proof as a grid"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("m", "mute", "mute or unmute")]

    def __init__(self, datasets: Datasets, table: str, findings: Sequence[TrapFinding]) -> None:
        ordered = sorted(findings, key=lambda each: each.muted)
        super().__init__(f"{table}: {count(len(findings), 'warning')}", list(map(_row, range(len(ordered)), ordered)))
        self._datasets = datasets

    def detail(self, row: ListRow[TrapFinding]) -> str:
        finding = row.value
        if finding is None:
            return ""
        kind = f"{finding.dataset}: {KINDS.get(finding.trap, finding.trap)} ({finding.trap})"
        return f"{kind}\n{finding.message}\n{finding.proof}"[:2_000]

    def choose(self, row: ListRow[TrapFinding]) -> None:
        if row.value:
            self.say("Running the proof …")
            self.run_worker(partial(self._prove, row.value), exclusive=True, exit_on_error=False)

    async def _prove(self, finding: TrapFinding) -> None:
        try:
            result = await self._datasets.query(finding.proof)
        except BaError as error:
            self.say(error.with_hint)
            return
        self.say("")
        self.post_message(GridWanted(self._datasets, result.handle))

    def action_mute(self) -> None:
        """Mute the kind of the finding at the cursor for its dataset, or report it again."""
        if self.item:
            self.run_worker(partial(self._mute, self.item), exclusive=True, exit_on_error=False)

    async def _mute(self, finding: TrapFinding) -> None:
        muted = not finding.muted
        try:
            await self._datasets.mute(finding, muted=muted)
        except BaError as error:
            self.say(error.with_hint)
            return
        changed = (
            replace(each, muted=muted) if (each.trap, each.dataset) == (finding.trap, finding.dataset) else each
            for each in (row.value for row in self.rows)
            if each
        )
        self.rows = list(map(_row, range(len(self.rows)), changed))
        self.refill()
        what = f"{finding.trap} is {'muted' if muted else 'reported again'} for {finding.dataset}"
        self.say(f"{what}, also in later sessions. {'m unmutes it.' if muted else ''}")


def _row(place: int, finding: TrapFinding) -> ListRow[TrapFinding]:
    cells = (one_line(finding.message, LONGEST), "muted" if finding.muted else "")
    return ListRow(str(place), cells, value=finding)
