"""Checkpoints in the house as it is put together: taken when files may change, rewound with the conversation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.cli.main import run
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import Asked, Checkpointed, Event, Notice, ToolFinished
from ba_tui.core.ports.sessions import FileChange
from ba_tui.core.questions import Reply
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.resources import places
from ba_tui.sessions.checkpoints.keeper import SLACK, session_patch
from ba_tui.settings.sections.agents import CheckpointSettings
from tests.script import collect

SCRIPT = """
steps:
- say: Looking.
  calls: [{tool: read_file, args: {path: a.txt}}, {tool: write_file, args: {path: b.txt, content: two}}]
- {say: Both., calls: [{tool: shell, args: {command: "echo more >> a.txt; mkdir d; echo new > d/z"}}]}
- {say: Done.}
- {say: Again., calls: [{tool: write_file, args: {path: c.txt, content: three}}]}
- {say: Done too.}
last: {say: Only words.}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / ".ba").mkdir()
    (work / "a.txt").write_text("one\n")
    (tmp_path / "script.yaml").write_text(SCRIPT)
    trust_folder(work)
    return work


def talk(folder: Path, mode: str = "auto") -> Conversation:
    flags: dict[str, Any] = {"model": f"scripted:{folder.parent}/script.yaml", "permission_mode": mode}
    return connect(flags, folder, strict=True).library.create()


async def said(made: Conversation, prompt: str, choice: Any = "once") -> list[Event]:
    turn = made.say(prompt)

    def react(event: Event) -> None:
        if isinstance(event, Asked):
            turn.answer(event.ask_id, Reply(choice))

    return await collect(turn, react)


def files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()}


def taken(events: Sequence[Event]) -> list[int]:
    return [event.turn for event in events if isinstance(event, Checkpointed)]


async def test_one_checkpoint_a_turn_before_the_first_change_and_back_again(folder: Path):
    made = talk(folder)
    first = await said(made, "first")
    assert taken(first) == [1]
    kinds = [event.type for event in first]
    assert kinds.index("checkpointed") > kinds.index("tool_finished")
    assert taken(await said(made, "second")) == [2]
    assert taken(await said(made, "third")) == []
    middle = files(folder)
    assert middle == {"a.txt": "one\nmore\n", "b.txt": "two", "c.txt": "three", "z": "new\n"}
    outcome = await made.past.rewind(1)
    assert files(folder) == {"a.txt": "one\n"}
    assert not (folder / "d").exists()
    assert outcome.restored.left == ()
    assert list(made.transcript.messages) == []
    await made.past.rewind(None)
    assert files(folder) == middle
    await made.close()
    library = connect({}, folder, strict=True).library
    copy = library.open(library.fork(made.id).id)
    assert [stop.number for stop in (await copy.past.history()).stops] == [1, 2, 3]
    await copy.past.rewind(2, "files")
    assert files(folder) == {name: text for name, text in middle.items() if name != "c.txt"}
    await copy.close()


async def test_what_is_denied_keeps_nothing(folder: Path, ba_home: Path):
    made = talk(folder, "default")
    events = await said(made, "first", "deny")
    assert any(isinstance(event, ToolFinished) and event.result.is_error for event in events)
    assert taken(events) == []
    await made.close()
    assert not (ba_home / "checkpoints").exists()


async def test_without_git_it_is_said_once_and_work_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch):
    made = talk(folder, "accept-edits")
    monkeypatch.setenv("PATH", "")
    events = [*await said(made, "first"), *await said(made, "second")]
    told = [event.text for event in events if isinstance(event, Notice)]
    assert [text for text in told if "checkpoints" in text] == ["There are no checkpoints: git is not installed."]
    assert (folder / "c.txt").read_text() == "three"
    assert taken(events) == []
    await made.close()


async def test_the_changes_of_a_session_are_printed(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
):
    made = talk(folder)
    await said(made, "first")
    await made.close()
    (info,) = connect({}, folder, strict=True).library.sessions()
    patch = session_patch(places(), info, CheckpointSettings())
    assert b"+more\n" in patch
    assert b"+++ b/d/z" in patch
    assert b"3 files changed" in session_patch(places(), info, CheckpointSettings(), stat=True)
    monkeypatch.chdir(folder)
    assert run(["sessions", "diff", info.id]) == 0
    assert capsysbinary.readouterr().out == patch
    (folder / "a.txt").write_text("one\n")
    for name in ("b.txt", "d/z"):
        (folder / name).unlink()
    assert session_patch(places(), info, CheckpointSettings()) == b""


async def test_what_another_program_wrote_during_the_turn_stays_and_is_named(folder: Path):
    (folder / "notes.txt").write_text("mine\n")
    (folder / "gone.txt").write_text("here\n")
    made = talk(folder, "default")
    turn = made.say("first")
    asked = 0

    def react(event: Event) -> None:
        nonlocal asked
        if isinstance(event, Asked):
            asked += 1
            if asked == 2:
                # Between the call that wrote b.txt and the command, which waits for an answer. Clocks of files tick.
                _tick(folder.parent)
                (folder / "other.txt").write_text("of another program")
                (folder / "notes.txt").write_text("mine, edited elsewhere\n")
                (folder / "b.txt").write_text("two, and formatted")
                (folder / "gone.txt").unlink()
                _tick(folder.parent)
            turn.answer(event.ask_id, Reply("once"))

    await collect(turn, react)
    assert asked == 2
    shown = await _undoing(made)
    assert {(item.path, item.kind) for item in shown if item.stays} == {("other.txt", "gone"), ("notes.txt", "changed")}
    assert {item.path for item in shown if not item.stays} == {"a.txt", "b.txt", "d/z", "gone.txt"}
    outcome = await made.past.rewind(1)
    kept = {"other.txt": "of another program", "notes.txt": "mine, edited elsewhere\n"}
    assert files(folder) == {"a.txt": "one\n", "gone.txt": "here\n", **kept}
    assert dict(outcome.restored.left) == dict.fromkeys(kept, "another program wrote it during the turn")
    await made.past.rewind(None)
    assert files(folder) == {
        "a.txt": "one\nmore\n", "b.txt": "two, and formatted", "z": "new\n", **kept
    }  # fmt: skip
    await made.close()


async def _undoing(made: Conversation) -> Sequence[FileChange]:
    history = await made.past.history()
    assert made.past.files is not None
    return made.past.files.undoing(history.files_before(1), history.since(1))


def _tick(folder: Path) -> None:
    """Wait until the clock of the file system is past the slack that calls are given."""
    probe = folder / "probe"
    probe.write_text("")
    until = probe.stat().st_ctime_ns + 2 * SLACK
    while probe.stat().st_ctime_ns < until:
        probe.write_text("")
