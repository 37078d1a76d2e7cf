"""The data engine of a session with all that uses it: the tool for queries, mentions, and whether there is data."""

from __future__ import annotations

from pathlib import Path

from ba_tui.analysis.engine import Analysis
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.settings import Settings
from ba_tui.tools.data.mentioned_tables import MentionedTables
from ba_tui.tools.data.query_data import query_data_tool
from ba_tui.tools.data_engine import DataAccess, DataNearby, session_engine
from ba_tui.tools.definitions import Definition


@frozen
class DataTools:
    """``query`` is the tool, without its guards. The helper of ``engine`` starts when something is asked of it."""

    engine: Analysis
    query: Tool
    tables: MentionedTables
    nearby: DataNearby


def data_tools(
    definition: Definition, access: DataAccess, settings: Settings, sandbox: Sandbox, folder: Path | None
) -> DataTools:
    """Return those of the session in ``folder``; None: of one that keeps nothing."""
    files = access.files()
    engine = session_engine(folder, settings, files, sandbox)
    query = query_data_tool(definition, engine, files, access.concern)
    tables = MentionedTables(engine, files, settings.analysis.share)
    return DataTools(engine, query, tables, DataNearby(access.workspace.root, engine))
