"""Commands in whole conversations: what is sent for one, what it runs, and who is asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from ba_tui.assembly import connect
from ba_tui.cli.main import run
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Asked, Event, Judged, Notice, Steered, TurnEnded, TurnStarted
from ba_tui.core.questions import Reply
from ba_tui.permissions.trust.grants import trust_folder

SCRIPT = "steps: [{say: One.}, {say: Two.}]\nlast: {say: More.}\n"


class Work:
    """A trusted project with commands, and a conversation in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".git").mkdir(parents=True)
        for name in "ab":
            (folder / f"{name}.yaml").write_text(SCRIPT)

    def command(self, name: str, text: str, where: str = ".claude") -> None:
        path = self.folder / where / "commands" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def open(self, **flags: object) -> Conversation:
        trust_folder(self.folder)
        return connect({"model": f"scripted:{self.folder}/a.yaml", **flags}, self.folder).library.create()


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    work = Work(tmp_path / "work")
    monkeypatch.chdir(work.folder)
    return work


async def said(talk: Conversation, text: str, reply: Callable[[Asked], Reply] | None = None) -> list[Event]:
    turn, events = talk.say(text), list[Event]()
    async for event in turn:
        events.append(event)
        if isinstance(event, Asked):
            assert reply, event.question
            turn.answer(event.ask_id, reply(event))
    return events


def sent(events: list[Event]) -> str:
    """What went with the prompt for the command."""
    notes = [event.message for event in events if isinstance(event, Steered) and event.message.origin == "user"]
    (note,) = notes
    assert note.hidden
    return note.text


async def test_a_command_is_sent_with_its_text_and_shown_as_typed(work: Work):
    work.command("fix", "---\nargument-hint: [issue]\n---\nFix issue $1 now.")
    work.command("frontend/form", "Make a form.")
    talk = work.open()
    events = await said(talk, "/fix 12")
    (started,) = [event for event in events if isinstance(event, TurnStarted)]
    assert started.prompt.text == talk.title == "/fix 12"
    assert sent(events) == "The command /fix stands for:\n\nFix issue 12 now."
    assert "Make a form.\n\nArguments: a b" in sent(await said(talk, "/frontend:form a b"))
    assert "Fix issue 12 now." in talk.transcript.messages[0].text
    assert talk.inventory.commands
    own = [line.name for line in talk.inventory.commands.lines() if line.source != "bundled"]
    assert own == ["fix", "frontend:form"]
    await talk.close()


async def test_what_it_runs_is_judged_like_any_call(work: Work):
    work.command("look", "Now: !`echo one-$1`")
    asked: list[Asked] = []

    def once(event: Asked) -> Reply:
        asked.append(event)
        return Reply("once")

    talk = work.open(**{"permissions.ask": ["shell"], "sandbox": "off"})
    events = await said(talk, "/look two", once)
    assert asked[0].question.args == {"command": "echo one-two"}
    assert asked[0].question.reason.endswith(". It is in .claude/commands/look.md.")
    assert "Now: one-two" in sent(events)
    assert [event.text for event in events if isinstance(event, Notice)] == ["/look ran: `echo one-two`"]
    assert [event.agent for event in events if isinstance(event, Judged)] == ["/look"] * 2
    await talk.close()


@pytest.mark.parametrize("flags", [{"permissions.deny": ["shell"]}, {"permission_mode": "plan"}, {}])
async def test_a_denied_command_sends_nothing(work: Work, flags: dict[str, object]):
    work.command("go", "Then !`touch made`, !`touch more`")
    talk = work.open(**flags, sandbox="off")
    events = await said(talk, "/go", lambda _: Reply("deny", "not now"))
    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.error
    assert ended.error.kind == "prompt_refused"
    start, _, why = ended.error.message.partition(": ")
    assert start == "/go was not sent, as `touch made` was not run"
    assert why == "You did not allow it." or flags
    assert not talk.transcript.messages
    assert not (work.folder / "made").exists()
    await said(talk, "go on")
    assert [message.text for message in talk.transcript.messages][1:] == ["One."]
    await talk.close()


async def test_a_turn_that_is_stopped_while_a_command_runs_is_not_begun(work: Work):
    work.command("wait", "!`sleep 60`")
    talk = work.open(**{"permissions.allow": ["shell"], "sandbox": "off"})
    turn, events = talk.say("/wait"), list[Event]()
    async for event in turn:
        events.append(event)
        if event.type == "judged":
            asyncio.get_running_loop().call_soon(turn.cancel)
    assert not talk.transcript.messages
    assert events[-1].type == "turn_ended"
    assert events[-2].type == "tool_finished"
    await talk.close()


async def test_files_it_changes_are_kept_for_a_rewind(work: Work):
    work.command("make", "Made: !`touch made`")
    talk = work.open(**{"permissions.allow": ["shell"], "sandbox": "off"})
    await said(talk, "hello")
    await said(talk, "/make")
    assert (work.folder / "made").exists()
    stops = (await talk.past.history()).stops
    assert [bool(stop.checkpoint) for stop in stops] == [False, True]
    await talk.past.rewind(2)
    assert not (work.folder / "made").exists()
    await talk.close()


async def test_its_model_answers_this_turn_only(work: Work):
    (work.folder / "b.yaml").write_text("steps: [{say: From the other.}]\nlast: {say: More.}\n")
    work.command("other", f"---\nmodel: scripted:{work.folder}/b.yaml\n---\nHello.")
    work.command("none", "---\nmodel: nobody/nothing\n---\nHello.")
    talk = work.open()
    for prompt in ("/other", "again", "/none"):
        notices = [event for event in await said(talk, prompt) if isinstance(event, Notice)]
    answers = [message for message in talk.transcript.messages if message.role == "assistant"]
    assert [message.model for message in answers] == [f"scripted:{work.folder}/{name}.yaml" for name in "baa"]
    assert answers[0].text == "From the other."
    assert "asks for the model nobody/nothing; the session's model is used instead" in notices[0].text
    await talk.close()


async def test_broken_and_unknown_commands(work: Work):
    work.command("bad", "---\nx\n---\nHello.")
    work.command("good", "Hello.")
    talk = work.open()
    commands = talk.inventory.commands
    assert commands
    commands.check("/good")
    commands.check("/tmp is a folder")
    commands.check("/a/b")
    with pytest.raises(UsageError, match=r"/bad can't be used: \.claude/commands/bad\.md:2: "):
        commands.check("/bad")
    with pytest.raises(UsageError, match="There is no command /goood") as caught:
        commands.check("/goood 1")
    assert caught.value.hint == "Did you mean /good?"
    ended = (await said(talk, "/bad"))[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.error
    assert "bad.md:2" in ended.error.message
    await talk.close()


@pytest.mark.usefixtures("empty_stdin")
def test_print_mode_takes_commands(work: Work, capsys: pytest.CaptureFixture[str]) -> None:
    work.command("fix", "Fix $ARGUMENTS: !`echo now`")
    trust_folder(work.folder)
    model = ["-m", f"scripted:{work.folder}/a.yaml"]
    assert run(["-p", "/fix it", *model, "--allow", "shell(echo *)", "--output-format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"] == "One."
    assert run(["-p", "/fixx it", *model]) == 1
    assert "There is no command /fixx. Did you mean /fix?" in capsys.readouterr().err
    assert run(["-p", "/fix it", *model, "--deny", "shell"]) == 4
    assert "/fix was not sent, as `echo now` was not run" in capsys.readouterr().err
    work.command("later", "Not vouched for.")
    assert run(["-p", "/fix it", *model]) == 1
    assert "There is no command /fix." in capsys.readouterr().err


async def test_files_it_names_come_with_it_and_what_commands_print_names_none(work: Work):
    (work.folder / "a.md").write_text("The first file.")
    (work.folder / "b.md").write_text("The second file.")
    work.command("see", "See @a.md, and !`echo @b.md`")
    talk = work.open(**{"permissions.allow": ["shell(echo *)"], "sandbox": "off"})
    await said(talk, "/see")
    assert "The first file." in talk.transcript.messages[0].text
    assert "The second file." not in talk.transcript.messages[0].text
    await said(talk, "/see @b.md")
    assert talk.transcript.messages[2].text.count("The second file.") == 1
    await talk.close()


async def test_its_tools_are_allowed_in_its_turn_once_the_person_said_so(work: Work):
    head = "---\nallowed-tools: Bash(./tool:*)\n---\n"
    (work.folder / "tool").write_text("#!/bin/sh\necho used\n")
    (work.folder / "tool").chmod(0o755)
    work.command("make", f"{head}!`./tool one`")
    work.command("plain", "!`./tool one`")
    talk = work.open(sandbox="off")
    asked: list[str] = []

    def answers(*choices: Literal["once", "deny"]) -> Callable[[Asked], Reply]:
        left = list(choices)

        def reply(event: Asked) -> Reply:
            asked.append(event.question.text)
            return Reply(left.pop(0))

        return reply

    confirming, running = "Let /make use its tools without asking?", "Allow shell?"
    await said(talk, "/make", answers("deny", "once"))
    await said(talk, "/make", answers("once"))
    await said(talk, "/make", answers())
    assert asked == [confirming, running, confirming]
    await said(talk, "/plain", answers("deny"))
    assert asked[3:] == [running]
    work.command("make", f"{head}Changed. !`./tool one`")
    await talk.close()
    talk = work.open(sandbox="off")
    await said(talk, "/make", answers("deny", "deny"))
    assert asked[4:] == [confirming, running]
    await talk.close()


async def test_a_skill_starts_by_its_name_with_what_is_wanted(work: Work):
    work.command("git", "My own.")
    talk = work.open()
    assert "My own." in sent(await said(talk, "/git"))
    assert not talk.transcript.skills
    await said(talk, "/charts of a.csv")
    (active,) = talk.transcript.skills
    assert (active.id, active.parameters, active.by) == ("charts", "of a.csv", "person")
    await talk.close()
