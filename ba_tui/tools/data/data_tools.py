"""The data engine of a session with all that uses it: the tool for queries, mentions, and whether there is data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ba_tui.analysis.engine import Analysis
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.settings import Settings
from ba_tui.tools.data.data_quality import NAME as QUALITY
from ba_tui.tools.data.data_quality import data_quality_tool
from ba_tui.tools.data.mentioned_tables import MentionedTables
from ba_tui.tools.data.query_data import NAME as QUERY
from ba_tui.tools.data.query_data import query_data_tool
from ba_tui.tools.data_engine import DataAccess, DataNearby, session_engine
from ba_tui.tools.definitions import Definition


@frozen
class DataTools:
    """``tools`` without their guards, ``query`` among them. The helper of ``engine`` starts when something is asked of
    it."""

    engine: Analysis
    query: Tool
    tools: tuple[Tool, ...]
    tables: MentionedTables
    nearby: DataNearby

    def needed(self) -> tuple[str, ...]:
        """The tools to list now: none before there is data. Blocks."""
        return tuple(tool.name for tool in self.tools) if self.nearby.found() else ()


def data_tools(
    definitions: Mapping[str, Definition], access: DataAccess, settings: Settings, sandbox: Sandbox, folder: Path | None
) -> DataTools:
    """Return those of the session in ``folder``; None: of one that keeps nothing."""
    files = access.files()
    engine = session_engine(access, settings, sandbox, folder)
    query = query_data_tool(definitions[QUERY], engine, files, access.concern)
    tables = MentionedTables(engine, files, settings.analysis.share)
    quality = data_quality_tool(definitions[QUALITY], engine, access.concern)
    return DataTools(engine, query, (query, quality), tables, DataNearby(access.workspace.root, engine))
