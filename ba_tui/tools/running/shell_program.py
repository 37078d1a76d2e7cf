"""The shell that runs commands: its program, the variables that commands get, and the folder in which they start."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import field
from fnmatch import fnmatchcase
from pathlib import Path

from ba_tui.core.tool import Call
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import PathRefused, Workspace
from ba_tui.processes.values import ProcessLimits, Program
from ba_tui.settings.environment import holds_key, steers
from ba_tui.tools.failures import ToolFailure
from ba_tui.tools.running.background import reporting


@frozen
class Shell:
    """``path`` of bash, None if missing; ``environment`` of ba; ``secret``: further variables to withhold; ``keep``:
    names or patterns of variables to pass on in any case; ``limits`` of a command's resources; ``more``: variables from
    the settings."""

    path: str | None
    environment: Mapping[str, str]
    secret: Collection[str] = ()
    keep: Collection[str] = ()
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    more: Mapping[str, str] = field(default_factory=dict[str, str])

    def inherited(self) -> dict[str, str]:
        """Return the variables for commands: without keys, tokens and passwords, and without variables that make bash
        run or read a file first or change the meaning of the judged command."""
        kept = {name: value for name, value in {**self.environment, **self.more}.items() if self._open(name)}
        return {**kept, "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}

    def withheld(self) -> tuple[str, ...]:
        """Return the values of variables that are withheld because they contain keys."""
        given = {**self.environment, **self.more}
        return tuple(value for name, value in given.items() if not steers(name) and not self._open(name))

    def program(self, script: str, folder: Path, seconds: float | None = None) -> Program:
        """Return the program that runs ``script`` in ``folder``. ``seconds`` limit its processor time."""
        if self.path is None:
            raise ToolFailure(
                "dependency_error", "bash is not installed, so the shell tool is off.", "Use the file tools."
            )
        # bash reports to the supervisor how the parts of the script ended, and the folder for the next command.
        argv = (self.path, "--noprofile", "--norc", "-c", reporting(script))
        return Program(argv, folder, self.inherited(), self.limits.for_seconds(seconds))

    def _open(self, name: str) -> bool:
        if steers(name):
            return False
        if any(fnmatchcase(name, pattern) for pattern in self.keep):
            return True
        return name not in self.secret and not holds_key(name)


def start_folder(workspace: Workspace, kept: str | None) -> Path:
    """Return the last command's final folder if it can be entered and is in the workspace; else the root."""
    with suppress(PathRefused):
        # The kept path may contain replacement characters for bytes that are not text.
        if kept and enterable(folder := workspace.named(kept)) and workspace.contains(folder.resolve()):
            return folder
    return workspace.root


def started_in(workspace: Workspace, call: Call) -> Path:
    """Return the folder in which a command of ``call`` starts."""
    return start_folder(workspace, call.branch.transcript.cwd)


def enterable(folder: Path) -> bool:
    """Return whether a command can start in ``folder``, which may be missing or inaccessible by now."""
    return os.access(folder, os.X_OK) and folder.is_dir()
