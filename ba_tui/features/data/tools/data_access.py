"""What of a session's data may be read: files by the permission rules, personal values masked, secrets learned; and the
folder and limits of the engine that reads it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ba_tui.core.effects import READING
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.tables import Column, Personal, Provenance, QueryResult, Row
from ba_tui.core.results import ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.card import MASKS, personal_kind
from ba_tui.features.data.analysis.engine import MUTED, Analysis, ColumnTexts, EngineLimits, EnginePlace, MutedTraps
from ba_tui.features.data.analysis.errors import AnalysisError
from ba_tui.features.data.analysis.files import DataFiles
from ba_tui.features.data.analysis.metrics import Metrics, metric_folders
from ba_tui.ingress import Ingress
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.sandbox.confinement import Sandbox, limits_for, sandbox_for
from ba_tui.permissions.secrets.disguises import KnownSearch
from ba_tui.permissions.secrets.hard_links import secret_file
from ba_tui.permissions.secrets.scanner import find
from ba_tui.permissions.sql import classify
from ba_tui.permissions.trust.grants import Trust
from ba_tui.permissions.verdicts import Ask, Deny, JudgedCall, Judgement
from ba_tui.processes.scratch import scratch_path
from ba_tui.processes.values import GIGABYTE, Confinement, WorkerSettings
from ba_tui.resources import UserFolders
from ba_tui.settings import Settings

FOLDER = "analysis"
MOST_MEMORY = 4 * GIGABYTE
AROUND = 2 * GIGABYTE
"""Bytes of memory for the helper in addition to DuckDB's limit."""
AWAY = "it lies outside the folders of this session; add its folder with --add-dir"
KEPT = "it may contain secrets"


def muted_traps(state: Path, settings: Settings) -> MutedTraps:
    """Return the traps muted by the settings and by the user."""
    return MutedTraps(state / MUTED, settings.analysis.mute_traps)


def engine_place(folder: Path | None, settings: Settings, files: DataFiles, sandbox: Sandbox) -> EnginePlace:
    """Return the engine's place: below the session's ``folder``, or a temporary one when that is None. Creates and
    starts nothing."""
    own = folder / FOLDER if folder else scratch_path("data")
    limits = engine_limits(settings)
    rlimits = replace(limits_for(settings), memory=2 * limits.memory + AROUND, file_size=None).for_seconds()
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8"}
    worker = WorkerSettings(own, environment, rlimits, partial(_confined, sandbox, own))
    return EnginePlace(own, worker, files, limits, temporary=folder is None)


def agreed_metrics(where: UserFolders, ingress: Ingress) -> Metrics:
    """Return the user's metric definitions and, when the project is trusted, the project's."""
    root = ingress.root
    folders = metric_folders(where.config, root, lambda: Trust(where).trusted(root))
    return Metrics(folders, lambda owner: lambda path, limit: ingress.raw(path, limit, owner))


def temporary_place(settings: Settings, where: UserFolders, folder: Path, beside: Iterable[Path] = ()) -> EnginePlace:
    """Return a place that is removed when its engine closes, for files of ``folder`` and the folders ``beside``."""
    workspace = Workspace(folder, tuple(beside))

    def refused(path: Path) -> str:
        if not workspace.contains(path):
            return "it lies outside this folder; name it behind the query"
        return _kept(path, workspace)

    return engine_place(None, settings, DataFiles(workspace.resolve, refused), sandbox_for(settings, where, workspace))


def engine_limits(settings: Settings) -> EngineLimits:
    """Return the engine's limits in bytes and seconds."""
    options = settings.analysis
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    memory = int(options.memory_gb * GIGABYTE) or min(MOST_MEMORY, machine // 4)
    threads = options.threads or (len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1)
    return EngineLimits(memory, threads, int(options.disk_gb * GIGABYTE), options.max_rows, options.query_seconds)


@frozen
class DataAccess:
    """The files that the rules let ``reader`` read as data; files with secrets are refused."""

    workspace: Workspace
    reader: Tool
    judge: Callable[[JudgedCall], Judgement]

    def files(self) -> DataFiles:
        """Return the files that may be registered. A rule that asks does not refuse: the user has named the file, or
        approved the call."""
        return DataFiles(self.workspace.resolve, self._refused)

    def _refused(self, path: Path) -> str:
        workspace = self.workspace
        if not (workspace.contains(path) or workspace.lends(path)):
            return AWAY
        judged = self._judged(str(path))
        return judged.reason if isinstance(judged, Deny) else _kept(path, workspace)

    async def concern(self, args: Mapping[str, Any]) -> str:
        """Return why the user must approve a query that reads the files it names; empty when no approval is needed."""
        return await asyncio.to_thread(self._asks, str(args["sql"]))

    def _asks(self, sql: str) -> str:
        return next((why for file in classify(sql).files if (why := self.asks(file))), "")

    def asks(self, path: str) -> str:
        """Return why the user must approve reading ``path`` as data; empty when no approval is needed. Blocks."""
        judged = self._judged(path)
        return judged.reason if isinstance(judged, Ask) else ""

    def _judged(self, path: str) -> Judgement:
        return self.judge(JudgedCall(self.reader, {"path": path}, self.workspace.root))


def _kept(path: Path, workspace: Workspace) -> str:
    """Return why a file with secrets is refused as data; empty for other files and unreadable ones."""
    try:
        return KEPT if secret_file(path, path.stat(), workspace) else ""
    except OSError:
        return ""


def _confined(sandbox: Sandbox, own: Path) -> Confinement | None:
    # Plain: DuckDB opens only files that were checked, so it may run where the sandbox can't hide every secret.
    return sandbox.confine(replace(READING, writable=(own,), plain=True), originals=True)


_ENTRY = regex(r"[^\s.]+(?:\.[^\s.]+)*\.[^.]+")


class ColumnMasks:
    """The columns that look personal but may be shown to the model: ``unmasked`` from the settings, as TABLE.COLUMN,
    and those that the user allows later. ``keep`` saves an entry (blocks, may raise BaError)."""

    def __init__(self, unmasked: Iterable[str], analysis: Analysis, keep: Callable[[str], object]) -> None:
        self._allowed = {entry.lower() for entry in unmasked}
        self._analysis = analysis
        self._keep = keep

    async def allow(self, column: str) -> None:
        """Allow the values of ``column``, as TABLE.COLUMN, from now on. Raises BaError."""
        if not _ENTRY.fullmatch(column):
            raise UsageError("Name one column as TABLE.COLUMN.", "As in /unmask customers.mail")
        await asyncio.to_thread(self._keep, column)
        self._allowed.add(column.lower())

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the allowed columns of ``table``, a dataset or a source's table."""
        allowed = (entry.rpartition(".") for entry in self._allowed)
        return tuple(column for owner, _, column in allowed if _covers(owner, table.lower()))

    async def masked(self, result: QueryResult) -> QueryResult:
        """Return ``result`` with personal values of its first rows masked, and a note about it."""
        rows, notes = await self.rows(result.columns, result.head, result.provenance)
        return replace(result, head=rows, notes=(*result.notes, *notes))

    async def rows(
        self, columns: Sequence[Column], rows: Sequence[Row], provenance: Provenance
    ) -> tuple[tuple[Row, ...], tuple[str, ...]]:
        """Return ``rows`` with personal values masked, and a note for the model."""
        personal: dict[int, Personal] = {}
        for place, column in enumerate(columns):
            if kind := personal_kind(column, [row[place] for row in rows if row[place] is not None]):
                personal[place] = kind
        if not personal:
            return tuple(rows), ()
        used = await self._used(provenance)
        allowed = {column for table in used for column in self.columns(table)}
        masks = {place: MASKS[kind] for place, kind in personal.items() if columns[place].name.lower() not in allowed}
        if not masks:
            return tuple(rows), ()
        made = tuple(
            tuple(
                mask if (mask := masks.get(place)) and value is not None else value for place, value in enumerate(row)
            )
            for row in rows
        )
        names = ", ".join(columns[place].name for place in masks)
        owner = used[0] if used else "TABLE"
        first = columns[next(iter(masks))].name
        return made, (
            f"values of {names} look personal and are masked here; the user sees them, and can show them to you with "
            f"/unmask {owner}.{first}",
        )

    async def _used(self, provenance: Provenance) -> Sequence[str]:
        """Return the datasets and sources of a result, including those of results that it was computed from."""
        found = [each.name for each in provenance.datasets]
        if provenance.results:
            known = {each.handle: each.provenance for each in (await self._analysis.catalogue()).results}
            waiting, seen = list(provenance.results), set[str]()
            while waiting:
                handle = waiting.pop()
                if handle not in seen and handle in known:
                    seen.add(handle)
                    found += [each.name for each in known[handle].datasets]
                    waiting += known[handle].results
        return list(dict.fromkeys(found))


def _covers(owner: str, table: str) -> bool:
    """Return whether an entry for ``owner`` applies to ``table``: the same table, or a table of that source."""
    return owner == table or owner.startswith(f"{table}.") or table.startswith(f"{owner}.")


# Secrets are learned when data is read: a query may shorten or change a secret, so patterns would miss it in results.

log = logging.getLogger(__name__)


@frozen
class SecretColumns:
    """Searches the text columns of the engine for secrets and adds them to ``search``."""

    analysis: Analysis
    search: KnownSearch

    async def learn(self) -> None:
        """Learn the secrets of new datasets: of whole columns when a sample has values that look like secrets."""
        try:
            for sample in await self.analysis.new_samples():
                if await asyncio.to_thread(_secrets, sample):
                    whole = await self.analysis.texts(sample.dataset, sample.column)
                    await asyncio.to_thread(self._add, replace(whole, texts=(*sample.texts, *whole.texts)))
        except AnalysisError as error:
            # The call itself reports what is wrong with the data, and its result is searched by patterns anyway.
            log.warning("The columns of the data could not be searched for secrets: %s", error)

    def _add(self, found: ColumnTexts) -> None:
        for kind, values in _secrets(found).items():
            self.search.known.add(values, kind)
        self.search.prepare()

    def learning(self, tool: Tool) -> Tool:
        """Return ``tool`` such that secrets in newly read data are learned before its result is searched."""

        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            result = await tool.run(args, call)
            await self.learn()
            return result

        return replace(tool, run=run)


def _secrets(found: ColumnTexts) -> Mapping[str, list[str]]:
    """Return the secrets of a column by kind. Patterns see ``column="value"``, as in an assignment."""
    secrets: dict[str, list[str]] = {}
    for text in dict.fromkeys(found.texts):
        line = f'{found.column}="{text}"'
        for secret in find(line):
            secrets.setdefault(secret.kind, []).append(line[secret.start : secret.end])
    return secrets
