"""A system that starts no further thread, as at a limit of processes: the turn ends with a message, at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ba_tui.core.errors import NoThread, no_thread, off_loop, started
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
    assert "ba: The system starts no further thread: a limit of processes (ulimit -u)" in done.stderr
    assert "RuntimeError" not in done.stderr
    assert "Done." not in done.stdout
    assert [event["reason"] for event in ba.events() if event["type"] == "turn_ended"] == ["error"]


def test_a_finished_run_keeps_its_exit_code_where_no_thread_can_wait_for_the_others(tmp_path: Path) -> None:
    _, done = limited(tmp_path, "_do_shutdown", "steps: [{say: Done.}]\n")
    assert (done.stdout, done.stderr, done.returncode) == ("Done.\n", "", 0)


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
