"""A system that cannot start another thread, as at a limit of processes: the turn ends with a message, at once."""

from __future__ import annotations

import _thread
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import NoThread, no_thread, off_loop, started
from ba_tui.permissions.sandbox.confinement import FoundSandbox, Sandbox
from ba_tui.permissions.sandbox.layout import Bubblewrap
from ba_tui.permissions.sandbox.workspace_scan import FileReach
from tests.program import Program

LIMITED = """
import sys, threading
start = threading._start_new_thread
def limited(work, *args, **named):
    if refused in work.__self__.name:
        raise RuntimeError("can't start new thread")
    return start(work, *args, **named)
refused = sys.argv[1]
threading._start_new_thread = limited
sys.argv = ["ba", *sys.argv[2:]]
from ba_tui.__main__ import main
sys.exit(main())
"""
STEPS = "steps: [{calls: [{tool: shell, args: {command: echo hi}}]}, {say: Done.}]\n"


def limited(folder: Path, refused: str, steps: str) -> tuple[Program, subprocess.CompletedProcess[str]]:
    """Send one prompt where threads with ``refused`` in their names can't be started."""
    (folder / "work").mkdir()
    (folder / "work" / "s.yaml").write_text(steps)
    ba = Program(folder / "work", folder)
    words = [sys.executable, "-c", LIMITED, refused, "-p", "-m", "scripted:s.yaml", "--allow", "shell(echo hi)", "x"]
    done = subprocess.run(
        words, cwd=ba.folder, env=ba.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
        check=False,
    )  # fmt: skip
    return ba, done


@pytest.mark.parametrize("refused", ["Thread-", "program output"])
def test_the_turn_ends_with_a_message(tmp_path: Path, refused: str) -> None:
    """The call of the tool can't be made."""
    ba, done = limited(tmp_path, refused, STEPS)
    assert done.returncode == 2
    assert "ba: The system cannot start another thread: a limit of processes (ulimit -u)" in done.stderr
    assert "RuntimeError" not in done.stderr
    assert "Done." not in done.stdout
    assert [event["reason"] for event in ba.events() if event["type"] == "turn_ended"] == ["error"]


def test_a_finished_run_keeps_its_exit_code_where_no_thread_can_wait_for_the_others(tmp_path: Path) -> None:
    _, done = limited(tmp_path, "_do_shutdown", "steps: [{say: Done.}]\n")
    assert (done.stdout, done.stderr, done.returncode) == ("Done.\n", "", 0)


@pytest.mark.parametrize("refused", ["sandbox", "secret search"])
def test_a_search_for_secrets_that_can_not_begin_is_one_line_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, refused: str
) -> None:
    start = _thread.start_new_thread

    def limited(work: Any, *rest: Any, **named: Any) -> Any:
        if work.__self__.name == refused:
            raise RuntimeError("can't start new thread")
        return start(work, *rest, **named)

    found = FoundSandbox(Bubblewrap("/bin/true"))
    sandbox = Sandbox(FileReach((tmp_path,)), look=lambda: found)
    monkeypatch.setattr(threading, "_start_new_thread", limited)
    sandbox.begin()
    for thread in threading.enumerate():
        if thread.name == "sandbox":
            thread.join(20)
    sandbox.close()
    (record,) = caplog.records
    assert (
        "The workspace was not searched for files with secrets: The system cannot start another" in record.getMessage()
    )
    assert record.exc_info is None


async def test_what_must_be_done_is_done_without_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr("threading._start_new_thread", refused)
        assert await off_loop(int, "7") == 7
        with pytest.raises(NoThread):
            started(int, "none")
    assert no_thread(RuntimeError("another one")) is None
    with pytest.raises(RuntimeError, match="my own"):
        await off_loop(broken)


def broken() -> None:
    raise RuntimeError("my own")
