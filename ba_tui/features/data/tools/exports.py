"""Exports of session data: tables, charts, reports, and results of COPY … TO."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar, get_args

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.datasets import ExportedFile, NeedsConfirmation
from ba_tui.core.ports.sessions import ReadHistory
from ba_tui.core.ports.tables import Arrangement
from ba_tui.core.results import PICTURES, Chart, PictureFormat
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import byte_size
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import Analysis, ExportFormat, Listener
from ba_tui.permissions.paths import Workspace, is_secret
from ba_tui.permissions.verdicts import Deny, JudgedCall, Judgement
from ba_tui.processes.scratch import scratch
from ba_tui.tools.editing.disk import place_file
from ba_tui.tools.editing.transaction import place_together
from ba_tui.write_ahead import WriteAhead

T = TypeVar("T")
ENDINGS: dict[str, PictureFormat] = {f".{name}": name for name in PICTURES}
FORMATS: dict[str, ExportFormat] = {f".{name}": name for name in get_args(ExportFormat)}


def picture_format(path: str) -> PictureFormat:
    """Return the picture format of a file name. Raises UsageError for unknown endings."""
    return _format(path, ENDINGS)


def _format(path: str, known: Mapping[str, T]) -> T:
    format = known.get(Path(path).suffix.lower())
    if format is None:
        raise UsageError(f"{path} has no ending of a known format.", f"Known are {', '.join(known)}.")
    return format


@frozen
class ExportRules:
    """The rules for exports by the user: a path is allowed unless a rule denies ``writer`` to write it; asking is
    unnecessary, as the user requested the export. ``ahead`` logs the files of an export until all are written."""

    workspace: Workspace
    writer: Tool
    judge: Callable[[JudgedCall], Judgement]
    ahead: WriteAhead

    def target(self, path: str) -> Path:
        """Return the absolute path. Raises BaError when it may not be written. Blocks."""
        target = self.workspace.resolve(path)
        judged = self.judge(JudgedCall(self.writer, {"path": str(target), "content": ""}, self.workspace.root))
        if isinstance(judged, Deny):
            raise UsageError(f"{self.workspace.shown(target)} may not be written: {judged.reason}", judged.hint)
        if is_secret(target):
            raise UsageError(f"{self.workspace.shown(target)} is a file for secrets.", "Choose another name.")
        return target

    def concern(self, target: Path) -> str:
        """Return why the user must confirm writing ``target``; empty when no confirmation is needed. Blocks."""
        away = "" if self.workspace.contains(target) else "lies outside the folders of this session"
        return " and ".join(filter(None, (away, "exists already" if os.path.lexists(target) else "")))

    def new_file(self, path: str) -> Path:
        """Return the path of a new file. Blocks. Raises UsageError: the ending is unknown, the path is denied, or the
        file exists."""
        _format(path, FORMATS)
        target = self.target(path)
        if target.exists() or target.is_symlink():
            shown = self.workspace.shown(target)
            raise UsageError(f"{shown} exists already, and a query replaces no file.", "Choose another name.")
        return target


@frozen
class SessionExports:
    """Implements core.ports.datasets.DataExports. ``history`` returns the events that reports quote."""

    analysis: Analysis
    rules: ExportRules
    history: ReadHistory

    async def table(self, name: str, path: str, arrangement: Arrangement, *, confirmed: bool = False) -> ExportedFile:
        kind = _format(path, FORMATS)
        target = await self._target(path, confirmed=confirmed)
        async with self.analysis.exported(name, kind, arrangement) as file:
            return await self._placed(file, target, confirmed=confirmed)

    async def chart(self, chart: Chart, path: str, *, confirmed: bool = False) -> ExportedFile:
        format = picture_format(path)
        target = await self._target(path, confirmed=confirmed)
        async with self.analysis.picture(chart, format) as file:
            return await self._placed(file, target, confirmed=confirmed)

    async def _target(self, path: str, *, confirmed: bool) -> Path:
        """Return the path to write. Raises BaError when it is denied or needs confirmation."""
        target = await asyncio.to_thread(self.rules.target, path)
        if not confirmed and (why := await asyncio.to_thread(self.rules.concern, target)):
            raise NeedsConfirmation(f"{self.rules.workspace.shown(target)} {why}.")
        return target

    async def _placed(self, file: Path, target: Path, *, confirmed: bool) -> ExportedFile:
        shown = self.rules.workspace.shown(target)
        return ExportedFile(shown, await asyncio.to_thread(place_file, file, target, overwrite=confirmed, shown=shown))

    async def report(
        self, path: str, *, title: str, confirmed: bool = False, on_progress: Listener | None = None
    ) -> ExportedFile:
        from ba_tui.features.data.tools import reports  # noqa: PLC0415 - few sessions export a report

        reports.check_format(Path(path))
        target = await asyncio.to_thread(self.rules.target, path)
        shown = self.rules.workspace.shown(target)
        beside = reports.data_folder(target)
        for each in (target, *((beside,) if beside.exists() else ())):
            if not confirmed and (why := await asyncio.to_thread(self.rules.concern, each)):
                raise NeedsConfirmation(f"{self.rules.workspace.shown(each)} {why}.")
        said = await asyncio.to_thread(reports.said_in, title, await self.history())
        with scratch("report") as made:
            files = await reports.write_report(self.analysis, said, target, made, on_progress)
            size = await asyncio.to_thread(
                place_together, files, self.rules.ahead, "the export of a report", self.rules.workspace.shown
            )
        return ExportedFile(shown, size)


# COPY … TO in a query: the rows become a result, which is exported to a new file like any other.

_COPY = regex(
    r"(?is)\s*copy\s+(?:\((?P<query>.*)\)|(?P<table>[\w.\"]+))\s+to\s+'(?P<file>[^']+)'\s*"
    r"(?:\(\s*format\s+'?(?P<format>\w+)'?\s*(?:,\s*header(?:\s+true)?\s*)?\))?\s*;?\s*"
)


def copy_to(sql: str) -> tuple[str, str] | None:
    """Parse a COPY … TO into the query of its rows and its file; None for other statements, including COPY with further
    options."""
    found = _COPY.fullmatch(sql)
    if found is None or (found["format"] and not found["file"].lower().endswith(f".{found['format'].lower()}")):
        return None
    return found["query"] or f"FROM {found['table']}", found["file"]


async def write_copy(analysis: Analysis, rules: ExportRules, path: str, handle: str) -> str:
    """Write the result ``handle`` to a new file and return a line for the model. Raises BaError."""
    target = await asyncio.to_thread(rules.new_file, path)
    shown = rules.workspace.shown(target)
    async with analysis.exported(handle, FORMATS[target.suffix.lower()]) as file:
        size = await asyncio.to_thread(place_file, file, target, overwrite=False, shown=shown)
    return f"Written to {shown} ({byte_size(size)})."
