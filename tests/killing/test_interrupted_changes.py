"""A change of several files that is interrupted or killed: what the files hold, and what the session says of it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.calls import Commit, commit_whole, run_call
from ba_tui.core.events import Event, Notice, Steered, ToolFinished, TurnEnded
from ba_tui.core.messages import ToolUse
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, CallProgress, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.resources import places
from ba_tui.tools.editing.patches import planned_patch
from ba_tui.tools.editing.seen_files import SeenFiles
from ba_tui.tools.guards import reliability as timeout_guard
from tests.script import collect

NAMES = ("a.txt", "b.txt", "c.txt")
SCRIPT = r"""
steps:
- calls: [{tool: apply_patch, args: {patch: "*** Begin Patch\n*** Update File: a.txt\n-old\n+new\n
    *** Update File: b.txt\n-old\n+new\n*** Update File: c.txt\n-old\n+new\n*** End Patch"}}]
- {say: Done.}
last: {say: Only words.}
""".replace("\\n\n    ", "\\n")
BEFORE, AFTER = (dict.fromkeys(NAMES, text) for text in ("old\n", "new\n"))
PROGRAM = """
import os, signal, sys
rename = os.rename
def renamed(source, target, **more):
    if target == sys.argv[1]:
        os.kill(os.getpid(), int(sys.argv[2]))
    rename(source, target, **more)
os.rename = renamed
from ba_tui.cli.main import run
sys.exit(run(sys.argv[3:]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    for name in NAMES:
        (work / name).write_text("old\n")
    (tmp_path / "script.yaml").write_text(SCRIPT)
    trust_folder(work)
    return work


def held(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


def flags(folder: Path) -> dict[str, Any]:
    return {"model": f"scripted:{folder.parent}/script.yaml", "permission_mode": "accept-edits"}


def result_of(events: list[Event]) -> ToolResult:
    (result,) = [event.result for event in events if isinstance(event, ToolFinished)]
    return result


@pytest.mark.parametrize("fails", [False, True])
async def test_esc_waits_for_the_files_and_the_record_says_what_happened(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    monkeypatch.setattr(timeout_guard, "GRACE", 0)
    talk = connect(flags(folder), folder, strict=True).library.create()
    turn = talk.say("change them")
    loop, arrived, rename = asyncio.get_running_loop(), threading.Event(), os.rename

    def hop(times: int) -> None:
        """Press Esc now and then while the loop goes round, then let the change go on."""
        if times % 20 == 0:
            turn.cancel()
        if times:
            loop.call_soon(hop, times - 1)
        else:
            arrived.set()

    def renamed(source: str, target: str, **more: Any) -> None:
        if target == "b.txt" and not arrived.is_set():
            loop.call_soon_threadsafe(hop, 60)
            assert arrived.wait(30)
            if fails:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rename(source, target, **more)

    monkeypatch.setattr(os, "rename", renamed)
    events = await collect(turn)
    result = result_of(events)
    assert [event.reason for event in events if isinstance(event, TurnEnded)] == ["cancelled"]
    assert "Interrupted by the user. The files were being written or were written already." in result.text
    if fails:
        assert held(folder) == BEFORE
        assert "b.txt: No space left on device. No file was changed." in result.text
        assert result.is_error
    else:
        assert held(folder) == AFTER
        assert result.text.startswith("Changed a.txt (+1 -1 lines).")
        assert not result.is_error
    assert [event.text for event in [*(await talk.history()), *events] if isinstance(event, Notice)] == []
    await talk.close()


def interrupted(folder: Path, number: signal.Signals, name: str = "b.txt") -> int:
    """Run the prompt in a process that gets the signal just before the file ``name`` is replaced."""
    given = [f"--model={flags(folder)['model']}", "--permission-mode=accept-edits", "-p", "change them"]
    command = [sys.executable, "-c", PROGRAM, name, str(int(number)), *given]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=False, env={**os.environ})
    return done.returncode


async def test_after_a_kill_the_next_start_puts_the_files_back_and_tells_user_and_model(folder: Path) -> None:
    assert interrupted(folder, signal.SIGKILL) == -signal.SIGKILL
    assert held(folder) != BEFORE
    # Another session in the folder: the user reads it there.
    services = connect(flags(folder), folder, strict=True)
    told = "ba was stopped while apply_patch changed 3 files. ba put back the file that it had changed."
    assert held(folder) == BEFORE
    assert told in [notice.text for notice in services.notices]
    assert told not in [notice.text for notice in connect(flags(folder), folder, strict=True).notices]
    # The model of the session that was killed reads it with the next prompt, once.
    (info,) = services.library.sessions()
    talk = services.library.open(info.id)
    first, second = await collect(talk.say("go on")), await collect(talk.say("and on"))
    notes = [[event.message.text for event in turn if isinstance(event, Steered)] for turn in (first, second)]
    assert [sum(told in note for note in turn) for turn in notes] == [1, 0]
    await talk.close()
    assert list((places().state / "changes").rglob("*.*")) == []


def test_a_patch_changes_files_outside_the_workspace_last(folder: Path) -> None:
    (folder.parent / "out.txt").write_text("old\n")
    lines = [f"*** Update File: {name}\n-old\n+new" for name in ("../out.txt", *NAMES)]
    patch = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
    change = planned_patch(Workspace(folder), SeenFiles(), {"patch": patch})
    assert [file.path.name for file in change.files] == [*NAMES, "out.txt"]


def test_sigterm_waits_for_the_files_and_the_record_says_so(folder: Path) -> None:
    interrupted(folder, signal.SIGTERM)
    assert held(folder) == AFTER
    (journal,) = places().sessions.rglob("events.jsonl")
    (finished,) = [
        each for each in map(json.loads, journal.read_text().splitlines()) if each.get("type") == "tool_finished"
    ]
    assert "Changed a.txt" in finished["result"]["text"]
    assert not finished["result"].get("is_error")


class Heard(CallProgress):
    """Says when an interrupt begins to wait for a change."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()
        super().__init__()

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "committing" and value:
            self.waits.set()


class Changing:
    """A call of a tool whose change begins, and ends, when the test says so."""

    def __init__(self, seconds: float | None = None, *, late: bool = False) -> None:
        """``late``: it is cancelled when the change is done and nobody has heard of it."""
        self.planned, self.begun, self.go_on = threading.Event(), asyncio.Event(), threading.Event()
        self.changed = False
        self.events: list[Event] = []
        self.progress = Heard()
        loop = asyncio.get_running_loop()

        def work(commit: Commit) -> ToolResult:
            assert self.planned.wait(5)
            commit.begin()
            loop.call_soon_threadsafe(self.begun.set)
            assert self.go_on.wait(5)
            self.changed = True
            return ToolResult("Changed it.")

        async def run(args: object, call: Call) -> ToolResult:
            result = await commit_whole(work, call)
            if late:
                self.task.cancel()
            return result

        tool = timeout_guard.timeout(Tool("probe", "", {}, run, timeout=seconds))
        branch = Branch(Turn(self.events.append), Transcript())
        call = Call("c", branch, progress=self.progress)
        self.task = asyncio.create_task(run_call(tool, ToolUse("c", "probe", {}), call))

    @property
    def result(self) -> ToolResult:
        return result_of(self.events)


@pytest.mark.parametrize("seconds", [None, 30.0])
async def test_an_interrupt_before_the_change_begins_stops_it(seconds: float | None) -> None:
    changing = Changing(seconds)
    await asyncio.sleep(0)
    changing.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await changing.task
    changing.go_on.set()
    changing.planned.set()
    await asyncio.get_running_loop().shutdown_default_executor()
    assert not changing.changed
    assert changing.result.error
    assert changing.result.error.message == "Interrupted by the user."


async def test_an_interrupt_right_behind_a_change_leaves_it_done() -> None:
    changing = Changing(30.0, late=True)
    changing.planned.set()
    changing.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await changing.task
    assert not changing.result.is_error
    assert changing.result.text.startswith("Changed it.")


@pytest.mark.parametrize("seconds", [None, 30.0])
async def test_no_number_of_interrupts_breaks_off_a_change(seconds: float | None) -> None:
    changing = Changing(seconds)
    changing.planned.set()
    await changing.begun.wait()
    for _ in range(3):
        changing.task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    waited = not changing.task.done()
    changing.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await changing.task
    assert waited
    assert changing.changed
    assert changing.result.text.startswith("Changed it.\nNote: Interrupted by the user.")


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_timeout_waits_for_a_change_that_has_begun(*, cancelled: bool) -> None:
    changing = Changing(0.02)
    changing.planned.set()
    begun = asyncio.create_task(changing.progress.waits.wait())
    await asyncio.wait({changing.task, begun}, return_when=asyncio.FIRST_COMPLETED)
    begun.cancel()
    if changing.task.done():
        # The time was over before it began, so it never will.
        assert not changing.changed
        return
    if cancelled:
        changing.task.cancel()
        await asyncio.sleep(0)
    changing.go_on.set()
    await asyncio.wait({changing.task})
    assert changing.changed
    assert changing.task.cancelled() is cancelled
    assert changing.result.text.splitlines()[0] == "Changed it."
