"""All notices of this run of ba, the newest first."""

from __future__ import annotations

import time
from collections.abc import Iterable

from ba_tui.core.events import Notice
from ba_tui.core.text.wording import with_hint
from ba_tui.faces.tui.screens.report import ReportPane, ReportRow

KINDS = {"info": "", "warning": "ask", "error": "deny"}


class NoticeList(ReportPane):
    def __init__(self, notices: Iterable[Notice]) -> None:
        """``notices``: oldest first."""
        rows = [
            ReportRow((_clock(notice.at), notice.level, with_hint(notice.text, notice.hint)), KINDS[notice.level])
            for notice in reversed(list(notices))
        ]
        super().__init__("Notices", "", rows or [ReportRow(("No notices yet.",))])


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
