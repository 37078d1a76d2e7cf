"""A folder of ba that takes no more bytes, or none at all: work is done, and the last line says what is not saved."""

from __future__ import annotations

import json
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ba_tui.cli.streams import tell_of_confinement
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.sandbox.workspace_scan import FileReach
from ba_tui.processes.values import INSIDE
from tests.cli.test_main import ba
from tests.program import Program

__all__ = ["ba"]
ANSWER = ("-p", "-m", "scripted:hello.yaml", "hi")
CLOSED = Path("/sys") if Path("/sys").is_dir() else Path("/System")
"""A folder in which nobody may make another one, the superuser neither."""


@contextmanager
def full(size: int) -> Generator[None]:
    """No file may grow beyond ``size``, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("format", ["text", "json", "claude-stream-json"])
def test_a_session_that_is_not_saved_ends_with_a_line_and_exit_code_2(ba: Program, format: str):
    with full(0):
        done = ba.here(*ANSWER, "--output-format", format)
    assert done.returncode == 2
    assert "Hello there." in done.stdout
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ba: This session was not saved, as ")
    assert "can't be written: File too large. Make room there, or set BA_HOME" in last
    if format == "json":
        assert "Make room" in json.loads(done.stdout.splitlines()[-1])["not_saved"]["hint"]
    assert ba.journals() == []


def test_the_end_of_a_saved_session_that_is_missing_is_said(ba: Program):
    (ba.folder / "hello.yaml").write_text("steps: [{say: One.}, {say: Hello there.}]\n")
    assert ba.here(*ANSWER).returncode == 0
    (journal,) = ba.journals()
    before = journal.read_bytes()
    with full(len(before) + 20):
        done = ba.here("-c", *ANSWER)
    assert (done.returncode, done.stdout) == (2, "Hello there.\n")
    assert done.stderr.splitlines()[-1].startswith("ba: The newest part of this session was not saved, as ")
    assert journal.read_bytes() == before


def test_a_folder_that_is_closed_as_a_whole_is_said_and_trust_counts_for_this_run(ba: Program):
    (ba.folder / ".ba").mkdir()
    (ba.folder / ".ba" / "config.yaml").write_text('permissions: {allow: ["write_file(made.txt)"]}\n')
    (ba.folder / "hello.yaml").write_text(
        "steps: [{calls: [{tool: shell, args: {command: echo read}}, {tool: shell, args: {command: touch made}}]},"
        " {say: Hello there.}]\n"
    )
    closed = Program(ba.folder, ba.home, {"BA_HOME": str(CLOSED / "ba")})
    done = closed.here("--trust", "--allow", "shell(touch made)", *ANSWER, "--output-format", "stream-json")
    first, *_, last = done.stderr.splitlines()
    assert first.startswith(f"ba: {ba.folder} is trusted for this run only: {CLOSED / 'ba'} can't be written (")
    assert "not trusted" not in done.stdout
    assert last.startswith("ba: This session was not saved, as ")
    calls = [json.loads(line) for line in done.stdout.splitlines() if '"tool_result"' in line]
    # What could write is denied where no record of it can be kept.
    assert [call["ok"] for call in calls] == [True, False]
    assert done.returncode == 4
    assert not (ba.folder / "made").exists()
    # Nobody who closes the folder waits for a session.
    (ba.folder / "hello.yaml").write_text("steps: [{say: Hello there.}]\n")
    assert closed.here(*ANSWER).returncode == 0


def test_a_ba_in_the_sandbox_of_another_says_at_once_why_nothing_is_saved(
    ba: Program, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    sandbox = Sandbox(FileReach((ba.folder,), hidden=(ba.home / "ba",)))
    confinement = sandbox.confine()
    variables = confinement.environment if confinement else INSIDE
    sandbox.close()
    closed = Program(ba.folder, ba.home, {**variables, "BA_HOME": str(CLOSED / "ba")})
    done = closed.run(*ANSWER)
    first = done.stderr.splitlines()[0]
    assert first.startswith(
        f"ba: This ba runs in another ba's sandbox, which hides {CLOSED / 'ba'}: nothing of it can be"
    )
    assert done.stdout == "Hello there.\n"
    # A folder that the user names is none that is hidden, and only a sandbox is spoken of.
    for name, home in (("BA_CONFINED", ba.home), ("BA_OTHER", CLOSED / "ba")):
        with monkeypatch.context() as patch:
            patch.setenv(name, "1")
            patch.setenv("BA_HOME", str(home))
            tell_of_confinement()
    assert capsys.readouterr().err == ""


def test_a_full_folder_trusts_for_this_run_but_never_over_a_broken_record(ba: Program):
    (ba.folder / ".ba").mkdir()
    (ba.folder / ".ba" / "config.yaml").write_text("env: {A: b}\n")
    with full(0):
        done = ba.here("--trust", *ANSWER)
    assert "is trusted for this run only" in done.stderr.splitlines()[0]
    (ba.home / "ba").mkdir(exist_ok=True)
    (ba.home / "ba" / "trusted.yaml").write_text("{")
    assert ba.here("--trust", *ANSWER).returncode == 2
    assert (ba.home / "ba" / "trusted.yaml").read_text() == "{"
