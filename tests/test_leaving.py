"""In mode auto, a call to a host that the user has not named asks once data was read: in whole sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import Asked, Event, ToolFinished
from ba_tui.core.questions import Reply
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import ModelServer

AWAY = ScriptedCall("web_fetch", {"url": "http://files.ba-test.invalid/a"})
SEARCH = ScriptedCall("web_search", {"query": "weather"})
READ = ScriptedCall("read_file", {"path": "a.txt"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("48 million\n")
    trust_folder(work)
    return work


async def asked(talk: Conversation, prompt: str, *replies: Reply) -> list[str]:
    """The reasons of the questions of one turn; ``replies`` in order, then no."""
    left, reasons = iter(replies), list[str]()
    turn = talk.say(prompt)
    events: list[Event] = []
    async for event in turn:
        events.append(event)
        if isinstance(event, Asked):
            reasons.append(event.question.reason)
            turn.answer(event.ask_id, next(left, Reply("deny")))
    assert any(isinstance(event, ToolFinished) for event in events)
    return reasons


def steps(*turns: tuple[ScriptedCall, ...]) -> list[Step]:
    return [step for calls in turns for step in (*(Step(calls=(call,)) for call in calls), Step(say="Done."))]


async def test_the_rule_holds_over_turns_answers_and_a_restart(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = steps((AWAY,), (READ, AWAY, SEARCH), (AWAY,), (AWAY,))
    with ModelServer(plan) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        library = connect({"model": "openai/any", "permission_mode": "auto"}, folder).library
        talk = library.create()
        assert await asked(talk, "look") == []
        reasons = await asked(talk, "look again")
        assert len(reasons) == 2
        assert "It contacts files.ba-test.invalid, a host that you have not named, after data was read." in reasons
        await talk.close()
        talk = connect({"model": "openai/any", "permission_mode": "auto"}, folder).library.open(talk.id)
        assert len(await asked(talk, "and now", Reply("once"))) == 1
        assert await asked(talk, "and once more") == []
        await talk.close()


async def test_a_host_in_the_prompt_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer(steps((READ, AWAY))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = connect({"model": "openai/any", "permission_mode": "auto"}, folder).library.create()
        assert await asked(talk, "compare a.txt with files.ba-test.invalid") == []
        await talk.close()


async def test_a_rule_names_a_host(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer(steps((READ, AWAY))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        rule = "web_fetch(domain:files.ba-test.invalid)"
        flags = {"model": "openai/any", "permission_mode": "auto", "permissions.allow": [rule]}
        talk = connect(flags, folder).library.create()
        assert await asked(talk, "compare") == []
        await talk.close()
