"""Open the data feature of a session. Its engine, tools and ports are made when they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ba_tui.core.ports.context import Suggestion
from ba_tui.core.ports.contributions import MarkedShare, SourceTool, ToolsFound, ToolSource
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Tool
from ba_tui.core.values import Once, late
from ba_tui.feature import OpenFeature, SessionContext
from ba_tui.features.data.analysis.nearby import DataNearby, has_metrics, why_no_kernel
from ba_tui.ingress import Ingress
from ba_tui.permissions.sandbox.confinement import limits_for
from ba_tui.tools.shells import Shells

if TYPE_CHECKING:
    from ba_tui.features.data.tools.data_tools import DataSession

QUERY, PYTHON = "query_data", "python"
TOOLS = (QUERY, "chart", "analyse_data", "data_quality")
"""The tools that are listed once the session has data."""
SHARED = regex(r"(?m)^Shared of (\S+): ")
"""The line of a profile that states which values are shared with the model."""


class PythonSource:
    """Offers the tool with a kernel if a sandbox can make it read-only, else the ``stateless`` one. Once chosen, the
    kernel stays. ``lacking`` returns why there can be no kernel."""

    def __init__(self, kernel: Tool, stateless: Tool, lacking: Callable[[], str]) -> None:
        self._stateless = ToolsFound((SourceTool(stateless),))
        self._kernel = ToolsFound((SourceTool(kernel),))
        self._lacking = lacking
        self._begun = self._chosen = False

    def look(self) -> ToolsFound:
        """Return the tool to offer. The first call is part of the session's start, so it does not probe the sandbox."""
        self._chosen = self._chosen or (self._begun and not self._lacking())
        self._begun = True
        return self._kernel if self._chosen else self._stateless


def open_data(context: SessionContext) -> OpenFeature:
    """Open the feature: the port Datasets for faces, MentionedData for prompts."""
    permissions, where, definitions = context.permissions, context.where, context.definitions
    settings, root = context.loaded.settings, permissions.workspace.root
    session: Once[DataSession] = Once(lambda: late("ba_tui.features.data.tools.data_tools:DataSession")(context))
    described = bool(settings.sources) or has_metrics(where.config, context.offered(Ingress).root)

    def begun() -> bool:
        return session.made is not None and session.made.engine.begun

    def named() -> bool:
        return begun() or bool(settings.sources)

    def tables() -> Sequence[Suggestion]:
        return session().tables.tables() if named() else ()

    def columns() -> Sequence[Suggestion]:
        return session().tables.columns() if named() else ()

    def metrics() -> Sequence[Suggestion]:
        return session().tables.metrics() if described else ()

    def refresh() -> None:
        if session.made:
            session.made.tables.refresh()

    nearby = DataNearby(root, begun)

    def needed() -> Sequence[str]:
        if not settings.sources and not nearby.found():
            return ()
        entry = context.registry().entry(PYTHON)
        return (*TOOLS, PYTHON) if entry and entry.enabled else TOOLS

    async def close() -> None:
        if session.made:
            await session.made.close()

    query = session().query if described else definitions[QUERY]
    stateless = definitions[PYTHON].late(
        permissions.workspace, context.shell, limits_for(settings), context.runner, context.offered(Shells)
    )
    python = PythonSource(
        definitions["python_kernel"].late(session),
        stateless,
        partial(why_no_kernel, permissions.policy, permissions.sandbox),
    )
    return OpenFeature(
        tuple(definition.late(session) for definition in (query, *(definitions[name] for name in TOOLS[1:]))),
        (ToolSource("built-in", python.look),),
        needed,
        ports={
            "ba_tui.core.ports.datasets:Datasets": lambda: session().datasets,
            "ba_tui.context.ports:MentionedData": lambda: session().tables,
        },
        mentions={"table": tables, "column": columns, "metric": metrics},
        refresh=refresh,
        shares=(MarkedShare("Data", SHARED, "", lambda _: session().shared if begun() else ""),),
        close=close,
    )
