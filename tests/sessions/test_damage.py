"""Session files that are empty, huge, torn or in another encoding: listed, opened, searched, and left as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ba_tui.core.errors import StorageError
from ba_tui.core.events import Notice, TurnEnded, TurnStarted, event_to_json
from ba_tui.core.messages import user
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.records import FILE
from tests.sessions.shelf import folder_of, library, stored, turn

A = "20261121-120000-ab12"
CHECKOUT = Path(__file__).resolve().parents[2]
HUGE = event_to_json(TurnStarted(user("w" * 12_000_000))) + b"\n"
DAMAGE = {
    "latin-1 in a line": b'{"type":"notice","agent":"main","at":1,"text":"caf\xe9"}\n',
    "another encoding": '{"type":"notice"}\n'.encode("utf-16"),
    "zeros": b"\0" * 4096 + b"\n",
    "a huge line of no sense": b"x" * 12_000_000 + b"\n",
    "deep nesting": b"[" * 200_000 + b"\n",
    "half a line, glued": b'{"type":"turn_star{"type":"notice"}\n',
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_in_the_middle_costs_its_line_alone(tmp_path: Path, damage: bytes) -> None:
    first, second = turn("one"), turn("two")
    file = stored(tmp_path, A, first)
    sound = file.read_bytes()
    rest = b"".join(event_to_json(event) + b"\n" for event in second)
    file.write_bytes(sound + damage + rest)
    shelf = library(tmp_path)
    (info,) = shelf.sessions()
    assert (info.title, info.turns) == ("one", 2)
    assert [found.id for found in shelf.search("About two")] == [A]
    journal = JournalFile.open(file.parent)
    events = journal.read()
    assert [event for event in events if not isinstance(event, Notice)] == [*first, *second]
    assert any(isinstance(event, Notice) and "damaged" in event.text for event in events)
    assert [event for event in journal.tail(50) if not isinstance(event, Notice)] == [*first, *second]
    journal.append(TurnStarted(user("three")))
    journal.append(TurnEnded("done"))
    journal.close()
    assert file.read_bytes().startswith(sound + damage + rest)
    assert shelf.find(A).turns == 3
    assert json.loads("".join(shelf.export(A, "json")))["turns"][-1]["prompt"] == "three"


def test_a_huge_line_that_makes_sense_is_kept(tmp_path: Path) -> None:
    file = stored(tmp_path, A, turn("one"))
    file.write_bytes(file.read_bytes() + HUGE + event_to_json(TurnEnded("done")) + b"\n")
    shelf = library(tmp_path)
    assert shelf.find(A).turns == 2
    assert [found.id for found in shelf.search("About one")] == [A]
    prompts = [event.prompt.text for event in JournalFile.peek(file.parent).read() if isinstance(event, TurnStarted)]
    assert [len(prompt) for prompt in prompts] == [3, 12_000_000]


def test_an_empty_file_is_no_session_and_can_be_written_on(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, A)
    folder.mkdir(parents=True)
    (folder / FILE).touch()
    shelf = library(tmp_path)
    assert shelf.sessions() == shelf.search("one") == []
    journal = JournalFile.open(folder)
    assert journal.read() == journal.tail(5) == []
    for event in turn("one"):
        journal.append(event)
    journal.close()
    assert shelf.find(A).title == "one"


@pytest.mark.parametrize("kind", ["pipe", "device", "loop"])
def test_what_is_no_file_is_refused_and_never_waited_for(tmp_path: Path, kind: str) -> None:
    file = stored(tmp_path, A, turn("one"))
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero" if kind == "device" else file)
    shelf = library(tmp_path)
    assert shelf.sessions() == shelf.search("one") == []
    for look in (shelf.find, shelf.open, shelf.outline, lambda id: "".join(shelf.export(id, "md"))):
        with pytest.raises(StorageError, match="cannot be read"):
            look(A)
    with pytest.raises(StorageError, match="cannot be read"):
        JournalFile.open(file.parent)


FULL = """
import asyncio, resource, signal, sys
from pathlib import Path
from tests.script import collect
from tests.sessions.shelf import library

async def main(home):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    talk = library(home).create()
    await collect(talk.say("before"))
    file = next(home.glob("sessions/*/*/events.jsonl"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 50, hard))
    told = [event for event in await collect(talk.say("without space")) if event.type == "notice"]
    print(len(told), told[0].level, "Free some space" in told[0].hint, "not saved" in told[0].text)
    print([message.text for message in talk.transcript.messages][:3])
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    await collect(talk.say("with space"))
    await talk.close()
    print(library(home).sessions()[0].turns, len(library(home).search("without space")))

asyncio.run(main(Path(sys.argv[1])))
"""


def test_a_full_disk_is_said_once_and_all_is_saved_when_there_is_space(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, timeout=60, env=environment
    )
    assert done.stdout.splitlines() == [
        "1 error True True",
        "['before', 'Noted.', 'without space']",
        "3 1",
    ], done.stderr
