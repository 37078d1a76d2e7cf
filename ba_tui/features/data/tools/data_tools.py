"""The data engine of a session with all that uses it: the tool for queries, mentions, and whether there is data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ba_tui.core.ports.rooms import MarkedShare
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.sources import Sources
from ba_tui.features.data.tools.analyse_data import NAME as ANALYSE
from ba_tui.features.data.tools.analyse_data import AnalysisPlace, analyse_data_tool
from ba_tui.features.data.tools.chart import NAME as CHART
from ba_tui.features.data.tools.chart import chart_tool
from ba_tui.features.data.tools.copying import Copying
from ba_tui.features.data.tools.data_engine import DataAccess, DataNearby, engine_place, muted_traps
from ba_tui.features.data.tools.data_quality import NAME as QUALITY
from ba_tui.features.data.tools.data_quality import data_quality_tool
from ba_tui.features.data.tools.masking import Masking
from ba_tui.features.data.tools.mentioned_tables import SHARED, SHARES, MentionedTables, SharedValues
from ba_tui.features.data.tools.query_data import NAME as QUERY
from ba_tui.features.data.tools.query_data import QueryMeans, query_data_tool
from ba_tui.features.data.tools.secret_columns import SecretColumns
from ba_tui.features.data.tools.source_places import SourceSetup
from ba_tui.features.data.tools.source_queries import SourceQueries
from ba_tui.permissions.secrets.disguises import KnownSearch
from ba_tui.settings.editing import add_item
from ba_tui.tools.definitions import Definition


@frozen
class DataTools:
    """``tools`` without their guards, ``query`` among them. The helpers of ``engine`` and ``sources`` start when
    something is asked of them."""

    engine: Analysis
    query: Tool
    tools: tuple[Tool, ...]
    tables: MentionedTables
    nearby: DataNearby
    shares: tuple[MarkedShare, ...]
    sources: Sources
    masking: Masking

    def needed(self) -> tuple[str, ...]:
        """The tools to list now: none before there is data. Blocks."""
        return tuple(tool.name for tool in self.tools) if self.sources.places or self.nearby.found() else ()

    async def close(self) -> None:
        """End the helpers."""
        await self.sources.close()
        await self.engine.close()


def data_tools(
    definitions: Mapping[str, Definition],
    access: DataAccess,
    setup: SourceSetup,
    folder: Path | None,
    search: KnownSearch,
) -> DataTools:
    """Return those of the session in ``folder``; None: of one that keeps nothing. ``search`` learns the secrets of the
    data."""
    files = access.files()
    place = engine_place(folder, setup.settings, files, setup.sandbox)
    engine = Analysis(place, muted_traps(setup.where.state, setup.settings))
    given = setup.settings.analysis
    sources = Sources(setup.places(place), engine)
    masking = Masking(given.unmasked, engine, partial(add_item, setup.where, "analysis.unmasked"))
    copying = Copying(engine, access.exports)
    means = QueryMeans(engine, files, access.concern, SourceQueries(sources), masking, copying, access.metrics)
    secret = SecretColumns(engine.texts, search)
    query = secret.learning(query_data_tool(definitions[QUERY], means))
    chart = chart_tool(definitions[CHART], engine, access.workspace, access.asks)
    analysing = AnalysisPlace(engine, place.worker, given.share, given.fiscal_year_start)
    analyse = analyse_data_tool(definitions[ANALYSE], analysing, access.concern)
    tables = MentionedTables(engine, files, SharedValues(given.share, masking, sources, secret), access.metrics)
    quality = data_quality_tool(definitions[QUALITY], engine, access.concern)
    nearby = DataNearby(access.workspace.root, engine)
    shared = f"profiles give {SHARES[given.share]} (analysis.share)"
    shares = (MarkedShare("Data", SHARED, "", lambda _: shared if engine.begun else ""),)
    tools = (query, *map(secret.learning, (chart, analyse, quality)))
    return DataTools(engine, query, tools, tables, nearby, shares, sources, masking)
