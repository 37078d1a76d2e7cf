"""The app in a real terminal: it follows the background, takes a paste, and gives the terminal back."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

CHECKOUT = Path(__file__).resolve().parents[3]
LIGHT_GROUND = "48;2;251;251;250"
LEFT = "\x1b[?1049l"


@pytest.fixture
def terminal(tmp_path: Path, ba_home: Path) -> Iterator[pexpect.spawn[str]]:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "BA_HOME": str(ba_home),
        "BA_MODEL": "demo",
        "PYTHONPATH": str(CHECKOUT),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
    }
    child = pexpect.spawn(
        sys.executable, ["-m", "ba_tui"], cwd=str(tmp_path), env=env, encoding="utf-8", dimensions=(24, 80), timeout=20
    )
    yield child
    child.close(force=True)


def test_it_follows_a_light_background(terminal: pexpect.spawn[str]) -> None:
    terminal.expect_exact("\x1b]11;?")
    terminal.send("\x1b]11;rgb:ffff/ffff/ffff\x1b\\")
    terminal.expect_exact(LIGHT_GROUND)


def test_a_conversation_ends_with_the_way_back(terminal: pexpect.spawn[str]) -> None:
    terminal.expect_exact("scripted model")
    terminal.send("hel\x1b[200~lo\r" + "long\r" * 20 + "\x1b[201~")
    terminal.expect_exact("[Pasted #1 +22 lines]")
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["TERM", "HUP"])
def test_a_signal_gives_the_terminal_back(terminal: pexpect.spawn[str], number: signal.Signals) -> None:
    terminal.expect_exact("scripted model")
    terminal.kill(number)
    terminal.expect_exact(LEFT)
    terminal.expect(pexpect.EOF)
