"""The scripted model: its order, its conditions, its pace, taking up a talk again, and scripts from files."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from ba_tui.core.errors import ErrorInfo, ProviderError, ServerOverloaded, UsageError
from ba_tui.core.events import MessageDone, TextDelta, ThinkingDelta, ToolFinished, TurnStarted
from ba_tui.core.messages import Usage, user
from ba_tui.core.provider import ModelRequest, ReplyChunk
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.transcript import Transcript
from ba_tui.providers.scripted import (
    ModelScript,
    ScriptedCall,
    ScriptedProvider,
    ScriptFailure,
    Step,
    When,
    read_script,
)
from tests.providers.conftest import collect, until_error

ASK = ModelRequest("", [user("Hello")], ())
DENIED = failure("permission_denied", "The user said no.")
CALL = Step(say="May I?", calls=(ScriptedCall("shell", {"command": "ls"}),))
BRANCHES = (
    CALL,
    Step(say="Then not.", when=When(denied=True)),
    Step(say="It failed.", when=When(denied=False, failed=True)),
    Step(say="Done.", when=When(failed=False)),
    Step(say="Bye."),
)


async def answer(provider: ScriptedProvider, transcript: Transcript, result: ToolResult | None = None) -> str:
    """One request, its answer, and ``result`` for every call of it."""
    message = (await collect(provider.stream(ModelRequest("", transcript.messages, ()))))[-1]
    transcript.apply(MessageDone(message))
    for call in message.calls:
        assert result is not None
        transcript.apply(ToolFinished(call.id, result))
    return message.text


@pytest.mark.parametrize(
    ("result", "then"),
    [
        (DENIED, "Then not."),
        (failure("timeout", "Too slow."), "It failed."),
        (ToolResult("a file"), "Done."),
    ],
)
async def test_a_step_may_depend_on_what_became_of_the_calls(result: ToolResult, then: str) -> None:
    provider, transcript = ScriptedProvider(BRANCHES), Transcript(events=[TurnStarted(user("Go"))])
    assert await answer(provider, transcript, result) == "May I?"
    assert await answer(provider, transcript) == then
    transcript.apply(TurnStarted(user("And now?")))
    assert await answer(provider, transcript) == "Bye."


async def test_an_interrupted_call_is_known() -> None:
    steps = (CALL, Step(say="You stopped me.", when=When(interrupted=True)), Step(say="On."))
    provider, transcript = ScriptedProvider(steps), Transcript(events=[TurnStarted(user("Go"))])
    message = (await collect(provider.stream(ModelRequest("", transcript.messages, ()))))[-1]
    transcript.apply(MessageDone(message))
    transcript.apply(TurnStarted(user("Go on")))
    assert await answer(provider, transcript) == "You stopped me."


async def test_a_talk_taken_up_again_goes_on_where_it_stood() -> None:
    steps = (*BRANCHES[:4], Step(error=ScriptFailure("overloaded")), Step(say="After."))
    transcript = Transcript(events=[TurnStarted(user("Go"))])
    first = ScriptedProvider(steps)
    await answer(first, transcript, DENIED)
    await answer(first, transcript)
    transcript.apply(TurnStarted(user("More")))
    second = ScriptedProvider(steps)
    with pytest.raises(ServerOverloaded):
        await answer(second, transcript)
    assert await answer(second, transcript) == "After."
    transcript.apply(TurnStarted(user("More")))
    with pytest.raises(ProviderError, match="no step left"):
        await answer(ScriptedProvider(steps), transcript)


ALTERNATIVES = """
steps:
  - say: May I?
    calls:
      - {tool: shell, id: one, args: {command: ls}}
      - {tool: todo, args: {items: [{is: {if: {done: [one]}, then: completed, else: pending}}]}}
  - - when: {done: [one], result: "a file"}
      say: It is done.
    - when: {done: [one]}
      say: It printed something else.
    - say: It is not done.
  - - when: {not: {said: "@notes"}}
      say: Mention it.
      stays: true
    - say: Thank you.
  - - when: {compacted: true}
      say: Shorter.
    - say: As long as before.
"""


@pytest.fixture
def alternatives(tmp_path: Path) -> ModelScript:
    path = tmp_path / "script.yaml"
    path.write_text(ALTERNATIVES)
    return read_script(path)


@pytest.mark.parametrize(
    ("result", "then", "status"),
    [
        (ToolResult("a file"), "It is done.", "completed"),
        (ToolResult("nothing"), "It printed something else.", "completed"),
        (DENIED, "It is not done.", "pending"),
    ],
)
async def test_the_first_alternative_that_fits_is_given_and_the_others_are_passed_over(
    alternatives: ModelScript, result: ToolResult, then: str, status: str
) -> None:
    script = replace(alternatives, steps=(*alternatives.steps, alternatives.steps[0]))
    provider, transcript = ScriptedProvider(script), Transcript(events=[TurnStarted(user("Go"))])
    assert await answer(provider, transcript, result) == "May I?"
    assert transcript.messages[-2].calls[1].input == {"items": [{"is": "pending"}]}, "nothing was done before"
    assert await answer(provider, transcript) == then
    transcript.apply(TurnStarted(user("Well?")))
    assert await answer(provider, transcript) == "Mention it."
    transcript.apply(TurnStarted(user("Hm?")))
    assert await answer(ScriptedProvider(script), transcript) == "Mention it.", (
        "the step stays, also when taken up again"
    )
    transcript.apply(TurnStarted(user("See @notes.md")))
    assert await answer(provider, transcript) == "Thank you."
    transcript.apply(TurnStarted(user("More")))
    assert await answer(provider, transcript) == "As long as before."
    transcript.apply(TurnStarted(user("Again")))
    assert await answer(provider, transcript, ToolResult("yes")) == "May I?"
    assert transcript.messages[-2].calls[1].input == {"items": [{"is": status}]}


async def test_a_compressed_conversation_is_known(alternatives: ModelScript) -> None:
    script = replace(alternatives, steps=alternatives.steps[-2:])
    summary = user("What was said so far.", origin="compaction")
    request = ModelRequest("", [summary, user("Go on")], ())
    assert (await collect(ScriptedProvider(script).stream(request)))[-1].text == "Shorter."


@pytest.mark.parametrize(("again", "then"), [(True, "one two"), (False, "three")])
async def test_an_answer_that_was_stopped_is_given_again_unless_the_script_says_otherwise(
    again: bool, then: str
) -> None:
    provider = ScriptedProvider([Step(say="one two", again=again), Step(say="three"), Step(say="four")])
    stopped = cast("AsyncGenerator[ReplyChunk]", provider.stream(ASK))
    async for _ in stopped:
        break
    await stopped.aclose()
    assert (await collect(provider.stream(ASK)))[-1].text == then


async def test_the_pace_is_a_delay_before_each_piece() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    script = ModelScript((Step(say="one two three"), Step(say="four five", delay=0)), delay=0.03)
    provider = ScriptedProvider(script, sleep=sleep)
    pieces = [chunk.text for chunk in await collect(provider.stream(ASK)) if isinstance(chunk, TextDelta)]
    assert pieces == ["one", " two", " three"]
    assert slept == [0.03] * 3
    await collect(provider.stream(ASK))
    assert len(slept) == 3


@pytest.mark.parametrize("text", ["x" * 100, "  lead", "trail \n", "a\n\n  b", "没有空格的长句子也要分成小块", "\n"])
async def test_pieces_make_up_the_text(text: str) -> None:
    chunks = await collect(ScriptedProvider([Step(say=text, think=text)]).stream(ASK))
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta)) == text
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, ThinkingDelta)) == text


async def test_an_error_may_come_in_the_middle_of_the_words() -> None:
    step = Step(say="one two three four", error=ScriptFailure("overloaded", after=2))
    chunks, error = await until_error(ScriptedProvider([step]).stream(ASK))
    assert [chunk.text for chunk in chunks] == ["one", " two"]
    assert isinstance(error, ServerOverloaded)


async def test_arguments_of_a_call_are_the_messages_own() -> None:
    step = Step(calls=(ScriptedCall("shell", {"list": [1]}),))
    provider = ScriptedProvider([step, step])
    first, second = [(await collect(provider.stream(ASK)))[-1] for _ in range(2)]
    first.calls[0].input["list"].append(2)
    assert second.calls[0].input == step.calls[0].args == {"list": [1]}


FULL = """
delay: 0.02
steps:
  - think: I should look.
    say: |
      Reading *it*.
    calls:
      - {tool: read_file, args: {path: sales.csv, lines: [1, 2]}}
      - tool: now
        id: mine
    usage: {input: 900, output: 40, cache_read: 5}
    next: And then?
  - when: {denied: true}
    say: Then not.
    stop: refusal
    delay: 0.5
  - error: {kind: rate_limited, message: Slow down., retry_after: 2, after: 3}
last:
  say: That was all.
"""


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(FULL)
    script = read_script(path)
    assert script.delay == 0.02
    assert script.last == Step(say="That was all.")
    assert script.steps[0] == Step(
        say="Reading *it*.\n",
        think="I should look.",
        calls=(ScriptedCall("read_file", {"path": "sales.csv", "lines": [1, 2]}), ScriptedCall("now", {}, "mine")),
        usage=Usage(900, 40, 5),
        next="And then?",
    )
    assert script.steps[1] == Step(say="Then not.", stop="refusal", when=When(denied=True), delay=0.5)
    planned = ScriptFailure("rate_limited", "Slow down.", 2, 3)
    assert script.steps[2].error == planned
    assert planned.error().info() == ErrorInfo("rate_limited", "Slow down.")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "steps"),
        ("delay: 1\n", 1, "steps"),
        ("steps: none\n", 1, "a list"),
        ("steps:\n  - say: [a\n", 3, "not valid YAML"),
        ("steps:\n  - sya: hello\n", 2, "unknown key steps[1].sya"),
        ("steps:\n  - say: a\n  - usage: {input: 1}\n", 3, "steps[2] must be a step"),
        ("steps:\n  - say: 42\n", 2, "steps[1].say must be a text"),
        ("steps:\n  - calls: [{args: {}}]\n", 2, "tool"),
        ("steps:\n  - calls:\n      - tool: x\n        args: [1]\n", 4, "mapping"),
        ("steps:\n  - calls:\n      - tool: x\n        args: {when: 2026-01-01}\n", 4, "quotes"),
        ("steps:\n  - say: a\n    stop: whenever\n", 3, "end_turn"),
        ("steps:\n  - say: a\n    delay: -1\n", 3, "0 or more"),
        ("steps:\n  - say: a\n    when: {denied: perhaps}\n", 3, "true or false"),
        ("steps:\n  - say: a\n    when: {done: one}\n", 3, "a list"),
        ("steps:\n  - - say: a\n    - say: b\n      when: {sad: true}\n", 4, "unknown key steps[1][2].when.sad"),
        ("steps:\n  - say: a\n    usage: {input: 1.5}\n", 3, "a whole number"),
        ("steps:\n  - error: {kind: sadness}\n", 2, "overloaded"),
        ("steps:\n  - error: {message: oh}\n", 2, "kind"),
    ],
)
def test_a_broken_script_is_named_with_line_and_expectation(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_script(path)
    assert f"{path}:{line}" in str(caught.value)
    assert said in str(caught.value)


def test_a_script_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.yaml can't be read"):
        read_script(tmp_path / "none.yaml")
