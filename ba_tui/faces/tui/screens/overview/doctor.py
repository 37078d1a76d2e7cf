"""The doctor's report: each finding as soon as it is known, what to do about it, and a line that says how far it is.

What is looked at is the doctor's affair; here a thread asks and rows are shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Static

from ba_tui.core.errors import BaError
from ba_tui.core.ports.rooms import CheckResult
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.screens.report import ReportPane, ReportRow

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
        self._checks = checks

    def on_mount(self) -> None:
        self.query_one(".keys", Static).update(KEYS)
        self.action_again()

    def action_again(self) -> None:
        """Check all of it anew. Closing the screen ends it after the check that runs."""
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
