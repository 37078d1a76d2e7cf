"""Reports: the status of the session, the doctor's checks, the notices of this run, the background shells."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.timer import Timer
from textual.widgets import Static

from ba_tui import __version__
from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import Notice
from ba_tui.core.ports.contributions import CheckResult
from ba_tui.core.ports.tools import Job, Jobs, Reader
from ba_tui.core.results import CommandText
from ba_tui.core.text.wording import byte_size, count, with_hint
from ba_tui.faces.tui.acts.port import Actions, inventory_of, needed
from ba_tui.faces.tui.inspector.model import InspectorValue, Whole
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.meters import filled, money, share, short_count, short_duration
from ba_tui.faces.tui.screens.list_screen import ListContent, ListRow, ListScreen
from ba_tui.faces.tui.screens.sheet import ReportPane, ReportRow, app_of
from ba_tui.faces.tui.session import MEANING

MORE = "/context · /cost · /config · /permissions · /doctor say more"


class StatusScreen(ReportPane):
    """Shows the present status."""

    def __init__(self, chat: Actions) -> None:
        super().__init__(f"ba {__version__}", MORE, [ReportRow(row) for row in status_rows(chat) if row[1]])


def status_rows(chat: Actions) -> list[tuple[str, str]]:
    """Return names with facts about the session. Reads no files."""
    services, conversation = chat.session.live
    ledger, turns = chat.status.ledger, len(chat.status.ledger.turns)
    session = f"{conversation.title or 'no title yet'}, {count(turns, 'turn')}" if chat.session.started else "empty"
    mode = chat.session.mode
    inventory = conversation.inventory
    jobs = [job for job in inventory.jobs.list() if job.state == "running"] if inventory.jobs else []
    problems = [notice for notice in services.notices if notice.level != "info"]
    try:
        window = conversation.model_info().window
    except BaError:
        window = 0
    used = f"{filled(ledger)} of {short_count(window)} tokens, {share(ledger.filled, window)} %" if window else ""
    return [
        ("Session", f"{session} ({conversation.id})"),
        ("Model", conversation.model + (f": {chat.turns.missing}" if chat.turns.missing else "")),
        ("Mode", f"{mode}: {MEANING[mode]}"),
        ("Folder", str(conversation.cwd)),
        ("More folders", ", ".join(map(str, chat.session.folders))),
        ("Trust", "not trusted: only reads (/trust)" if chat.session.reads_only else "this folder is trusted"),
        ("Read-only", f"open in {chat.session.read_only}" if chat.session.read_only else ""),
        ("Sandbox", inventory.confinement() or "not tried yet"),
        ("Context", used if ledger.filled else "nothing was sent yet"),
        ("Cost", f"{money(ledger.session.cost)} in this session, {money(ledger.turn.cost)} in the newest turn"),
        ("Background", count(len(jobs), "command") if jobs else ""),
        ("Notices", f"{count(len(problems), 'problem')} at the start: /notices" if problems else ""),
    ]


KINDS = {"ok": "allow", "warn": "ask", "fail": "deny"}
WORDS = {"ok": "ok", "warn": "look", "fail": "FAIL"}
KEYS = "↑ ↓ scroll · r check again · Esc close"
LOOKING = "Checking …"


class DoctorScreen(ReportPane):
    """``checks`` gives the findings, and is iterated in threads."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("r", "again", "Check again")]

    def __init__(self, checks: Callable[[], Iterator[CheckResult]]) -> None:
        super().__init__("Doctor", LOOKING, ())
        self.add_class("-long")
        self.keys = KEYS
        self._checks = checks

    def on_mount(self) -> None:
        self.action_again()

    def action_again(self) -> None:
        """Check all of it again. Closing the screen ends it after the check that runs."""
        self.run_worker(self._look, group="doctor", exclusive=True, exit_on_error=False)

    async def _look(self) -> None:
        found: list[CheckResult] = []
        findings = self._checks()
        self._show(found, LOOKING)
        try:
            while finding := await asyncio.to_thread(next, findings, None):
                found.append(finding)
                self._show(found, f"{LOOKING} {count(len(found), 'check')} so far")
        except BaError as error:
            self._show(found, f"The doctor stopped: {error.with_hint}")
            return
        self._show(found, _verdict(found))

    def _show(self, found: list[CheckResult], lead: str) -> None:
        self.query_one(".lead", Static).update(lead)
        self.rows = [row for finding in found for row in _rows(finding)]
        self.redraw()


def _verdict(found: list[CheckResult]) -> str:
    states = [finding.state for finding in found]
    failed, odd = states.count("fail"), states.count("warn")
    checks = count(len(found), "check")
    if not failed and not odd:
        return f"All is well: {checks}."
    parts = [f"{failed} failed" if failed else "", f"{odd} to look at" if odd else ""]
    return f"{checks}: {', '.join(filter(None, parts))}."


def _rows(finding: CheckResult) -> list[ReportRow]:
    rows = [ReportRow((finding.name, WORDS[finding.state], finding.text), KINDS[finding.state])]
    if finding.fix and finding.state != "ok":
        rows.append(ReportRow(("", "", f"→ {finding.fix}")))
    return rows + [ReportRow(("", "", f"  {line}")) for line in finding.detail.splitlines()]


NOTICE_KINDS = {"info": "", "warning": "ask", "error": "deny"}


class NoticeList(ReportPane):
    def __init__(self, notices: Iterable[Notice]) -> None:
        """``notices``: oldest first."""
        rows = [
            ReportRow(
                (_clock(notice.at), notice.level, with_hint(notice.text, notice.hint)), NOTICE_KINDS[notice.level]
            )
            for notice in reversed(list(notices))
        ]
        super().__init__("Notices", "", rows or [ReportRow(("No notices yet.",))])


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def status(chat: Actions, _: str) -> None:
    chat.ba.push_screen(StatusScreen(chat))


def doctor(chat: Actions, _: str) -> None:
    services, _conversation = chat.session.live
    if services.checks is None:
        raise UsageError("The checks can't run here.", "Run `ba doctor` in a shell.")
    chat.ba.push_screen(DoctorScreen(services.checks))


def notices(chat: Actions, _: str) -> None:
    chat.ba.push_screen(NoticeList(chat.notices.kept))


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
