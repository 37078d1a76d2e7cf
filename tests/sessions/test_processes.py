"""Two processes on one session, and one that is killed while it writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ba_tui.core.errors import SessionLocked
from ba_tui.core.events import Notice, TurnEnded, TurnStarted, event_from_json
from ba_tui.core.transcript import Transcript
from ba_tui.sessions import journal
from ba_tui.sessions.journal import JournalFile
from tests.sessions.shelf import folder_of, library, stored, turn
from tests.sessions.test_journal_properties import valid

ID = "20261121-120000-ab12"
CHECKOUT = Path(__file__).resolve().parents[2]

WRITER = """
import sys
from pathlib import Path
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.records import Header
from tests.sessions.shelf import turn

folder = Path(sys.argv[1])
journal = JournalFile(folder, Header(folder.name, "/srv/project", 1.0))
number = 0
while True:
    for event in turn(f"prompt {number} " + "x" * 3000):
        journal.append(event)
    number += 1
    if number == 3:
        print("running", flush=True)
"""

HOLDER = """
import sys
from pathlib import Path
from ba_tui.sessions.journal import JournalFile

journal = JournalFile.open(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
journal.close()
"""


def child(code: str, folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline()
    return process


@pytest.mark.parametrize("killing", range(3))
def test_killed_while_writing_the_session_goes_on_with_all_that_was_on_disk(tmp_path: Path, killing: int) -> None:
    folder = folder_of(tmp_path, ID)
    with child(WRITER, folder) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    whole = [
        line for line in (folder / "events.jsonl").read_bytes().splitlines(keepends=True)[1:] if line.endswith(b"\n")
    ]
    on_disk = [event_from_json(line) for line in whole]
    assert sum(isinstance(event, TurnStarted) for event in on_disk) >= 3
    journal = JournalFile.open(folder)
    read = journal.read()
    assert read[: len(on_disk)] == on_disk
    # A notice follows the last turn when the kill cut the first line of another one off.
    assert isinstance([event for event in read if not isinstance(event, Notice)][-1], TurnEnded)
    assert valid(Transcript(events=read).messages)
    more = turn("after")
    for event in more:
        journal.append(event)
    journal.close()
    assert JournalFile.peek(folder).read() == [*read, *more]


async def test_only_one_process_writes_a_session(tmp_path: Path) -> None:
    file = stored(tmp_path, ID, turn("one"))
    shelf = library(tmp_path)
    with child(HOLDER, file.parent) as process:
        assert shelf.sessions()[0].locked_by == f"pid {process.pid}"
        with pytest.raises(SessionLocked, match=f"open in pid {process.pid}") as refused:
            shelf.open(ID)
        assert "--fork" in refused.value.hint
        for change in (lambda: shelf.rename(ID, "Mine"), lambda: shelf.delete(ID)):
            with pytest.raises(SessionLocked):
                change()
        assert "About one." in "".join(shelf.export(ID, "md"))
        assert shelf.fork(ID).turns == 1
        assert process.stdin
        process.stdin.close()
        process.wait()
    assert shelf.find(ID).locked_by == ""
    conversation = shelf.open(ID)
    assert shelf.find(ID).locked_by == f"pid {os.getpid()}"
    with pytest.raises(SessionLocked, match="already open here"):
        shelf.open(ID)
    await conversation.close()
    shelf.rename(ID, "Mine")
    assert shelf.find(ID).title == "Mine"


def test_the_lock_of_a_killed_process_is_stale(tmp_path: Path) -> None:
    file = stored(tmp_path, ID, turn("one"))
    with child(HOLDER, file.parent) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert (file.parent / "lock").stat().st_size > 0
    assert journal.owner(file.parent) == ""
    JournalFile.open(file.parent).close()


def test_the_pid_of_another_process_of_today_is_no_owner(tmp_path: Path) -> None:
    """Numbers of processes are used again: the kernel's lock counts, not what the file says."""
    file = stored(tmp_path, ID, turn("one"))
    import socket

    (file.parent / "lock").write_text(f'{{"pid": {os.getppid()}, "host": "{socket.gethostname()}"}}')
    assert journal.owner(file.parent) == ""
    JournalFile.open(file.parent).close()
