"""The tool python: code in an interpreter of its own, with limits, and what the model reads of it.

Processes are processes.py's; what happens inside that interpreter is python_runner.py.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ba_tui.core.results import Command, Display, ToolResult
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.permissions.paths import Workspace
from ba_tui.tools.background import Shells
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed
from ba_tui.tools.processes import Program
from ba_tui.tools.shell import MOST, TIMEOUT, Shell, check, observed, start_folder

RUNNER = Path(__file__).with_name("python_runner.py")
GIGABYTE = 1_000_000_000
VENVS = (".venv", "venv")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may use, None for no limit: bytes of memory, bytes of one file, processes and threads."""

    memory: int | None = 8 * GIGABYTE
    file_size: int | None = 2 * GIGABYTE
    processes: int | None = 512

    def for_seconds(self, seconds: float) -> dict[str, int]:
        """As rlimits. Processor time counts on all cores, so it is bounded by the time limit times these."""
        given = {"data": self.memory, "fsize": self.file_size, "nproc": self.processes}
        cpu = (int(seconds) + 1) * (os.cpu_count() or 1)
        return {"cpu": cpu, "core": 0, **{name: value for name, value in given.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class Python:
    """``path`` of the interpreter; None: the project's own, or the one that runs ba."""

    path: Path | None = None
    limits: Limits = field(default_factory=Limits)

    def interpreter(self, root: Path) -> Path:
        if self.path is not None:
            return self.path
        places = [root / venv / "bin" / "python" for venv in VENVS]
        return next((place for place in places if os.access(place, os.X_OK)), Path(sys.executable))


def python_tool(definition: Definition, workspace: Workspace, shell: Shell, python: Python, shells: Shells) -> Tool:
    """``shell`` says which environment is handed on."""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        code: str = args["code"]
        check(code, "code")
        folder = await asyncio.to_thread(start_folder, workspace, call.branch.transcript.cwd)
        interpreter = await asyncio.to_thread(python.interpreter, workspace.root)
        seconds = min(float(args.get("timeout", TIMEOUT)), MOST)
        program = Program(
            (str(interpreter), str(RUNNER), code),
            folder,
            {"MPLBACKEND": "Agg", **shell.inherited()},
            python.limits.for_seconds(seconds),
        )
        try:
            outcome = await shells.run(program, code, seconds, call)
        except OSError as error:
            message = f"The interpreter {interpreter} could not be started: {error.strerror or error}."
            raise Failed("resource_error", message) from error
        notes = ["ended: it used up its processor time"] if outcome.job.exit_code == 128 + signal.SIGXCPU else []
        return await asyncio.to_thread(observed, outcome, workspace.shown(folder), seconds, notes)

    async def preview(args: Mapping[str, Any]) -> Display | None:
        return Command(args["code"])

    return Tool(
        "python",
        definition.description,
        definition.input_schema,
        run,
        Effect.EXECUTE,
        timeout=None,
        facts=ToolFacts(category="shell", target="code", bulky=True),
        preview=preview,
    )
