"""What tests of running programs share: finding the processes of a command, and a harness with all command tools."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from ba_tui.core.events import ToolProgress
from ba_tui.core.tool import Tool
from ba_tui.sessions.artifacts import Artifacts
from ba_tui.tools.builtin.shell import Python, python_tool, shell_kill_tool, shell_output_tool, shell_tool
from ba_tui.tools.guards.output import output
from ba_tui.tools.guards.reliability import timeout
from ba_tui.tools.guards.validate import validate
from ba_tui.tools.shells import Shell, Shells
from tests.tools.conftest import CHECKOUT, Harness


def word() -> str:
    """A word for the environment of a command (``BA_TAG``), by which its processes are found again."""
    return f"ba-test-{uuid.uuid4().hex}"


def tagged(word: str) -> list[psutil.Process]:
    """Processes that carry ``word`` in their environment, zombies aside."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("BA_TAG") == word and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


@contextmanager
def another(harness: Harness, word: str) -> Generator[subprocess.Popen[bytes]]:
    """What ``ba.py`` in its folder does, in a process that no test leaves behind or waits for in vain."""
    environment = {**harness.environment, "BA_TAG": word, "PYTHONPATH": str(CHECKOUT)}
    with subprocess.Popen([sys.executable, "ba.py"], cwd=harness.root, env=environment, stdout=subprocess.PIPE) as ba:
        try:
            yield ba
        finally:
            ba.kill()


async def all_gone(word: str) -> None:
    """Wait until nothing of ``word`` runs any more."""
    while processes := tagged(word):
        await asyncio.to_thread(psutil.wait_procs, processes, 10)


def printed(harness: Harness) -> str:
    return "".join(event.text for event in harness.events if isinstance(event, ToolProgress))


async def until_printed(harness: Harness, text: str) -> None:
    await harness.until(lambda: text in printed(harness))


class Floor:
    """A harness whose command tools share their shells, store what is large, and mark what they start."""

    def __init__(self, harness: Harness, folder: Path) -> None:
        self.harness = harness
        self.tag = word()
        self.folder = folder
        self.artifacts = Artifacts(folder)
        self.python = Python()
        self.equip()

    def equip(self) -> None:
        harness = self.harness
        self.shells = Shells(self.artifacts.open)
        shell = Shell(harness.bash, {**harness.environment, "BA_TAG": self.tag})
        definitions = harness.definitions
        tools = (
            shell_tool(definitions["shell"], harness.workspace, shell, self.shells),
            shell_output_tool(definitions["shell_output"], self.shells),
            shell_kill_tool(definitions["shell_kill"], self.shells),
            python_tool(definitions["python"], harness.workspace, shell, self.python, self.shells),
        )
        harness.tools = {**harness.tools, **{tool.name: within_guards(tool) for tool in tools}}

    async def start(self, command: str) -> str:
        """The id of a new background shell."""
        result = await self.harness.run("shell", command=command, background=True)
        assert not result.is_error, result.text
        return result.summary

    async def ended(self, id: str) -> None:
        await self.shells.find(id).process.ended.wait()

    def stored(self, ref: str | None) -> bytes:
        assert ref is not None
        return self.artifacts.path(ref).read_bytes()

    @property
    def files(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file()] if self.folder.exists() else []


def within_guards(tool: Tool) -> Tool:
    return output(validate(timeout(tool)))


@pytest.fixture
def floor(harness: Harness, tmp_path: Path) -> Iterator[Floor]:
    made = Floor(harness, tmp_path / "data")
    yield made
    left = tagged(made.tag)
    psutil.wait_procs(left, 10)
    for process in left:
        if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            process.kill()
            pytest.fail(f"left behind: {process}")
