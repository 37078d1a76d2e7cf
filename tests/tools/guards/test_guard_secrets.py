"""What a tool finds of secrets does not reach the model, unless the user says so; people see it as it is."""

from __future__ import annotations

import asyncio
import string
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any, Literal

import pytest

from ba_tui.core.calls import run_call
from ba_tui.core.events import Event, MessageDone, Notice, Steered, ToolFinished, TurnStarted
from ba_tui.core.messages import Message, Text, ToolUse, user
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import Source, ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.permissions.policy import Ask
from ba_tui.permissions.secrets.masking import fill
from ba_tui.permissions.secrets.sharing import PromptSecrets, SecretSharing
from ba_tui.permissions.verdicts import JudgedCall
from ba_tui.tools.guards.output import secrets
from tests.tools.conftest import Harness

TOKEN = "ghp_" + "".join(Random(1).choices(string.ascii_letters + string.digits, k=36))


def notices(harness: Harness) -> list[str]:
    return [event.text for event in harness.events if isinstance(event, Notice)]


def guarded(harness: Harness, sharing: SecretSharing, *names: str) -> None:
    """Tools that find the token, within a guard with other settings than the harness's."""
    harness.tools |= {name: secrets(sharing)(finding(harness.tools[name])) for name in names}


def finding(tool: Tool) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        return ToolResult(f"token: {TOKEN}\nplain")

    return replace(tool, run=run)


async def test_a_token_in_a_file_is_kept_from_the_model_and_told_once(harness: Harness) -> None:
    harness.write("conf.ini", f"name = ba\ntoken = {TOKEN}\n")
    result = await harness.run("read_file", path="conf.ini")
    assert TOKEN not in result.text
    assert "name = ba" in result.text
    assert "[secret: GitHub token]" in result.text
    assert isinstance(result.display, Source)
    assert TOKEN in result.display.text
    await harness.run("grep", pattern="token")
    await harness.run("read_file", path="conf.ini", offset=2)
    told = notices(harness)
    assert [text for text in told if "read_file conf.ini" in text] == [
        "Kept from the model: a GitHub token in the result of read_file conf.ini."
    ]
    assert not any(TOKEN in text for text in told)


async def test_a_mark_is_never_written_over_a_secret(harness: Harness) -> None:
    target = harness.write("conf.ini", f"token = {TOKEN}\n")
    await harness.run("read_file", path="conf.ini")
    result = await harness.run("write_file", path="conf.ini", content="token = [secret: GitHub token]\n")
    assert result.is_error
    assert TOKEN in target.read_text()


@pytest.mark.parametrize("form", ["token = {}\n", "a\n[x]\ntoken: '{}' # {}\n"])
async def test_a_placeholder_of_a_masked_copy_is_never_written_over_a_secret(harness: Harness, form: str) -> None:
    sharing = SecretSharing()
    sharing.search.known.add([TOKEN, "correcthorse"], "GitHub token")
    harness.tools["write_file"] = secrets(sharing)(harness.tools["write_file"])
    target = harness.write("conf.ini", f"token = {TOKEN}\n")
    await harness.run("read_file", path="conf.ini")
    masked = fill(TOKEN)
    result = await harness.run("write_file", path="conf.ini", content=form.format(masked, masked))
    assert result.is_error
    assert "is a placeholder for a secret" in result.text
    assert TOKEN in target.read_text()


async def test_text_about_placeholders_can_be_written(harness: Harness) -> None:
    sharing = SecretSharing()
    sharing.search.known.add([TOKEN], "GitHub token")
    harness.tools["write_file"] = secrets(sharing)(harness.tools["write_file"])
    text = "A copy holds `masked-by-ba` and x, such as masked-by-baxx.\n"
    result = await harness.run("write_file", path="guide.md", content=text)
    assert not result.is_error


@pytest.mark.parametrize(("choice", "shared"), [("once", True), ("deny", False)])
async def test_asking_is_done_once_for_a_secret(
    harness: Harness, choice: Literal["once", "deny"], shared: bool
) -> None:
    asked: list[Question] = []

    def answer(question: Question) -> Reply:
        asked.append(question)
        return Reply(choice)

    harness.answer = answer
    guarded(harness, SecretSharing("ask"), "now")
    results = [await harness.run("now"), await harness.run("now")]
    assert [TOKEN in result.text for result in results] == [shared, shared]
    assert [(question.risks, question.rule) for question in asked] == [(("shares a secret",), None)]
    assert all("plain" in result.text for result in results)


async def test_sharing_can_be_allowed(harness: Harness) -> None:
    guarded(harness, SecretSharing("allow"), "now")
    assert TOKEN in (await harness.run("now")).text
    assert not notices(harness)


async def test_what_an_interrupted_tool_had_printed_is_redacted_too() -> None:
    events: list[Event] = []
    call = Call("one", Branch(Turn(events.append), Transcript()))
    started = asyncio.Event()

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        call.report(f"exported {TOKEN}")
        started.set()
        await asyncio.Event().wait()
        return ToolResult("never")

    guarded = secrets(SecretSharing())(Tool("x", "", {}, run))
    task = asyncio.ensure_future(run_call(guarded, ToolUse("one", "x", {}), call))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert "exported [secret: GitHub token]" in finished.result.text
    assert TOKEN not in finished.result.text


async def test_the_person_is_told_about_a_secret_of_their_own_once() -> None:
    events: list[object] = []
    branch = Branch(Turn(events.append), Transcript())
    prompts = PromptSecrets(SecretSharing())
    branch.emit(TurnStarted(user(f"use {TOKEN}, please")))
    await prompts.before(branch)
    branch.emit(MessageDone(Message("assistant", (Text("ok"),), origin="assistant")))
    await prompts.before(branch)
    branch.emit(Steered(user("look\U000e0061\U000e0062 here \U0001f469\u200d\U0001f467", origin="steer")))
    await prompts.before(branch)
    branch.emit(MessageDone(Message("assistant", (Text("ok"),), origin="assistant")))
    branch.emit(Steered(user("PASSWORD=Tr0ub4dor3 and PASSWORD=0therW0rd", origin="steer")))
    await prompts.before(branch)
    await prompts.before(branch)
    assert [event.text for event in events if isinstance(event, Notice)] == [
        "Your message contains a GitHub token; it is sent to the model unchanged.",
        "Your message contains invisible characters (U+E0061, U+E0062); the model reads them.",
        "Your message contains 2 passwords; it is sent to the model unchanged.",
    ]
    assert TOKEN in branch.transcript.messages[0].text


async def test_the_journal_keeps_what_the_model_saw(harness: Harness) -> None:
    harness.write("conf.ini", f"token = {TOKEN}\n")
    await harness.run("read_file", path="conf.ini")
    (finished,) = [event for event in harness.events if isinstance(event, ToolFinished)]
    assert TOKEN not in finished.result.text


async def test_a_question_warns_of_what_cannot_be_seen(harness: Harness) -> None:
    def ask(request: JudgedCall) -> Ask:
        return Ask("the test asks", None)

    harness.equip(ask)
    harness.answer = lambda question: Reply("deny")
    await harness.run("write_file", path="a.txt", content="admin\u202etxt")
    (question,) = harness.asked
    assert question.warnings == ("content contains hidden characters: U+202E RIGHT-TO-LEFT OVERRIDE",)
