"""All that a session has for data: its engine, sources and Python, the tools over them, and what faces see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ba_tui.context.session_data import MentionedData
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.ports.rooms import ToolSource
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.feature import OpenFeature, SessionContext, Stage, for_main
from ba_tui.features.data.tools.data_engine import DataAccess, agreed_metrics
from ba_tui.features.data.tools.data_tools import data_tools
from ba_tui.features.data.tools.exports import ExportRules
from ba_tui.features.data.tools.python_kernels import NAME as PYTHON
from ba_tui.features.data.tools.python_kernels import Kernels, PythonSource
from ba_tui.features.data.tools.python_place import PythonPlace
from ba_tui.features.data.tools.python_session import SessionPython
from ba_tui.features.data.tools.session_data import SessionData
from ba_tui.features.data.tools.session_figures import figure_checks
from ba_tui.features.data.tools.source_places import SourceSetup
from ba_tui.ingress import Ingress
from ba_tui.permissions.sandbox.from_settings import limits_for
from ba_tui.permissions.session import SessionPermissions
from ba_tui.sessions.results.artifacts import Artifacts
from ba_tui.tools.builtin.python import Python, python_tool
from ba_tui.tools.builtin.recall import ReadHistory
from ba_tui.tools.definitions import Definition
from ba_tui.tools.modalities import Modalities
from ba_tui.tools.running.background import Shells


@frozen
class DataScope:
    """The session: its own ``folder`` (None: nothing is kept), stored results, what was said, and what its model takes.
    ``environment`` is what commands see; ``setup``: where its sources are."""

    setup: SourceSetup
    folder: Path | None
    results: Artifacts
    history: ReadHistory
    modalities: Modalities
    environment: Mapping[str, str]


class DataSession:
    """Made once for a session. The helpers start when something is asked of them."""

    def __init__(
        self,
        definitions: Mapping[str, Definition],
        access: DataAccess,
        scope: DataScope,
        permissions: SessionPermissions,
        stateless_python: Tool,
    ) -> None:
        setup = scope.setup
        self._data = data = data_tools(definitions, access, setup, scope.folder, permissions.sharing.search)
        self.query, self.tools, self.tables, self.shares = data.query, data.tools, data.tables, data.shares
        place = PythonPlace(permissions, scope.folder, setup.settings, scope.environment)
        self._kernels = Kernels(place, data.engine)
        pythons = PythonSource(definitions["python_kernel"], self._kernels, scope.modalities, stateless_python)
        self.sources = (ToolSource("built-in", pythons.look),)
        """Tools that change with what the rules allow."""
        session = SessionPython(self._kernels, access.exports)
        self.datasets = SessionData(data, access.exports, scope.results, scope.history, session)
        """The same for faces."""
        self.figures = figure_checks(setup.settings, scope.history, scope.results, data.engine)

    def needed(self) -> tuple[str, ...]:
        """The tools to list now: none before there is data. Blocks."""
        return self._data.needed()

    async def close(self) -> None:
        """End the helpers."""
        await self.figures.close()
        await self._kernels.close()
        await self._data.close()


def open_data(context: SessionContext) -> OpenFeature:
    """Offer Datasets to faces and MentionedData to prompts."""
    scope, permissions, where = context.scope, context.permissions, context.where
    workspace, judge, settings = permissions.workspace, permissions.policy.judge, context.loaded.settings
    exports = ExportRules(workspace, context.builtin["write_file"], judge, context.ahead)
    metrics = agreed_metrics(where, context.offered(Ingress))
    python = Python(None, limits_for(settings), context.runner)
    session = DataSession(
        context.definitions,
        DataAccess(workspace, context.builtin["read_file"], judge, exports, metrics),
        DataScope(
            SourceSetup(settings, where, permissions.sandbox, workspace.root),
            scope.folder,
            scope.results,
            scope.history,
            scope.modalities,
            context.shell.inherited(),
        ),
        permissions,
        python_tool(context.definitions["python"], workspace, context.shell, python, context.offered(Shells)),
    )

    def needed() -> Sequence[str]:
        names = session.needed()
        entry = context.registry().entry(PYTHON) if names else None
        return (*names, PYTHON) if entry and entry.enabled else names

    tables = session.tables
    return OpenFeature(
        session.tools,
        session.sources,
        needed,
        interceptors=((Stage.VERIFY, for_main(session.figures)),),
        listeners=(session.figures.apply,),
        ports={Datasets: session.datasets, MentionedData: tables},
        mentions={"table": tables.tables, "column": tables.columns, "metric": tables.metrics},
        refresh=tables.refresh,
        shares=tuple(session.shares),
        close=session.close,
    )
