"""Commands of the user's own: what runs, what the model is told of them, and what it never learns."""

from __future__ import annotations

import asyncio
import random
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import Asked, Event, Notice, ToolFinished, ToolProgress, TurnEnded
from ba_tui.core.questions import Reply
from ba_tui.core.results import CommandText, ToolResult
from ba_tui.core.turn import Turn
from ba_tui.permissions.sandbox.confinement import find
from ba_tui.permissions.sandbox.layout import bubblewraps
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import ModelServer
from tests.script import collect


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    trust_folder(work)
    return work


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer([], last=Step(say="Noted.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        yield server


def opened(folder: Path, **flags: Any) -> Conversation:
    return connect({"model": "openai/any", **flags}, folder).library.create()


async def ran(talk: Conversation, command: str, *, private: bool = False) -> ToolResult:
    events = await collect(talk.shell.run(command, private=private))
    assert not any(isinstance(event, Asked) for event in events)
    return finished(events)


def finished(events: Sequence[Event]) -> ToolResult:
    return next(event.result for event in events if isinstance(event, ToolFinished))


def printed(result: ToolResult) -> str:
    assert isinstance(result.display, CommandText)
    return result.display.output


async def test_the_model_reads_a_shared_command_with_the_next_prompt(folder: Path, server: ModelServer) -> None:
    talk = opened(folder)
    assert printed(await ran(talk, "echo out-$((40 + 2)); exit 3")) == "out-42\n"
    assert not server.requests
    await collect(talk.say("what now?"))
    (request,) = server.requests
    assert b"echo out-$((40 + 2)); exit 3" in request.body
    assert b"out-42" in request.body
    assert b"exit code 3" in request.body
    await collect(talk.say("and again?"))
    assert server.requests[1].body.count(b"out-42") == 1
    await talk.close()


async def test_no_request_ever_holds_a_private_command(folder: Path, server: ModelServer) -> None:
    talk = opened(folder)
    assert printed(await ran(talk, "echo hush-$((40 + 2))", private=True)) == "hush-42\n"
    await collect(talk.say("what did I run?"))
    id = talk.id
    await talk.close()
    library = connect({"model": "openai/any"}, folder).library
    other = library.create()
    await collect(other.say(f"see @session:{id}"))
    await other.close()
    again = library.open(id)
    await collect(again.say("and now?"))
    await again.close()
    assert len(server.requests) == 3
    assert not [request for request in server.requests if b"hush" in request.body]


async def test_recall_does_not_find_a_private_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = (ScriptedCall("recall", {"query": "hu"}), ScriptedCall("recall", {"round": 1}))
    with ModelServer([Step(say="Yes?"), Step(calls=calls), Step(say="Nothing.")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = opened(folder)
        await collect(talk.say("hello"))
        await ran(talk, "echo hu''sh", private=True)
        await collect(talk.say("find it"))
        await talk.close()
        assert not [request for request in server.requests if b"hu''sh" in request.body]


async def test_both_are_kept_for_the_person(folder: Path, server: ModelServer) -> None:
    talk = opened(folder)
    await collect(talk.say("hello"))
    await ran(talk, "echo shared")
    await ran(talk, "echo hush", private=True)
    await talk.close()
    library = connect({"model": "openai/any"}, folder).library
    again = library.open(talk.id)
    results = [event.result for event in await again.history() if isinstance(event, ToolFinished)]
    assert [printed(result) for result in results] == ["shared\n", "hush\n"]
    document = "".join(library.export(talk.id, "md"))
    assert "echo shared" in document
    assert "echo hush" in document
    # What was shared before the end of ba is told after it.
    await collect(again.say("go on"))
    assert b"echo shared" in server.requests[-1].body
    await again.close()


async def test_what_was_shared_with_a_turn_that_is_taken_back_is_shared_with_the_next(
    folder: Path, server: ModelServer
) -> None:
    talk = opened(folder)
    await collect(talk.say("first"))
    await ran(talk, "echo kept-between")
    await collect(talk.say("second"))
    await talk.past.rewind(2, "conversation")
    await collect(talk.say("second, in other words"))
    assert server.requests[-1].body.count(b"$ echo kept-between") == 1
    await talk.close()


async def test_a_rule_that_denies_holds_and_nothing_is_shared(folder: Path, server: ModelServer) -> None:
    (folder / ".ba").mkdir()
    (folder / ".ba" / "config.yaml").write_text("permissions: {deny: ['shell(rm *)']}\n")
    trust_folder(folder)
    talk = opened(folder)
    (folder / "a.txt").write_text("a")
    refused = await ran(talk, "rm a.txt")
    assert refused.error
    assert refused.error.kind == "permission_denied"
    assert "shell(rm *)" in refused.text
    assert (folder / "a.txt").exists()
    await collect(talk.say("hello"))
    assert b"rm a.txt" not in server.requests[0].body
    await talk.close()


@pytest.mark.parametrize("mode", ["default", "plan"])
async def test_no_mode_asks_about_the_persons_own_words(folder: Path, server: ModelServer, mode: str) -> None:
    talk = opened(folder, permission_mode=mode)
    await ran(talk, 'touch made.txt && python3 -c \'open("more.txt", "w")\'')
    assert {path.name for path in folder.iterdir()} >= {"made.txt", "more.txt"}
    await talk.close()


async def test_a_folder_that_nobody_trusts_does_not_stop_the_person(tmp_path: Path, server: ModelServer) -> None:
    talk = connect({"model": "openai/any"}, tmp_path).library.create()
    assert printed(await ran(talk, "echo fine")) == "fine\n"
    await talk.close()


async def test_the_commands_have_a_folder_of_their_own(folder: Path, server: ModelServer) -> None:
    talk = opened(folder)
    await ran(talk, "cd sub")
    assert printed(await ran(talk, "pwd")) == f"{folder / 'sub'}\n"
    assert talk.transcript.cwd is None
    await talk.close()
    again = connect({"model": "openai/any"}, folder).library.open(talk.id)
    assert printed(await ran(again, "pwd")) == f"{folder / 'sub'}\n"
    await again.close()


@dataclass
class Started:
    """A command that has printed something, its id, and its events as they come."""

    turn: Turn
    call_id: str
    events: list[Event]
    followed: asyncio.Task[None]


async def started(talk: Conversation, command: str, *, private: bool = False) -> Started:
    turn = talk.shell.run(command, private=private)
    events: list[Event] = []
    stirred = asyncio.Event()

    async def follow() -> None:
        async for event in turn:
            events.append(event)
            stirred.set()

    followed = asyncio.create_task(follow())
    while not any(isinstance(event, ToolProgress) for event in events):
        stirred.clear()
        await stirred.wait()
    progress = next(event for event in events if isinstance(event, ToolProgress))
    return Started(turn, progress.call_id, events, followed)


async def test_a_command_is_stopped_with_what_it_printed(folder: Path, server: ModelServer) -> None:
    talk = opened(folder)
    command = await started(talk, "echo begun; sleep 60")
    command.turn.cancel()
    await command.followed
    assert isinstance(command.events[-1], TurnEnded)
    assert command.events[-1].reason == "cancelled"
    assert "begun" in finished(command.events).text
    await collect(talk.say("hello"))
    assert b"begun" in server.requests[0].body
    await talk.close()


async def test_a_command_runs_beside_a_turn_and_joins_its_next_request(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "notes.md").write_text("words\n")
    steps = [Step(calls=(ScriptedCall("ask_user", {"question": "Ready?"}),)), Step(say="Done.")]
    with ModelServer(steps) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = opened(folder)
        turn = talk.say("work")
        async for event in turn:
            if isinstance(event, Asked):
                await ran(talk, "echo mean''while")
                turn.answer(event.ask_id, Reply("text", "yes"))
        await talk.close()
    first, second = server.requests
    assert b"echo mean''while" not in first.body
    assert b"echo mean''while" in second.body


async def test_a_shared_command_in_the_background_is_the_models_to_read_and_a_private_one_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids: dict[bool, str] = {}
    talk = opened(folder)
    jobs = talk.inventory.jobs
    assert jobs
    for private in (False, True):
        command = await started(talk, f"echo {'hush' if private else 'ticking'}; sleep 60", private=private)
        assert jobs.detach(command.call_id)
        await command.followed
        ids[private] = finished(command.events).summary
    asks = tuple(ScriptedCall("shell_output", {"id": id, "all": True}) for id in ids.values())
    with ModelServer([Step(calls=asks), Step(say="Done.")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        events = await collect(talk.say("look"))
    results = [event.result for event in events if isinstance(event, ToolFinished)]
    shared, private_one = sorted(results, key=lambda result: result.is_error)
    assert "ticking" in shared.text
    assert private_one.is_error
    assert "hush" not in private_one.text
    assert f"There are: {ids[False]}" in private_one.text
    assert jobs.output(ids[True]) == "hush\n"
    await talk.close()


async def test_what_a_shared_command_prints_of_secrets_is_kept_from_the_model(
    folder: Path, server: ModelServer
) -> None:
    token = "ghp_" + "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=36))
    (folder / "notes.txt").write_text(f"token {token}\n")
    talk = opened(folder)
    result = await ran(talk, "cat notes.txt")
    assert token in printed(result)
    await ran(talk, f"echo {token}")
    await collect(talk.say("hello"))
    assert token.encode() not in server.requests[0].body
    await talk.close()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("vim notes.md", "vim needs the whole terminal"),
        ("cat a | less", "less needs a keyboard"),
        ("sudo htop", "htop needs the whole terminal"),
        ("python3", "python3 waits for input"),
    ],
)
async def test_an_interactive_program_says_what_to_do_instead(
    folder: Path, server: ModelServer, command: str, said: str
) -> None:
    talk = opened(folder)
    result = await ran(talk, command)
    assert result.error
    assert said in result.error.message
    assert result.error.hint
    assert not talk.transcript.shared.waiting
    await talk.close()


@pytest.mark.parametrize("command", ["echo 'print(6)' | python3", "vim --version || true", "echo vim less top"])
async def test_what_needs_no_keyboard_runs(folder: Path, server: ModelServer, command: str) -> None:
    talk = opened(folder)
    result = await ran(talk, command)
    assert result.error is None
    await talk.close()


async def test_nothing_is_left_running_when_the_session_is_closed(folder: Path, server: ModelServer) -> None:
    talk = opened(folder)
    command = await started(talk, "echo begun; sleep 60")
    await talk.close()
    await command.followed
    error = finished(command.events).error
    assert error
    assert error.message.startswith("Interrupted: the session was closed.")
    assert not [event for event in command.events if isinstance(event, Notice)]


@pytest.mark.parametrize("private", [False, True])
async def test_a_command_writes_the_workspace_alone_and_sees_no_file_of_the_home_folder(
    folder: Path, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, private: bool
) -> None:
    found = find(bubblewraps())
    if found.mechanism is None:
        pytest.skip("; ".join(found.troubles))
    home = tmp_path / "home"
    home.mkdir()
    (home / "diary.txt").write_text("dear diary")
    monkeypatch.setenv("HOME", str(home))
    talk = opened(folder)
    # A file that the command names may be read: it is the user's word. This one is only found.
    code = "import os, pathlib; h = pathlib.Path(os.environ['HOME']); print([each.read_text() for each in h.iterdir()])"
    result = await ran(talk, f'python3 -c "{code}"; echo 1 > ~/made.txt; echo 2 > inside.txt', private=private)
    assert "dear diary" not in printed(result)
    assert (folder / "inside.txt").read_text() == "2\n"
    assert [path.name for path in home.iterdir() if path.name == "made.txt"] == []
    await talk.close()


@pytest.mark.parametrize("end", ["cancel", "close"])
async def test_the_processes_of_a_command_end_with_it(folder: Path, server: ModelServer, end: str) -> None:
    """Its file stops growing, whatever was said about its end."""
    talk = opened(folder)
    command = await started(talk, "(while :; do echo tick >> ticks; sleep 0.01; done) & echo begun; wait")
    ticks = folder / "ticks"
    while not ticks.exists():  # noqa: ASYNC110 - another process has no event
        await asyncio.sleep(0.005)
    if end == "cancel":
        command.turn.cancel()
    else:
        await talk.close()
    await command.followed
    size = -1
    # The command has a moment to end its work; one that goes on meets the time limit of the test.
    while size != (size := ticks.stat().st_size):  # noqa: ASYNC110 - another process has no event
        await asyncio.sleep(0.15)
    await talk.close()
