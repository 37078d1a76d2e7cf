"""The data of a session for faces: the engine, and files that the person exports or opens."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, get_args

from ba_tui.analysis.engine import Analysis, ExportFormat, Listener
from ba_tui.analysis.grounding.source_files import changed
from ba_tui.analysis.sources import Sources
from ba_tui.core.displays.charts import PICTURES, Chart, ChartRequest, PictureFormat
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.datasets import Exported, NeedsConfirmation, OutputFormat, SourceInfo
from ba_tui.core.ports.python import PythonSession
from ba_tui.core.ports.tables import Arrangement, Catalogue, ColumnProfile, Dataset, Finding, Page, QueryResult
from ba_tui.core.text.figures import SourceFile
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Workspace, is_secret
from ba_tui.permissions.verdicts import Deny, JudgedCall, Judgement
from ba_tui.sessions.results.artifacts import Artifacts
from ba_tui.tools.builtin.recall import ReadHistory, nothing_said
from ba_tui.tools.data.masking import Masking
from ba_tui.tools.editing.disk import place_file

ENDINGS: dict[str, PictureFormat] = {f".{name}": name for name in PICTURES}
PREVIEW_ROWS = 1_000
"""Rows of a source's table that a grid shows."""
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
    person asks for it."""

    workspace: Workspace
    writer: Tool
    judge: Callable[[JudgedCall], Judgement]

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


class SessionEngines(Protocol):
    """The engine of a session, its sources, and what a model may see of personal values."""

    @property
    def engine(self) -> Analysis: ...

    @property
    def sources(self) -> Sources: ...

    @property
    def masking(self) -> Masking: ...


class SessionData:
    """core.ports.datasets.Datasets over ``data``; ``results`` has what tools printed, ``history`` what was said."""

    def __init__(
        self,
        data: SessionEngines,
        rules: ExportRules,
        results: Artifacts,
        history: ReadHistory = nothing_said,
        python: PythonSession | None = None,
    ) -> None:
        self._analysis = data.engine
        self._sources = data.sources
        self._masking = data.masking
        self._rules = rules
        self._results = results
        self._history = history
        self.python = python

    @property
    def begun(self) -> bool:
        return self._analysis.begun

    async def catalogue(self) -> Catalogue:
        return await self._analysis.catalogue()

    async def register(
        self, source: str, *, part: str = "", on_progress: Listener | None = None
    ) -> tuple[Dataset, ...]:
        return await self._analysis.register(source, part=part, on_progress=on_progress)

    async def register_output(self, text: str, format: OutputFormat, ref: str | None = None) -> Dataset:
        file = await asyncio.to_thread(self._kept, text, format, ref)
        return (await self._analysis.register(str(file)))[0]

    def sources(self) -> tuple[SourceInfo, ...]:
        return tuple(
            SourceInfo(place.name, place.engine, self._sources.known_tables(place.name))
            for place in self._sources.places.values()
        )

    async def source_tables(self, source: str) -> tuple[str, ...]:
        return await self._sources.tables(source)

    async def preview(self, source: str, table: str) -> str:
        # The name comes from the source's own list.
        sql = f"SELECT * FROM {table} LIMIT {PREVIEW_ROWS}"  # noqa: S608
        return (await self._sources.query(source, sql)).handle

    async def unmask(self, column: str) -> None:
        await self._masking.allow(column)

    async def findings(self, name: str) -> tuple[Finding, ...]:
        return (await self._analysis.catalogue()).findings_of(name)

    async def mute(self, finding: Finding, *, muted: bool) -> None:
        found = await self._analysis.catalogue()
        files = next((each.files for each in found.datasets if each.name == finding.dataset), ())
        paths = [each.path for each in files]
        await asyncio.to_thread(self._analysis.muted.mute, finding.trap, paths, muted=muted)

    async def query(self, sql: str) -> QueryResult:
        return await self._analysis.query(sql)

    async def page(
        self, name: str, arrangement: Arrangement | None = None, *, offset: int = 0, limit: int = 100
    ) -> Page:
        return await self._analysis.page(name, arrangement, offset=offset, limit=limit)

    async def column(self, name: str, column: str, arrangement: Arrangement | None = None) -> ColumnProfile:
        return await self._analysis.column(name, column, arrangement)

    async def changed(self, files: Sequence[SourceFile]) -> tuple[str, ...]:
        return await asyncio.to_thread(changed, files)

    async def export(self, name: str, path: str, arrangement: Arrangement, *, confirmed: bool = False) -> Exported:
        kind = FORMATS.get(Path(path).suffix.lower())
        if kind is None:
            raise UsageError(f"{path} has no ending of a known format.", f"Known are {', '.join(FORMATS)}.")
        target = await self._target(path, confirmed=confirmed)
        async with self._analysis.exported(name, kind, arrangement) as file:
            return await self._placed(file, target, confirmed=confirmed)

    async def chart(self, wanted: ChartRequest, arrangement: Arrangement | None = None) -> Chart:
        return await self._analysis.charts.compute(wanted, arrangement)

    async def save_chart(self, chart: Chart, path: str, *, confirmed: bool = False) -> Exported:
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
        from ba_tui.tools.data.reports import ReportWriter, check_format, data_folder, reported_session  # noqa: PLC0415

        check_format(Path(path))
        target = await asyncio.to_thread(self._rules.target, path)
        shown = self._rules.workspace.shown(target)
        beside = data_folder(target)
        for each in (target, *((beside,) if beside.exists() else ())):
            if not confirmed and (why := await asyncio.to_thread(self._rules.concern, each)):
                raise NeedsConfirmation(f"{self._rules.workspace.shown(each)} {why}.")
        said = await asyncio.to_thread(reported_session, title, await self._history())
        with tempfile.TemporaryDirectory(prefix="ba-report-") as made:
            files = await ReportWriter(self._analysis).write(said, target, Path(made), on_progress)
            sizes = [
                await asyncio.to_thread(place_file, file, place, overwrite=True, shown=shown) for file, place in files
            ]
        return Exported(shown, sum(sizes))

    def _kept(self, text: str, format: OutputFormat, ref: str | None) -> Path:
        """A file of the engine's own with what a tool printed."""
        source = self._results.path(ref) if ref else None
        name = ref.rpartition("/")[2] if ref else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        file = self._analysis.inbox / f"output_{name[:8]}.{format}"
        if not file.exists():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if source:
                shutil.copyfile(source, file)
            else:
                file.write_text(text, encoding="utf-8", errors="replace")
        return file
