"""The data of a session for faces: the engine, and files that the person exports or opens."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ba_tui.core.displays.charts import Chart, ChartRequest
from ba_tui.core.ports.datasets import OutputFormat, SourceInfo
from ba_tui.core.ports.python import PythonSession
from ba_tui.core.ports.tables import Arrangement, Catalogue, ColumnProfile, Dataset, Finding, Page, QueryResult
from ba_tui.core.text.figures import SourceFile
from ba_tui.features.data.analysis.engine import Analysis, Listener
from ba_tui.features.data.analysis.sources import Sources
from ba_tui.features.data.tools.exports import ExportRules, SessionExports
from ba_tui.features.data.tools.masking import Masking
from ba_tui.sessions.results.artifacts import Artifacts
from ba_tui.tools.builtin.recall import ReadHistory, nothing_said

PREVIEW_ROWS = 1_000
"""Rows of a source's table that a grid shows."""


class SessionSources:
    """core.ports.datasets.DataSources."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def listed(self) -> tuple[SourceInfo, ...]:
        return tuple(
            SourceInfo(place.name, place.engine, self._sources.known_tables(place.name))
            for place in self._sources.places.values()
        )

    async def tables(self, source: str) -> tuple[str, ...]:
        return await self._sources.tables(source)

    async def preview(self, source: str, table: str) -> str:
        # The name comes from the source's own list.
        sql = f"SELECT * FROM {table} LIMIT {PREVIEW_ROWS}"  # noqa: S608
        return (await self._sources.query(source, sql)).handle


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
        self._masking = data.masking
        self._results = results
        self.sources = SessionSources(data.sources)
        self.exports = SessionExports(data.engine, rules, history)
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
        from ba_tui.features.data.analysis.grounding.source_files import changed  # noqa: PLC0415 - asked when an answer is opened

        return await asyncio.to_thread(changed, files)

    async def chart(self, wanted: ChartRequest, arrangement: Arrangement | None = None) -> Chart:
        return await self._analysis.charts.compute(wanted, arrangement)

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
