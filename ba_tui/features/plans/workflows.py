"""Workflows as a source of tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ba_tui.core.ports.rooms import JoiningTool, ToolsFound
from ba_tui.core.tool import Tool
from ba_tui.ingress import Read
from ba_tui.sessions.results.artifacts import Artifacts


class Workflows:
    """Those of ``folders``, a later one wins. They are read once, and their steps call ``tools`` as they are then."""

    def __init__(
        self, folders: Sequence[Path], read: Read, tools: Callable[[], Mapping[str, Tool]], results: Artifacts
    ) -> None:
        self._folders = folders
        self._read = read
        self._tools = tools
        self._results = results
        self._found: ToolsFound | None = None

    def look(self) -> ToolsFound:
        """See core.ports.rooms.ToolSource."""
        if self._found is None:
            self._found = self._loaded() if any(folder.is_dir() for folder in self._folders) else ToolsFound()
        return self._found

    def _loaded(self) -> ToolsFound:
        # Templates take a fiftieth of a second to load, and most people have no workflows.
        from ba_tui.features.plans.engine.flow_files import load_flows  # noqa: PLC0415
        from ba_tui.features.plans.tools.flows import flow_tools  # noqa: PLC0415

        flows, broken = load_flows(self._folders, self._read)
        made, wrong = flow_tools(flows, self._tools(), self._tools, self._results)
        tools = [JoiningTool(tool, str(flows[tool.name].document.path)) for tool in made]
        return ToolsFound(tools, [str(problem) for problem in (*broken, *wrong)])
