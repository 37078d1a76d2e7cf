"""What it costs a command to run as a reader: the look for secrets, the sandbox's layout, and bubblewrap itself.

The same program runs with and without, in turns. The workspace has a repository, 320 folders and ten secrets.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from ba_tui.core.effects import OUTSIDE, READING, Profile
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.sandbox.workspace_scan import FileReach
from ba_tui.processes.children import Process
from ba_tui.processes.values import Program
from ba_tui.resources import user_home
from ba_tui.tools.command_runner import CommandRunner
from tests.bench.figures import Effort, Figure, median

PROGRAM = "/bin/true"
FOLDERS, SECRETS = 320, 10


def confined(effort: Effort) -> Iterator[Figure]:
    """Wall time that the profile *reading* adds to a command; nothing where no sandbox hides secrets."""
    with TemporaryDirectory() as place:
        root = Path(os.path.realpath(place))
        _fill(root)
        sandbox = Sandbox(FileReach((root,), home=user_home()))
        if sandbox.unheld():
            return
        runner = CommandRunner(sandbox)
        taken: dict[str, list[float]] = {"reading": [], "outside": []}
        for _ in range(effort.keys + 1):
            for profile in (READING, OUTSIDE):
                taken[profile.name].append(1_000 * asyncio.run(_run(runner, root, profile)))
        sandbox.close()
    # The first one of each brings in modules.
    reading, plain = median(taken["reading"][1:]), median(taken["outside"][1:])
    target = f"above the {plain:.0f} ms that it takes otherwise"
    yield Figure("what the sandbox profile *reading* costs a command", reading - plain, "ms", 25.0, target)


def _fill(root: Path) -> None:
    for number in range(FOLDERS):
        folder = root / f"package_{number % 20}" / f"part_{number}"
        folder.mkdir(parents=True)
        for each in range(5):
            (folder / f"module_{each}.py").touch()
    for number in range(SECRETS):
        (root / f"package_{number}" / ".env").write_text("TOKEN=x\n")
    if git := shutil.which("git"):
        subprocess.run([git, "init", "-q"], cwd=root, check=True)


async def _run(runner: CommandRunner, root: Path, profile: Profile) -> float:
    begun = time.perf_counter()
    program = await runner.confine(Program((PROGRAM,), root, {"PATH": os.defpath}), profile)
    process = Process(program)
    await process.ended.wait()
    return time.perf_counter() - begun
