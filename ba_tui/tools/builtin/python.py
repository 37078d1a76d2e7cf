"""The tool python: runs code in a new interpreter with limits; python_runner.py is the program in that interpreter."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Workspace
from ba_tui.processes.values import ProcessLimits, Program
from ba_tui.tools.builtin.shell import DEFAULT_SECONDS, MAX_SECONDS, check, command_tool, observed
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failures import ToolFailure
from ba_tui.tools.running.command_runner import UNCONFINED, CommandRunner, RunRequest
from ba_tui.tools.running.shells import Shell, Shells, start_folder

RUNNER = Path(__file__).with_name("python_runner.py")
VENVS = (".venv", "venv")


@frozen
class Python:
    """``path`` of the interpreter; None: the project's, or the one that runs ba. ``runner`` runs the program."""

    path: Path | None = None
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    runner: CommandRunner = UNCONFINED

    def interpreter(self, root: Path) -> Path:
        if self.path is not None:
            return self.path
        places = [root / venv / "bin" / "python" for venv in VENVS]
        return next((place for place in places if os.access(place, os.X_OK)), Path(sys.executable))


def python_tool(definition: Definition, workspace: Workspace, shell: Shell, python: Python, shells: Shells) -> Tool:
    """Return the tool. ``shell`` determines the environment variables."""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        code: str = args["code"]
        check(code, "code")
        folder = await asyncio.to_thread(start_folder, workspace, call.branch.transcript.cwd)
        interpreter = await asyncio.to_thread(python.interpreter, workspace.root)
        seconds = min(float(args.get("timeout", DEFAULT_SECONDS)), MAX_SECONDS)

        def program(text: str) -> Program:
            environment = {"MPLBACKEND": "Agg", **shell.inherited()}
            limits = {"core": 0, **python.limits.for_seconds(seconds)}
            return Program((str(interpreter), str(RUNNER), text), folder, environment, limits)

        request = RunRequest(tool, args, "code", program, folder, seconds)
        try:
            outcome, notes = await python.runner.run(request, shells, call)
        except OSError as error:
            message = f"The interpreter {interpreter} could not be started: {error.strerror or error}."
            raise ToolFailure("resource_error", message) from error
        if outcome.job.exit_code == 128 + signal.SIGXCPU:
            notes = ["ended: it used up its processor time", *notes]
        return await asyncio.to_thread(observed, outcome, workspace.shown(folder), seconds, notes)

    tool = command_tool(definition, run)
    return tool


def limited_python_tool(
    definition: Definition,
    workspace: Workspace,
    shell: Shell,
    limits: ProcessLimits,
    runner: CommandRunner,
    shells: Shells,
) -> Tool:
    """Return the tool with the project's interpreter, or the one that runs ba."""
    return python_tool(definition, workspace, shell, Python(None, limits, runner), shells)
