"""Background shells: run time and amount of output of each; open the output, or stop the shell by pressing twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.timer import Timer

from ba_tui.core.errors import BaError
from ba_tui.core.ports.tools import Job, Jobs, Reader
from ba_tui.core.results import CommandText
from ba_tui.core.text.wording import byte_size
from ba_tui.faces.tui.acts.port import Actions, inventory_of, needed
from ba_tui.faces.tui.inspector.model import InspectorValue, Whole
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.meters import short_duration
from ba_tui.faces.tui.screens.list_screen import ListContent, ListRow, ListScreen
from ba_tui.faces.tui.screens.sheet import app_of


def state_of(job: Job) -> str:
    """Return the state in words: running, exit code, killed."""
    if job.state == "ended":
        return f"exit {job.exit_code}" if job.exit_code is not None else "ended"
    return job.state


class ShellList(ListScreen[Job]):
    """Newest first. The list is drawn again once a second while a command runs."""

    FILTERED: ClassVar[bool] = False
    ENTER: ClassVar[str] = "show output"
    EMPTY: ClassVar[str] = "No background commands. Ctrl+B moves a running command here."
    BINDINGS: ClassVar[list[BindingType]] = [Binding("x,delete", "end", "stop")]

    def __init__(self, jobs: Jobs, stored: Reader | None) -> None:
        super().__init__("Background shells")
        self._stored = stored
        self._jobs = jobs
        self._tick: Timer | None = None
        self._stop_listening: Callable[[], None] | None = None

    def on_mount(self) -> None:
        self._stop_listening = self._jobs.listen(self.draw)

    def on_unmount(self) -> None:
        if self._stop_listening:
            self._stop_listening()

    async def load(self) -> None:
        self.draw()

    def draw(self) -> None:
        """Show the present shells."""
        jobs = list(self._jobs.list())
        if self.is_mounted:
            self.show(ListContent(list(map(_job_row, reversed(jobs)))))
        running = any(job.state == "running" for job in jobs)
        if running and self._tick is None:
            self._tick = self.set_interval(1.0, self.draw)
        elif not running and self._tick is not None:
            self._tick.stop()
            self._tick = None

    def choose(self, row: ListRow[Job]) -> None:
        job = row.value
        if job is None:
            return
        try:
            output = self._jobs.output(job.id)
        except BaError as error:
            self.say(error.with_hint)
            return
        whole = Whole(self._stored, job.ref) if self._stored and job.ref else None
        state = "running" if job.state == "running" else "failed" if job.failed else "ok"
        shown = CommandText(job.command, "", output, job.exit_code)
        title = f"{job.id} {' '.join(job.command.split())}"
        value = InspectorValue(title, {}, shown, output, state, _seconds(job), state_of(job), whole)
        app_of(self).push_screen(InspectorScreen(value))

    def action_end(self) -> None:
        job = self.item
        if job is None:
            return
        if job.state != "running":
            self.say(f"{job.id} has ended already.")
        elif self.confirmed(job.id, f"Press x again to stop {job.id} and its child processes"):
            self.say(f"Stopping {job.id} …")
            self.perform(partial(self._jobs.end, job.id), f"{job.id} was ended.")


def _job_row(job: Job) -> ListRow[Job]:
    cells = (" ".join(job.command.split()), state_of(job), short_duration(_seconds(job)), byte_size(job.size))
    return ListRow(job.id, cells, job.id, value=job)


def _seconds(job: Job) -> float:
    """Return how long it has run."""
    return max(0.0, (job.until or time.time()) - job.since)


def shells(chat: Actions, __: str) -> None:
    inventory = inventory_of(chat)
    jobs = needed(inventory.jobs, "This session can't run commands in the background.")
    chat.ba.push_screen(ShellList(jobs, inventory.results))
