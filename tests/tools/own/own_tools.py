"""Tools of people's own for tests: files in a folder, a registry around them, and the processes that run them."""

from __future__ import annotations

import os
import textwrap
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from ba_tui.core.events import Event, MessageDone, ToolFinished, ToolProgress, TurnStarted
from ba_tui.core.messages import Message, ToolUse, user
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Allow
from ba_tui.processes.values import WorkerSettings
from ba_tui.tools.discovery import Discovery, DiscoveryOptions, ToolFolder
from ba_tui.tools.guards.pipeline import pipeline
from ba_tui.tools.registry import Registry, ToolFiles
from ba_tui.tools.shells import Shell
from ba_tui.tools.toolbox import SessionPlace

KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH")
MARK = "BA_TEST_MARK"


@dataclass
class Home:
    """A folder with tool files. Their processes carry a mark in their environment, so that none is overlooked."""

    root: Path
    patience: float = 25.0
    packages: bool = False
    python_path: str = ""
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def tools(self) -> Path:
        return self.root / "tools"

    @property
    def worker_settings(self) -> WorkerSettings:
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        if self.python_path:
            environment["PYTHONPATH"] = self.python_path
        return WorkerSettings(self.root, {**environment, MARK: self.mark})

    def write(self, name: str, text: str) -> Path:
        path = self.tools / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), "utf-8")
        return path

    def discovery(self, *folders: ToolFolder) -> Discovery:
        given = folders or (ToolFolder(self.tools, "user"),)
        options = DiscoveryOptions(given, self.worker_settings, self.root / "cache.json", self.packages, self.patience)
        return Discovery(options)

    def registry(self, *files: Path, bundled: Path | None = None) -> Registry:
        """Everything in the folder, within all guards, and nothing asks."""

        def remember(rule: str, scope: str) -> None:
            raise AssertionError(f"nothing was asked, so {rule} can't be remembered")

        place = SessionPlace(Workspace(self.root), Shell(None, {}), None)
        guard = pipeline(place, lambda request: Allow(), remember)
        registry = Registry(guard, ToolFiles(bundled, lambda: files), self.discovery())
        registry.refresh()
        return registry

    def processes(self) -> list[psutil.Process]:
        """All that carry our mark now."""
        found: list[psutil.Process] = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found

    def left(self) -> list[psutil.Process]:
        """Those that still run some seconds later."""
        _, alive = psutil.wait_procs(self.processes(), timeout=8)
        return [*alive, *self.processes()]


class Caller:
    """Runs tools as the loop would, and keeps every event."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.branch = Branch(Turn(self.events.append), Transcript())
        self.branch.emit(TurnStarted(user("go")))
        self._calls = 0

    async def run(self, tool: Tool | None, **args: Any) -> ToolResult:
        assert tool is not None
        self._calls += 1
        use = ToolUse(f"call-{self._calls}", tool.name, args)
        self.branch.emit(MessageDone(Message("assistant", (use,), origin="assistant")))
        result = await tool.run(args, Call(use.id, self.branch))
        self.branch.emit(ToolFinished(use.id, result))
        return result

    @property
    def progress(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ToolProgress))


def names(tools: Sequence[Tool]) -> list[str]:
    return [tool.name for tool in tools]
