"""The traps of one table in full, each with the query that proves it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import OptionList, Static

from ba_tui.core.errors import BaError
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.ports.tables import Finding
from ba_tui.core.ports.traps import KINDS
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count, one_line
from ba_tui.faces.tui.grid.feed import RowFeed
from ba_tui.faces.tui.screens.picker import Picker, PickerChoice, app_of

TRAP_KEYS = "Enter shows the proof as a grid · m mute or unmute · Esc close"
LONGEST = 600


def warning_line(findings: Sequence[Finding], key: str) -> str:
    """One line with the number of warnings and the first of them; empty where nothing is to be said."""
    told = [each for each in findings if not each.muted]
    muted = len(findings) - len(told)
    if not told:
        return f"{count(muted, 'muted warning')} · {key} lists" if muted else ""
    return f"! {count(len(told), 'warning')} · {key} lists · {one_line(told[0].message, LONGEST)}"


class GridWanted(Message):
    """The rows of ``table`` should be shown."""

    def __init__(self, datasets: Datasets, table: str) -> None:
        super().__init__()
        self.datasets = datasets
        self.table = table


class WarningLine(Static):
    """Hidden where there is no warning about the table of ``feed``."""

    DEFAULT_CSS = """
    WarningLine { height: 1; color: $text-warning; display: none; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, datasets: Datasets, feed: RowFeed) -> None:
        super().__init__(classes="traps", markup=False)
        self._datasets = datasets
        self._feed = feed
        self._findings: Sequence[Finding] = ()

    def on_mount(self) -> None:
        self._look()

    def open(self) -> bool:
        """Show the list of the warnings; False where there are none."""
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


class TrapList(Picker):
    """Enter runs the proof of a finding as a query and opens its rows. Dismissed with None."""

    FILTERED: ClassVar[bool] = False
    DEFAULT_CSS = """
    TrapList .detail { height: auto; max-height: 10; padding: 1 1 0 1; color: $text; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("m", "mute", "Mute or unmute")]

    def __init__(self, datasets: Datasets, table: str, findings: Sequence[Finding]) -> None:
        super().__init__(f"{table}: {count(len(findings), 'warning')}", [], keys=TRAP_KEYS)
        self._datasets = datasets
        self._findings = sorted(findings, key=lambda each: each.muted)
        self._list()

    def on_mount(self) -> None:
        self.query_one(".sheet").mount(Static(classes="detail", markup=False), before=self.query_one(".keys"))

    def _list(self) -> None:
        self.choices = [
            PickerChoice(str(number), (one_line(each.message, LONGEST), "muted" if each.muted else ""))
            for number, each in enumerate(self._findings)
        ]

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        if self.highlighted:
            each = self._findings[int(self.highlighted)]
            words = f"{each.dataset}: {KINDS.get(each.trap, each.trap)} ({each.trap})\n{each.message}\n{each.proof}"
            self.query_one(".detail", Static).update(paintable(words[:2_000]))

    def choose(self, id: str) -> None:
        self.say("Running the proof …")
        self.run_worker(partial(self._prove, self._findings[int(id)]), exclusive=True, exit_on_error=False)

    async def _prove(self, finding: Finding) -> None:
        try:
            result = await self._datasets.query(finding.proof)
        except BaError as error:
            self.say(error.with_hint)
            return
        self.say(TRAP_KEYS)
        self.post_message(GridWanted(self._datasets, result.handle))

    def action_mute(self) -> None:
        """Report the kind of the chosen finding no more for its dataset, or report it again."""
        if self.highlighted:
            self.run_worker(
                partial(self._mute, self._findings[int(self.highlighted)]), exclusive=True, exit_on_error=False
            )

    async def _mute(self, finding: Finding) -> None:
        muted = not finding.muted
        try:
            await self._datasets.mute(finding, muted=muted)
        except BaError as error:
            self.say(error.with_hint)
            return
        self._findings = [
            replace(each, muted=muted) if (each.trap, each.dataset) == (finding.trap, finding.dataset) else each
            for each in self._findings
        ]
        self._list()
        self.refill()
        what = f"{finding.trap} is {'muted' if muted else 'reported again'} for {finding.dataset}"
        self.say(f"{what}, also in later sessions. {'m unmutes it.' if muted else ''}")
