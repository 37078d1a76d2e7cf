"""Files of the workspace that are hard links to files outside: they are read, and nothing is written through them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.assembly import connect
from ba_tui.core.events import ToolFinished
from ba_tui.core.results import ToolResult
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import ModelServer
from tests.script import collect


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "outside.txt").write_text("mine\n")
    (work / "linked.txt").hardlink_to(tmp_path / "outside.txt")
    (work / "plain.txt").write_text("plain\n")
    (work / "twin.txt").hardlink_to(work / "plain.txt")
    trust_folder(work)
    return work


async def ran(folder: Path, monkeypatch: pytest.MonkeyPatch, *calls: ScriptedCall) -> list[ToolResult]:
    with ModelServer([*(Step(calls=(call,)) for call in calls), Step(say="Done.")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = connect({"model": "openai/any", "permission_mode": "auto"}, folder).library.create()
        events = await collect(talk.say("look"))
        await talk.close()
    return [event.result for event in events if isinstance(event, ToolFinished)]


def shell(command: str) -> ScriptedCall:
    return ScriptedCall("shell", {"command": command})


async def test_a_command_reads_a_hard_link_and_writes_nothing_through_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [shell("cat linked.txt"), shell("echo more >> linked.txt"), shell("echo more >> twin.txt")]
    read, written, _ = await ran(folder, monkeypatch, *calls)
    assert "mine" in read.text
    assert "Read-only file system" in written.text
    assert "linked.txt has another name outside the workspace (a hard link)" in written.text
    assert (folder.parent / "outside.txt").read_text() == "mine\n"
    assert (folder / "plain.txt").read_text() == "plain\nmore\n"


async def test_a_program_neither_writes_through_a_link_nor_makes_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "write.py").write_text("open('linked.txt', 'a').write('x')")
    (folder / "link.py").write_text("import os\nos.link(os.pardir + '/outside.txt', 'new.txt')")
    await ran(folder, monkeypatch, shell("python3 write.py"), shell("python3 link.py"))
    assert (folder.parent / "outside.txt").read_text() == "mine\n"
    assert not (folder / "new.txt").exists()


async def test_the_file_tools_replace_a_hard_link(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [
        ScriptedCall("read_file", {"path": "linked.txt"}),
        ScriptedCall("edit_file", {"path": "linked.txt", "old_string": "mine", "new_string": "yours"}),
        ScriptedCall("write_file", {"path": "linked.txt", "content": "ours\n"}),
    ]
    results = await ran(folder, monkeypatch, *calls)
    assert not any(each.is_error for each in results)
    assert (folder / "linked.txt").read_text() == "ours\n"
    assert (folder.parent / "outside.txt").read_text() == "mine\n"
