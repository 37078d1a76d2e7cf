"""Instructions of a folder below are said once a file there was mentioned or a tool was called for it, and before the
next request."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.assembly import connect
from ba_tui.core.events import Notice
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import ModelServer
from tests.script import collect


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "AGENTS.md").write_text("Words for all.")
    (tmp_path / "lib" / "AGENTS.md").write_text("Words for lib.")
    (tmp_path / "lib" / "x.py").write_text("print(1)\n")
    (tmp_path / ".claude" / "rules").mkdir(parents=True)
    (tmp_path / ".claude" / "rules" / "py.md").write_text("---\npaths: lib/**/*.py\n---\nWords for Python.")
    trust_folder(tmp_path)
    return tmp_path


async def test_a_folder_below_is_told_of_when_a_file_in_it_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Step(calls=(ScriptedCall("read_file", {"path": "lib/x.py"}),))
    with ModelServer([read, read], last=Step(say="Done.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = connect({"model": "openai/gpt-oss"}, folder).library.create()
        events = await collect(talk.say("read it"))
        await talk.close()
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert notices == ["Instructions apply from now on: .claude/rules/py.md, lib/AGENTS.md."]
    first, second, third = (request.body for request in server.requests)
    assert b"Words for all." in first
    assert b"Words for lib." not in first
    assert b"Words for Python." not in first
    for words in (b"Words for lib.", b"Words for Python."):
        assert second.count(words) == third.count(words) == 1


async def test_a_mention_brings_them_with_the_same_request_and_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer([], last=Step(say="Done.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = connect({"model": "openai/gpt-oss"}, folder).library.create()
        events = await collect(talk.say("explain @lib/x.py"))
        await collect(talk.say("again @lib/x.py"))
        await talk.close()
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert "Instructions apply from now on: .claude/rules/py.md, lib/AGENTS.md." in notices
    first, second = (request.body for request in server.requests[:2])
    for words in (b"Words for lib.", b"Words for Python."):
        assert first.count(words) == second.count(words) == 1
