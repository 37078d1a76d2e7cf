"""The app in a real terminal: it follows the background, takes a paste, and gives the terminal back."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sys
import tempfile
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from ba_tui.permissions.trust.grants import Trust, trust_folder
from ba_tui.resources import places
from tests.processes.test_scratch import killed

CHECKOUT = Path(__file__).resolve().parents[3]
LIGHT_GROUND = "48;2;251;251;250"
LEFT = "\x1b[?1049l"


SCRIPT = f"""
delay: 0.02
steps:
  - say: I am no model, I follow a script. {"This takes long enough for somebody to press a key. " * 12}
    calls: [{{tool: read_file, args: {{path: editor.sh}}}}]
last: {{say: {"There is no more. " * 40}}}
"""


def script(folder: Path) -> Path:
    """A script that speaks slowly, then reads a file."""
    path = folder / "script.yaml"
    path.write_text(SCRIPT)
    return path


def started(tmp_path: Path, ba_home: Path, *flags: str) -> pexpect.spawn[str]:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "BA_HOME": str(ba_home),
        "BA_MODEL": f"scripted:{script(tmp_path)}",
        "PYTHONPATH": str(CHECKOUT),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
        "TMPDIR": tempfile.gettempdir(),
        "EDITOR": f"sh {tmp_path}/editor.sh",
    }
    command = ["-m", "ba_tui", *flags]
    return pexpect.spawn(
        sys.executable, command, cwd=str(tmp_path), env=env, encoding="utf-8", dimensions=(24, 80), timeout=20
    )


@pytest.fixture
def terminal(tmp_path: Path, ba_home: Path) -> Iterator[pexpect.spawn[str]]:
    trust_folder(tmp_path)
    child = started(tmp_path, ba_home)
    yield child
    child.close(force=True)


def test_the_flag_trusts_the_folder_without_a_question(tmp_path: Path, ba_home: Path) -> None:
    tools = tmp_path / ".ba" / "tools"
    tools.mkdir(parents=True)
    (tools / "mine.py").write_text("VALUE = 1\n")
    assert not Trust(places()).trusted(tmp_path)
    child = started(tmp_path, ba_home, "--trust", "hello there")
    child.expect_exact("I am no model")
    child.close(force=True)
    assert Trust(places()).trusted(tmp_path)


def test_trusting_that_failed_is_tried_again_with_the_rest(tmp_path: Path, ba_home: Path) -> None:
    in_the_way = places().trusted
    in_the_way.mkdir(parents=True)
    child = started(tmp_path, ba_home, "--trust")
    child.expect_exact("again.")
    in_the_way.rmdir()
    child.send("\r")
    child.expect_exact("scripted model")
    child.close(force=True)
    assert Trust(places()).trusted(tmp_path)


def test_each_start_removes_what_a_killed_process_left(
    tmp_path: Path, ba_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = killed()
    assert left.is_dir()
    trust_folder(tmp_path)
    child = started(tmp_path, ba_home)
    while left.exists():
        child.expect([pexpect.TIMEOUT, "failed"], timeout=0.1)
        assert child.after is pexpect.TIMEOUT
    child.close(force=True)


def test_it_follows_a_light_background(terminal: pexpect.spawn[str]) -> None:
    terminal.expect_exact("\x1b]11;?")
    terminal.send("\x1b]11;rgb:ffff/ffff/ffff\x1b\\")
    terminal.expect_exact(LIGHT_GROUND)


def test_a_conversation_ends_with_the_way_back(terminal: pexpect.spawn[str]) -> None:
    terminal.expect_exact("scripted model")
    terminal.send("hel\x1b[200~lo\r" + "long\r" * 20 + "\x1b[201~")
    terminal.expect_exact("[Pasted #1 +21 lines]")
    terminal.send("\r")
    terminal.expect_exact("I am no model")
    terminal.send("\x1b")
    terminal.expect_exact("Interrupted")
    terminal.send("\x04")
    terminal.expect_exact(LEFT)
    terminal.expect("ba -r [0-9a-f-]+")
    terminal.expect(pexpect.EOF)
    terminal.wait()
    assert terminal.exitstatus == 0


def turn_ends(ba_home: Path) -> list[tuple[str, str]]:
    """How the turns of all sessions ended, and why."""
    lines = [line for log in ba_home.rglob("events.jsonl") for line in log.read_text().splitlines()]
    events = [event for event in map(json.loads, lines) if event.get("type") == "turn_ended"]
    return [(event["reason"], (event.get("error") or {}).get("message", "")) for event in events]


@pytest.mark.parametrize(
    ("number", "why"),
    [(signal.SIGTERM, "ba was stopped by SIGTERM."), (signal.SIGHUP, "The terminal was closed.")],
    ids=["TERM", "HUP"],
)
def test_a_signal_gives_the_terminal_back_and_is_recorded(
    terminal: pexpect.spawn[str], ba_home: Path, number: signal.Signals, why: str
) -> None:
    terminal.expect_exact("scripted model")
    terminal.send("hello\r")
    terminal.expect_exact("I am no model")
    terminal.kill(number)
    terminal.expect_exact(LEFT)
    terminal.expect(pexpect.EOF)
    terminal.wait()
    assert turn_ends(ba_home) == [("cancelled", why)]


SUDDEN = [
    *(signal.SIGQUIT, signal.SIGABRT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF),
    *(signal.SIGXCPU, signal.SIGTRAP, signal.SIGSYS),
]
"""Those that end a program which says nothing of them."""


def test_signals_that_end_it_at_once_give_the_terminal_back_first(tmp_path: Path) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from ba_tui.faces.tui.themes import ThemedApp\n"
        "class App(ThemedApp[None]):\n"
        "    def on_ready(self): print('READY', file=sys.__stdout__, flush=True)\n"
        "App('dark', color=True).run()\n"
    )
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "xterm-256color"}
    children: dict[int, tuple[pexpect.spawn[str], list[Any]]] = {}
    for number in (*SUDDEN, signal.SIGRTMIN + 3):
        child = pexpect.spawn(sys.executable, ["-c", program, str(CHECKOUT)], env=env, encoding="utf-8", timeout=20)
        children[int(number)] = child, termios.tcgetattr(child.child_fd)
    for number, (child, before) in children.items():
        child.expect_exact("READY")
        terminal = child.child_fd
        assert termios.tcgetattr(terminal)[3] != before[3]
        child.kill(number)
        child.expect_exact("\x1b[?1003l")
        child.expect_exact(LEFT)
        child.expect(pexpect.EOF)
        child.wait()
        assert child.signalstatus == number
        assert termios.tcgetattr(terminal)[3] == before[3]


def test_a_turn_goes_on_while_the_editor_is_open(terminal: pexpect.spawn[str], tmp_path: Path, ba_home: Path) -> None:
    (tmp_path / "editor.sh").write_text(
        "trap '' INT; echo editing\nwhile [ ! -e saved ]; do sleep 0.05; done\necho ten words >$1\n"
    )
    terminal.expect_exact("scripted model")
    terminal.send("hello\r")
    terminal.expect_exact("I am no model")
    terminal.send("\x07")
    terminal.expect_exact("editing")
    # Ctrl+C in a program that leaves the terminal as it is: a signal to all of them.
    terminal.send("\x03")
    while not any(b'"tool_started"' in log.read_bytes() for log in ba_home.rglob("events.jsonl")):
        terminal.expect([pexpect.TIMEOUT], timeout=0.1)
    (tmp_path / "saved").touch()
    terminal.expect_exact("ten words")
    terminal.expect_exact("read_file")


def test_an_editor_that_fails_gives_the_terminal_back(terminal: pexpect.spawn[str], tmp_path: Path) -> None:
    (tmp_path / "editor.sh").write_text("echo editing\nexit 3\n")
    terminal.expect_exact("scripted model")
    terminal.send("a draft\x07")
    terminal.expect_exact("editing")
    terminal.expect_exact("ended")
    terminal.expect_exact("a draft")


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_it_leaves_when_the_window_is_closed(terminal: pexpect.spawn[str], ba_home: Path, *, busy: bool) -> None:
    """Some window programs and ``tmux kill-server`` close the terminal and send no signal that arrives."""
    terminal.expect_exact("scripted model")
    if busy:
        terminal.send("hello\r")
        terminal.expect_exact("I am no model")
    pty: Any = vars(terminal)["ptyproc"]
    pty.fileobj.close()
    pty.closed = True
    terminal.wait()
    if busy:
        assert turn_ends(ba_home) == [("cancelled", "The terminal was closed.")]


def test_without_colour_nothing_is_coloured_not_even_grey(terminal: pexpect.spawn[str], tmp_path: Path) -> None:
    terminal.close(force=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "BA_HOME": os.environ["BA_HOME"]}
    env["BA_MODEL"] = f"scripted:{script(tmp_path)}"
    env |= {"PYTHONPATH": str(CHECKOUT), "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
    child = pexpect.spawn(
        sys.executable,
        ["-m", "ba_tui", "hello"],
        cwd=str(tmp_path),
        env={**env, "NO_COLOR": "1"},
        encoding="utf-8",
        dimensions=(24, 80),
        timeout=20,
    )
    recording = io.StringIO()
    child.logfile_read = recording
    child.expect_exact("I am no model")
    for key, shown in (("\x10", "Search"), ("\x1b", ""), ("\x0f", ""), ("\x1b", "")):
        child.send(key)
        if shown:
            child.expect_exact(shown)
    child.send("\x1b")
    child.expect_exact("Interrupted")
    child.send("\x11")
    child.expect(pexpect.EOF)
    codes = {code for found in re.findall(r"\x1b\[([\d;:]*)m", recording.getvalue()) for code in found.split(";")}
    # Bold, italic and reverse say what colours would.
    assert codes <= {"", "0", "1", "2", "3", "4", "7", "9", "22", "23", "24", "27"}
    assert "7" in codes


@pytest.mark.parametrize("args", [[], ["-r"], ["demo"], ["hello"]])
def test_a_dumb_terminal_gets_no_full_screen(tmp_path: Path, args: list[str]) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "BA_HOME": os.environ["BA_HOME"], "TERM": "dumb"}
    child = pexpect.spawn(
        sys.executable,
        ["-m", "ba_tui", *args],
        cwd=str(tmp_path),
        env={**env, "PYTHONPATH": str(CHECKOUT)},
        encoding="utf-8",
        timeout=20,
    )
    child.expect(pexpect.EOF)
    child.close()
    why = "This terminal can't show the app (TERM=dumb)."
    said = f'{why} Use ba -p "…" to print one answer.'
    if args == ["demo"]:
        said = f"The demo can't be shown here. {why} ba demo --list prints its chapters."
    assert child.before == f"ba: {said}\r\n"
    assert child.exitstatus == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP], ids=["KILL", "HUP"])
def test_prompts_that_wait_outlive_a_signal(
    terminal: pexpect.spawn[str], ba_home: Path, number: signal.Signals
) -> None:
    terminal.expect_exact("scripted model")
    terminal.send("hello\r")
    terminal.expect_exact("I am no model")
    terminal.send("\x1b[200~first\n  line two\x1b[201~\r")
    terminal.expect_exact("1 waiting")
    while not any("line two" in kept.read_text() for kept in ba_home.rglob("drafts/*.json")):
        terminal.expect([pexpect.TIMEOUT], timeout=0.1)
    terminal.kill(number)
    terminal.expect(pexpect.EOF)
    terminal.wait()
    again = pexpect.spawn(
        sys.executable, ["-m", "ba_tui", "-c"], cwd=terminal.cwd, env=terminal.env, encoding="utf-8", timeout=20
    )
    wanted = ["Not sent before ba ended: 1 prompt.", "first line two"]
    while wanted:
        # Which is painted first does not matter.
        del wanted[again.expect_exact(wanted)]
    again.close(force=True)
