"""A command is watched from its start to its end, however it ends: what it left is noticed, and it counts as over."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from ba_tui.core.messages import ToolUse
from ba_tui.core.tool import Call
from ba_tui.permissions.sandbox.protected_watch import PendingChanges, ProtectedWatch
from ba_tui.permissions.sandbox.workspace_scan import WorkspaceScan
from ba_tui.tools.builtin.shell import shell_tool
from ba_tui.tools.command_runner import CommandRunner, ProtectedReview
from ba_tui.tools.shells import Shell
from tests.tools.running.processes import Floor, floor, until_printed, within_guards

__all__ = ["floor"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
LEAVES = "echo x > .mcp.json; echo ready; read line < gate"


@pytest.fixture
def watch(floor: Floor, tmp_path: Path) -> ProtectedWatch:
    """Watches the commands of the shell. Nobody is asked about what they leave."""
    harness = floor.harness
    watch = ProtectedWatch(WorkspaceScan([harness.root]), PendingChanges(tmp_path / "aside"))
    runner = CommandRunner(review=ProtectedReview(watch, lambda: False))
    shell = Shell(harness.bash, {**harness.environment, "BA_TAG": floor.tag})
    tool = shell_tool(harness.definitions["shell"], harness.workspace, shell, floor.shells, runner)
    harness.tools = {**harness.tools, "shell": within_guards(tool)}
    os.mkfifo(harness.root / "gate")
    return watch


def left(watch: ProtectedWatch) -> list[tuple[str, str]]:
    return [(change.path.name, change.by) for change in watch.pending]


async def test_a_command_that_is_cancelled(floor: Floor, watch: ProtectedWatch) -> None:
    harness = floor.harness
    use = ToolUse("call", "shell", {"command": LEAVES})
    running = asyncio.ensure_future(harness.tools["shell"].run(use.input, Call(use.id, harness.branch)))
    await until_printed(harness, "ready")
    assert watch.running == (LEAVES,)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert watch.running == ()
    assert left(watch) == [(".mcp.json", LEAVES)]


@pytest.mark.parametrize("background", [True, False])
async def test_a_command_that_cannot_be_started(floor: Floor, watch: ProtectedWatch, background: bool) -> None:
    await floor.shells.close()
    result = await floor.harness.run("shell", command=LEAVES, background=background)
    assert result.is_error
    assert watch.running == ()


async def test_a_command_in_the_background(floor: Floor, watch: ProtectedWatch) -> None:
    harness = floor.harness
    id = await floor.start(LEAVES)
    await harness.run("shell_output", id=id, filter="ready", wait=20)
    watch.check()
    assert watch.running == (LEAVES,)
    assert left(watch) == [(".mcp.json", LEAVES)]
    await asyncio.to_thread((harness.root / "gate").write_text, "go\n")
    await floor.ended(id)
    watch.check()
    assert watch.running == ()


async def test_a_command_that_moves_to_the_background(floor: Floor, watch: ProtectedWatch) -> None:
    harness = floor.harness
    running = asyncio.create_task(harness.finish(ToolUse("call", "shell", {"command": LEAVES})))
    await until_printed(harness, "ready")
    assert floor.shells.detach("call")
    await running
    watch.check()
    assert watch.running == (LEAVES,)
    assert left(watch) == [(".mcp.json", LEAVES)]
    (job,) = floor.shells.list()
    await floor.shells.end(job.id)
    watch.check()
    assert watch.running == ()
