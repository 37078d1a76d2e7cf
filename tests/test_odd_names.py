"""Folders and files whose names are no UTF-8 work in every part; requests hold replacement characters for them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import Asked, Event, Notice, ToolFinished
from ba_tui.core.questions import Reply
from ba_tui.permissions.paths import PathRefused, Workspace
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import ModelServer

ODD = os.fsdecode(b"n\xe4me.txt")
SHOWN = "n\ufffdme.txt"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / os.fsdecode(b"caf\xe9 \xff")
    try:
        (work / os.fsdecode(b"s\xfcb") / ".git").mkdir(parents=True)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    (work / ".git").mkdir()
    (work / ODD).write_text("needle in it\n")
    (work / os.fsdecode(b"s\xfcb") / "a.txt").write_text("needle two\n")
    (work / "AGENTS.md").write_text("Rules.")
    monkeypatch.chdir(work)
    trust_folder(work)
    return work


def call(tool: str, **args: Any) -> Step:
    return Step(calls=(ScriptedCall(tool, args),))


async def talked(work: Path, monkeypatch: pytest.MonkeyPatch, prompt: str, *steps: Step) -> tuple[str, list[Event]]:
    """What was sent, as text, and all events of one turn."""
    with ModelServer([*steps], last=Step(say="Done.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = connect({"model": "openai/gpt-4o", "sandbox": "off"}, work).library.create()
        turn, events = talk.say(prompt), list[Event]()
        async for event in turn:
            events.append(event)
            if isinstance(event, Asked):
                turn.answer(event.ask_id, Reply("once"))
        await talk.close()
    sent = "\n".join(request.body.decode("utf-8") for request in server.requests)
    assert not re.search(r"\\ud[89a-f]", sent, re.IGNORECASE), "a lone surrogate"
    return sent, events


def results(events: list[Event]) -> list[str]:
    return [event.result.text for event in events if isinstance(event, ToolFinished)]


async def test_tools_see_and_find_such_names(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent, events = await talked(
        work,
        monkeypatch,
        f"Look at @{SHOWN}",
        call("list_files", depth=3),
        call("glob", pattern="**/*.txt"),
        call("grep", pattern="needle"),
        call("read_file", path=SHOWN),
        call("edit_file", path=SHOWN, old_string="needle", new_string="pin"),
        call("write_file", path="s\ufffdb/new.txt", content="new\n"),
        call("shell", command="cd s*b; ls"),
        call("shell", command="ls"),
    )
    listed, globbed, grepped, read, _, _, entered, after = results(events)
    assert SHOWN in listed
    assert globbed.splitlines() == [SHOWN, "s\ufffdb/a.txt"]
    assert sorted(grepped.splitlines()) == [f"{SHOWN}:1:needle in it", "s\ufffdb/a.txt:1:needle two"]
    assert read == "1\tneedle in it"
    assert (work / ODD).read_text() == "pin in it\n"
    assert (work / os.fsdecode(b"s\xfcb") / "new.txt").read_text() == "new\n"
    assert "the folder is now s\ufffdb" in entered
    assert after.startswith("a.txt\nnew.txt"), "the next command starts in the folder that the last one ended in"
    assert "Rules." in sent
    assert f"{SHOWN} as it is now" in sent
    assert not [event for event in events if isinstance(event, Notice) and event.level != "info"]


async def test_sessions_and_checkpoints_keep_such_names(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit = (call("read_file", path=SHOWN), call("edit_file", path=SHOWN, old_string="needle", new_string="pin"))
    await talked(work, monkeypatch, "change it", *edit)
    library = connect({"model": "openai/gpt-4o"}, work).library
    (info,) = library.sessions()
    assert info.cwd == work
    assert [each.id for each in library.search("pin")] == [info.id]
    elsewhere = work.parent / "elsewhere"
    elsewhere.mkdir()
    again: Conversation = connect({"model": "openai/gpt-4o"}, elsewhere).library.open(info.id)
    assert again.cwd == work
    await again.history()
    await again.past.rewind(1)
    assert (work / ODD).read_text() == "needle in it\n"
    await again.close()


async def test_such_names_are_offered_and_can_be_taken(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = connect({"model": "openai/gpt-4o"}, work).library.create()
    mentions = talk.inventory.mentions
    assert mentions
    (found,) = await mentions.search("me.txt")
    assert found.text == SHOWN
    assert [weight.name for weight in await mentions.weigh(f"@{found.text}")] == [SHOWN]
    await talk.close()


def test_what_looks_alike_is_not_guessed(work: Path) -> None:
    (work / os.fsdecode(b"n\xe5me.txt")).write_text("other")
    with pytest.raises(PathRefused, match="fits 2 files with lookalike names"):
        Workspace(work).resolve(SHOWN)
    (work / SHOWN).write_text("its own name")
    assert Workspace(work).resolve(SHOWN) == work / SHOWN
    assert Workspace(work).resolve("gone\ufffd.txt") == work / "gone\ufffd.txt"
    with pytest.raises(PathRefused, match="holds a character that paths can't have"):
        Workspace(work).resolve("a\ud800b")
