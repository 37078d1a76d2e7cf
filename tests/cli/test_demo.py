"""``ba demo``: its list, its chapters by name, and the scratch folder of each."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from ba_tui.cli.demo import scratch
from ba_tui.resources import places
from tests.program import Program

CHECKOUT = Path(__file__).resolve().parents[2]
NAMES = ["first", "stop", "mention", "analysis", "figures", "skill", "workflow", "compact", "memory", "rewind", "team"]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    folder = tmp_path / "folder"
    folder.mkdir()
    return Program(folder, tmp_path)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_the_chapters_are_listed(program: Program) -> None:
    done = program.here("demo", "--list")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == NAMES
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["demo", "frist"], "The demo has no chapter 'frist'. Did you mean first?"),
        (["demo", "12"], "The demo has no chapter '12'. Chapters: first, stop, "),
        (["demo", "stop"], "The demo can't be shown here. Not a terminal. ba demo --list prints its chapters."),
        (["demo"], "The demo can't be shown here. Not a terminal."),
    ],
)
def test_what_can_not_be_shown_is_said(program: Program, args: list[str], said: str) -> None:
    done = program.here(*args)
    assert said in done.stderr
    assert done.returncode == 1


def test_the_scripted_model_touches_nothing_outside_of_the_demo(program: Program) -> None:
    (program.folder / "notes-2025.md").write_text("keep")
    done = program.here("-p", "--model", "demo", "--permission-mode", "accept-edits", "Show me around.")
    assert "This is a scripted demo, no AI." in done.stdout
    assert "ba demo" in done.stdout
    refused = program.here("-p", "--model", "demo/first", "Show me around.")
    assert refused.returncode == 1
    assert refused.stderr == "ba: 'demo/first' runs in the demo only. Start it: ba demo.\n"
    assert [path.name for path in program.folder.iterdir()] == ["notes-2025.md"]


def test_a_chapter_has_a_home_of_its_own_that_goes_with_it(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BA_PERMISSION_MODE", "bypass")
    own = places()
    (own.config / "themes").mkdir(parents=True)
    (own.config / "themes" / "mine.yaml").write_text("name: mine")
    with scratch(own) as folder:
        assert folder.is_relative_to(temporary)
        assert (folder / "sales.csv").is_file()
        assert places().config == folder.parent / "home"
        assert "BA_PERMISSION_MODE" not in os.environ
        assert (places().config / "themes" / "mine.yaml").is_file()
    assert places() == own
    assert os.environ["BA_PERMISSION_MODE"] == "bypass"
    assert not list(temporary.iterdir())


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[pexpect.spawn[str]]:
    (tmp_path / "temporary").mkdir()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "person"),
        "TMPDIR": str(tmp_path / "temporary"),
        "PYTHONPATH": str(CHECKOUT),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
    }
    child = pexpect.spawn(
        sys.executable,
        ["-m", "ba_tui", "demo", "--no-color"],
        cwd=str(tmp_path),
        env=env,
        encoding="utf-8",
        dimensions=(24, 80),
        timeout=20,
    )
    yield child
    child.close(force=True)


def test_a_chapter_is_picked_left_in_the_middle_and_cleaned_up(terminal: pexpect.spawn[str], tmp_path: Path) -> None:
    terminal.expect_exact("Pick a chapter.")
    terminal.send("\x1b[B\r")
    terminal.expect_exact("How do I stop you?")
    terminal.expect_exact("tell me a long story")
    assert [path.name.startswith("ba-demo-") for path in (tmp_path / "temporary").iterdir()] == [True]
    terminal.send("\x04")
    terminal.expect_exact("Pick a chapter.")
    terminal.send("\x1b")
    terminal.expect_exact("go to a folder of yours and type ba")
    terminal.expect(pexpect.EOF)
    terminal.wait()
    assert terminal.exitstatus == 0
    assert not list((tmp_path / "temporary").iterdir())
    assert not (tmp_path / "person").exists(), "nothing of the user's is written"
    assert not re.search(r"ba -r", terminal.before or "")
