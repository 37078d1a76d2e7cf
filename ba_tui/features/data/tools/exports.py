"""Files that a person has written of the session's data: tables, charts and reports, where the rules allow it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from ba_tui.core.displays.charts import PICTURES, Chart, PictureFormat
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.datasets import Exported, NeedsConfirmation
from ba_tui.core.ports.tables import Arrangement
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import Analysis, ExportFormat, Listener
from ba_tui.permissions.paths import Workspace, is_secret
from ba_tui.permissions.verdicts import Deny, JudgedCall, Judgement
from ba_tui.processes.scratch import scratch
from ba_tui.tools.builtin.recall import ReadHistory
from ba_tui.tools.editing.disk import place_file
from ba_tui.tools.editing.placing import place_together
from ba_tui.write_ahead import WriteAhead

ENDINGS: dict[str, PictureFormat] = {f".{name}": name for name in PICTURES}
FORMATS: dict[str, ExportFormat] = {f".{name}": name for name in get_args(ExportFormat)}


def picture_format(path: str) -> PictureFormat:
    """The format of a picture by its ending. Raises UsageError for any other."""
    format = ENDINGS.get(Path(path).suffix.lower())
    if format is None:
        raise UsageError(f"{path} has no ending of a known format.", f"Known are {', '.join(ENDINGS)}.")
    return format


@frozen
class ExportRules:
    """Where the person's exports may go: what the rules allow ``writer`` to write. What would be asked is allowed: the
    person asks for it. ``ahead`` lists the files of an export until all of them are written."""

    workspace: Workspace
    writer: Tool
    judge: Callable[[JudgedCall], Judgement]
    ahead: WriteAhead

    def target(self, path: str) -> Path:
        """Return the absolute path. Raises BaError where nothing may be written. Blocks."""
        target = self.workspace.resolve(path)
        judged = self.judge(JudgedCall(self.writer, {"path": str(target), "content": ""}, self.workspace.root))
        if isinstance(judged, Deny):
            raise UsageError(f"{self.workspace.shown(target)} may not be written: {judged.reason}", judged.hint)
        if is_secret(target):
            raise UsageError(f"{self.workspace.shown(target)} is a file for secrets.", "Choose another name.")
        return target

    def concern(self, target: Path) -> str:
        """Why the person should say so once more; empty when nothing is to be said. Blocks."""
        away = "" if self.workspace.contains(target) else "lies outside the folders of this session"
        return " and ".join(filter(None, (away, "exists already" if os.path.lexists(target) else "")))


class SessionExports:
    """core.ports.datasets.DataExports. ``history``: what was said, for reports."""

    def __init__(self, analysis: Analysis, rules: ExportRules, history: ReadHistory) -> None:
        self._analysis = analysis
        self._rules = rules
        self._history = history

    async def table(self, name: str, path: str, arrangement: Arrangement, *, confirmed: bool = False) -> Exported:
        kind = FORMATS.get(Path(path).suffix.lower())
        if kind is None:
            raise UsageError(f"{path} has no ending of a known format.", f"Known are {', '.join(FORMATS)}.")
        target = await self._target(path, confirmed=confirmed)
        async with self._analysis.exported(name, kind, arrangement) as file:
            return await self._placed(file, target, confirmed=confirmed)

    async def chart(self, chart: Chart, path: str, *, confirmed: bool = False) -> Exported:
        format = picture_format(path)
        target = await self._target(path, confirmed=confirmed)
        async with self._analysis.charts.picture(chart, format) as file:
            return await self._placed(file, target, confirmed=confirmed)

    async def _target(self, path: str, *, confirmed: bool) -> Path:
        """Where a file may be written. Raises BaError where it may not, or the person should say so first."""
        target = await asyncio.to_thread(self._rules.target, path)
        if not confirmed and (why := await asyncio.to_thread(self._rules.concern, target)):
            raise NeedsConfirmation(f"{self._rules.workspace.shown(target)} {why}.")
        return target

    async def _placed(self, file: Path, target: Path, *, confirmed: bool) -> Exported:
        shown = self._rules.workspace.shown(target)
        return Exported(shown, await asyncio.to_thread(place_file, file, target, overwrite=confirmed, shown=shown))

    async def report(
        self, path: str, *, title: str, confirmed: bool = False, on_progress: Listener | None = None
    ) -> Exported:
        from ba_tui.features.data.tools.reports import ReportWriter, check_format, data_folder, reported_session  # noqa: PLC0415

        check_format(Path(path))
        target = await asyncio.to_thread(self._rules.target, path)
        shown = self._rules.workspace.shown(target)
        beside = data_folder(target)
        for each in (target, *((beside,) if beside.exists() else ())):
            if not confirmed and (why := await asyncio.to_thread(self._rules.concern, each)):
                raise NeedsConfirmation(f"{self._rules.workspace.shown(each)} {why}.")
        said = await asyncio.to_thread(reported_session, title, await self._history())
        with scratch("report") as made:
            files = await ReportWriter(self._analysis).write(said, target, made, on_progress)
            size = await asyncio.to_thread(
                place_together, files, self._rules.ahead, "the export of a report", self._rules.workspace.shown
            )
        return Exported(shown, size)
