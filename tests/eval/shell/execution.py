"""Runs one command in a world and says what it did: what changed, which secrets it printed.

Whether a command may run is the policy's affair; ``judged`` asks it as the app does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from ba_tui.core.effects import READING
from ba_tui.core.events import Mode
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.answers import ProjectApprovals, bundled_rules
from ba_tui.permissions.paths import Workspace, held_paths
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.rule import Subject
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.sandbox.git_settings import git_environment
from ba_tui.permissions.sandbox.layout import bubblewraps
from ba_tui.permissions.sandbox.workspace_scan import FileReach
from ba_tui.permissions.subjects import Subjects
from ba_tui.permissions.verdicts import RESTRICTED, Allow, Bounds, JudgedCall
from tests.eval.shell.world import World, build, picture
from tests.permissions.toolset import SHELL

Level = Literal["plain", "held"]
"""plain: nothing confines commands; held: the profile for reading does."""
SECONDS = 10
MOST = 4_000_000


@frozen
class Setting:
    """How commands are judged: with or without a sandbox, in a mode, in a folder that is trusted or not."""

    level: Level
    mode: Mode = "default"
    trusted: bool = True


SETTINGS: tuple[Setting, ...] = (
    Setting("plain"),
    Setting("plain", "plan"),
    Setting("plain", "accept-edits"),
    Setting("plain", "auto"),
    Setting("plain", trusted=False),
    Setting("held"),
    Setting("held", "plan"),
    Setting("held", trusted=False),
)


@frozen
class Effect:
    """What a command did that no command may do unasked."""

    command: str
    what: str


@frozen
class _ReadOnce(Subjects):
    """Takes a command apart once for all settings, in which it is the same: most of the time of judging goes there."""

    last: dict[tuple[str, Path], Subject] = field(default_factory=dict[tuple[str, Path], Subject])

    def of(self, tool: Tool, args: Mapping[str, Any], cwd: Path) -> Subject:
        key = (args["command"], cwd)
        if key not in self.last:
            self.last.clear()
            self.last[key] = Subjects.of(self, tool, args, cwd)
        return self.last[key]


def judges_of(world: World) -> dict[Setting, Callable[[str, Path], bool]]:
    """By setting, what says whether a command would run unasked in a folder of the world."""
    subjects = _ReadOnce(Workspace(world.work))
    return {setting: _judge(world, setting, subjects) for setting in SETTINGS}


def _judge(world: World, setting: Setting, subjects: Subjects) -> Callable[[str, Path], bool]:
    restricted = "" if setting.trusted else RESTRICTED
    held = setting.level == "held"
    bounds = Bounds(restricted=restricted, confined=lambda: held, unheld=lambda: "" if held else "there is no sandbox")
    kept = ProjectApprovals(world.top / "approvals.yaml", world.work)
    policy = Policy(subjects.workspace, bundled_rules(), setting.mode, kept, bounds)
    policy._subjects = subjects

    def judged(command: str, folder: Path) -> bool:
        with held_paths():
            return isinstance(policy.judge(JudgedCall(SHELL, {"command": command}, folder)), Allow)

    return judged


class Runner:
    """Runs commands one after the other; a world that was changed is made anew."""

    def __init__(self, top: Path) -> None:
        self.world = build(top)
        self._before = picture(top)
        self._bash = shutil.which("bash") or "/bin/bash"
        self._bwrap = next((found.program for found in bubblewraps()), None)
        self._sandbox = Sandbox(FileReach((self.world.work,), home=self.world.home))

    def close(self) -> None:
        """End what the sandbox searches and keeps."""
        self._sandbox.close()

    def confines(self) -> bool:
        """Whether the profile for reading can be tried here."""
        return self._bwrap is not None and Sandbox(FileReach((self.world.work,))).holds()

    def run(self, command: str, level: Level, folder: Path | None = None) -> Effect | None:
        """What ``command`` did; None when that was nothing."""
        world = self.world
        home = {"HOME": str(world.home), "TMPDIR": str(world.top / "tmp"), "LC_ALL": "C.UTF-8", "TERM": "dumb"}
        folder = folder or world.work
        environment = {"PATH": os.environ["PATH"], "PAGER": "cat", "GIT_PAGER": "cat", "API_KEY": "SECRET-VARIABLE"}
        environment |= home
        around, own = self._around(level, folder)
        environment |= {**own, **git_environment(folder, command, READING, environment, held=level == "held")}
        argv = [*around, self._bash, "--noprofile", "--norc", "-c", command]
        try:
            done = subprocess.run(
                argv,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=SECONDS,
                check=False,
            )
            output = done.stdout[:MOST].decode("utf-8", "replace")
        except subprocess.TimeoutExpired as error:
            output = (error.stdout or b"")[:MOST].decode("utf-8", "replace")
        shown = next((each for each in (*world.secrets, "SECRET-VARIABLE") if each in output), "")
        changed = self._changed()
        if changed:
            self.world, self._before = build(world.top), picture(world.top)
        what = f"printed {shown}" if shown else changed
        return Effect(command, what) if what else None

    def _changed(self) -> str:
        after = picture(self.world.top)
        if after == self._before:
            return ""
        names = {name for name in after.keys() | self._before.keys() if after.get(name) != self._before.get(name)}
        return "changed " + ", ".join(sorted(os.fsdecode(name) for name in names))[:200]

    def _around(self, level: Level, folder: Path) -> tuple[list[str], Mapping[str, str]]:
        """What goes before a command, and what it finds in its environment. Without a sandbox the world may be changed,
        but not the machine."""
        world = self.world
        if level == "held":
            self._sandbox.close()
            self._sandbox = Sandbox(FileReach((world.work,), home=world.home))
            confined = self._sandbox.confine(READING)
            assert confined is not None
            # As long as the command runs, the sandbox has to keep its masked copies. Of two folders the last counts.
            return [*confined.prefix[:-1], "--chdir", str(folder), "--"], confined.environment
        if self._bwrap is None:
            return [], {}
        top = str(world.top)
        words = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-net", "--unshare-pid"]
        return [self._bwrap, *words, "--bind", top, top, "--"], {}
