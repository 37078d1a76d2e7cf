"""The data of a session for faces: the engine, and files that the person exports or opens."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

from ba_tui.analysis.engine import Analysis, ExportFormat, Listener
from ba_tui.analysis.grounding.source_files import changed
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.datasets import Exported, NeedsConfirmation, OutputFormat
from ba_tui.core.ports.tables import Arrangement, Catalogue, ColumnProfile, Dataset, Page
from ba_tui.core.text.figures import SourceFile
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Workspace, is_secret
from ba_tui.permissions.verdicts import Deny, JudgedCall, Judgement
from ba_tui.sessions.results.artifacts import Artifacts
from ba_tui.tools.editing.disk import place_file

FORMATS: dict[str, ExportFormat] = {f".{name}": name for name in get_args(ExportFormat)}


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


class SessionData:
    """core.ports.datasets.Datasets over ``analysis``; ``results`` has what tools printed."""

    def __init__(self, analysis: Analysis, rules: ExportRules, results: Artifacts) -> None:
        self._analysis = analysis
        self._rules = rules
        self._results = results

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
        target = await asyncio.to_thread(self._rules.target, path)
        shown = self._rules.workspace.shown(target)
        if not confirmed and (why := await asyncio.to_thread(self._rules.concern, target)):
            raise NeedsConfirmation(f"{shown} {why}.")
        async with self._analysis.exported(name, kind, arrangement) as file:
            size = await asyncio.to_thread(place_file, file, target, overwrite=confirmed, shown=shown)
        return Exported(shown, size)

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
