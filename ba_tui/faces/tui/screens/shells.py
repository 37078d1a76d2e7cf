"""The background shells: what runs, for how long, how much it printed; its output, and its end pressed twice.

They are started and ended elsewhere; this asks and shows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.timer import Timer

from ba_tui.core.errors import BaError
from ba_tui.core.ports.jobs import Job, Jobs
from ba_tui.core.ports.results import Reader
from ba_tui.core.results import CommandText
from ba_tui.core.text.wording import byte_size
from ba_tui.faces.tui.inspector.model import Inspected, Whole
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.screens.picker import Picker, PickerChoice, app_of
from ba_tui.faces.tui.transcript.rows import duration

KEYS = "Enter show output · x stop · Esc close"
EMPTY = "No background commands. Ctrl+B moves a running command here."


def state_of(job: Job) -> str:
    """In words: running, exit code, killed."""
    if job.state == "ended":
        return f"exit {job.exit_code}" if job.exit_code is not None else "ended"
    return job.state


class ShellList(Picker):
    """Newest first. What runs is drawn again once a second, and only then."""

    FILTERED = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("x,delete", "end", "End")]

    def __init__(self, jobs: Jobs, stored: Reader | None) -> None:
        super().__init__("Background shells", (), keys=KEYS)
        self.empty = EMPTY
        self._stored = stored
        self._jobs = jobs
        self._ending = ""
        self._tick: Timer | None = None
        self._deaf: Callable[[], None] | None = None

    def on_mount(self) -> None:
        self._deaf = self._jobs.listen(self.reload)
        self.reload()

    def on_unmount(self) -> None:
        if self._deaf:
            self._deaf()

    def reload(self) -> None:
        """Show what there is now."""
        jobs = list(self._jobs.list())
        self.choices = [self._choice(job) for job in reversed(jobs)]
        if self.is_mounted:
            self.refill()
        running = any(job.state == "running" for job in jobs)
        if running and self._tick is None:
            self._tick = self.set_interval(1.0, self.reload)
        elif not running and self._tick is not None:
            self._tick.stop()
            self._tick = None

    def _choice(self, job: Job) -> PickerChoice:
        spent = max(0.0, (job.until or time.time()) - job.since)
        command = " ".join(job.command.split())
        return PickerChoice(job.id, (command, state_of(job), duration(spent), byte_size(job.size)), job.id)

    def action_step(self, by: int) -> None:
        super().action_step(by)
        if self._ending:
            self._ending = ""
            self.say(self.keys)

    def choose(self, id: str) -> None:
        job = next((job for job in self._jobs.list() if job.id == id), None)
        if job is None:
            return
        try:
            output = self._jobs.output(id)
        except BaError as error:
            self.say(error.with_hint)
            return
        whole = Whole(self._stored, job.ref) if self._stored and job.ref else None
        state = "running" if job.state == "running" else "failed" if job.failed else "ok"
        shown = CommandText(job.command, "", output, job.exit_code)
        title = f"{job.id} {' '.join(job.command.split())}"
        spent = max(0.0, (job.until or time.time()) - job.since)
        value = Inspected(title, {}, shown, output, state, spent, state_of(job), whole)
        app_of(self).push_screen(InspectorScreen(value))

    def action_end(self) -> None:
        id = self.highlighted
        job = next((job for job in self._jobs.list() if job.id == id), None)
        if job is None:
            return
        if job.state != "running":
            self.say(f"{job.id} has ended already.")
        elif self._ending != job.id:
            self._ending = job.id
            self.say(f"Press x again to stop {job.id} and its child processes")
        else:
            self._ending = ""
            self.say(f"Stopping {job.id} …")
            self.run_worker(partial(self._end, job.id), group="end", exit_on_error=False)

    async def _end(self, id: str) -> None:
        try:
            await self._jobs.end(id)
        except BaError as error:
            self.say(error.with_hint)
            return
        self.say(f"{id} was ended.")
        self.reload()
