"""Models that write their calls: found out at the first reply, remembered, and asked in their own form from then on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import BadRequest
from ba_tui.core.events import MessageRestarted, Notice, TextDelta, ToolFinished
from ba_tui.core.messages import Message, Text, ToolOutput, user
from ba_tui.core.provider import ModelRequest, ReplyChunk
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.catalog import load_catalog
from ba_tui.providers.text_calls.detection import CallDetector, Formats, Learnt
from ba_tui.providers.text_calls.text_tools import TextTools
from ba_tui.resources import bundled, places
from ba_tui.settings import load_settings
from tests.providers.text_calls.tools import TOOLS
from tests.script import Script, collect, conversation, says

REACT = 'Thought: I look.\nAction: {"tool": "read_file", "args": {"path": "a.txt"}}'
FENCED = 'I will read it.\n\n```json\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```'
TAGGED = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n</tool_call>'


def streamed(text: str, size: int) -> Callable[[ModelRequest], AsyncIterator[ReplyChunk]]:
    """A reply in pieces of ``size`` characters, then whole."""

    async def play(_: ModelRequest) -> AsyncIterator[ReplyChunk]:
        for start in range(0, len(text), size):
            yield TextDelta(text[start : start + size])
        yield says(text)

    return play


def asking(text: str = "Read a.txt.", tools: Sequence[Any] = TOOLS) -> ModelRequest:
    return ModelRequest("You are tested.", [user(text)], tools)


async def heard(provider: Any, request: ModelRequest) -> list[ReplyChunk]:
    return [chunk async for chunk in provider.stream(request)]


def seen(chunks: Sequence[ReplyChunk]) -> str:
    """The words that stand on the screen at the end."""
    shown = ""
    for chunk in chunks:
        shown = (
            "" if isinstance(chunk, MessageRestarted) else shown + (chunk.text if isinstance(chunk, TextDelta) else "")
        )
    return shown.strip()


def final(chunks: Sequence[ReplyChunk]) -> Message:
    assert isinstance(chunks[-1], Message)
    return chunks[-1]


@pytest.mark.parametrize("size", [1, 3, 1_000])
@pytest.mark.parametrize(("text", "prose"), [(FENCED, "I will read it."), (TAGGED, ""), (REACT, "")])
async def test_a_call_written_as_text_becomes_a_call_and_leaves_no_words(
    tmp_path: Path, text: str, prose: str, size: int
) -> None:
    formats = Formats(tmp_path / "tool_calls.json")
    provider = CallDetector(Script(streamed(text, size)), formats)
    chunks = await heard(provider, asking())
    await provider.close()
    (call,) = final(chunks).calls
    assert (call.name, call.input, final(chunks).stop) == ("read_file", {"path": "a.txt"}, "tool_use")
    assert final(chunks).text == seen(chunks) == prose
    assert [chunk.text for chunk in chunks if isinstance(chunk, Notice)] == [
        "test/model is asked to write its tool calls as text from now on: it wrote a call as text."
    ]


async def test_what_was_learnt_holds_for_later_runs_and_shapes_the_next_request(tmp_path: Path) -> None:
    first = Script(says(TAGGED), says("It is empty."))
    provider = CallDetector(first, Formats(tmp_path / "tool_calls.json"))
    reply = final(await heard(provider, asking()))
    result = Message("user", (ToolOutput(reply.calls[0].id, "(empty)"),))
    later = ModelRequest("You are tested.", [user("Read a.txt."), reply, result], TOOLS)
    assert final(await heard(provider, later)).text == "It is empty."
    await provider.close()
    assert (first.requests[1].tools, "read_file(path" in first.requests[1].system) == ((), True)
    assert [message.text for message in first.requests[1].messages[-2:]][1] == "Observation: (empty)"
    learnt = Formats(tmp_path / "tool_calls.json").of("test/model")
    assert learnt
    assert (learnt.form, learnt.why) == ("tags", "it wrote a call as text")


def test_settings_and_the_catalogue_win_over_what_was_learnt(tmp_path: Path) -> None:
    flags = {"providers.mine.base_url": "http://127.0.0.1:9/v1", "providers.fixed.base_url": "http://127.0.0.1:8/v1"}
    loaded = load_settings({**flags, "providers.fixed.tools": "native"}, places(), tmp_path)
    access = ProviderAccess(loaded, load_catalog([bundled("config") / "models.yaml"]), places())
    assert access.model("mine/x").tools == "auto"
    for name in ("mine/x", "fixed/x"):
        access.formats.learn(name, Learnt("tags", "it wrote a call as text"))
    assert (access.model("mine/x").tools, access.model("fixed/x").tools) == ("tags", "native")


async def test_examples_of_a_tool_are_shown_in_the_models_own_form() -> None:
    script = Script(says("Final Answer: yes"))
    shown = replace(TOOLS[0], facts=replace(TOOLS[0].facts, examples=({"path": "src/main.py", "limit": 5},)))
    await heard(TextTools(script, "react"), asking(tools=[shown]))
    wanted = 'Example: Action: {"tool": "read_file", "args": {"path": "src/main.py", "limit": 5}}'
    assert wanted in script.requests[0].system


async def test_a_server_that_refuses_tools_is_asked_again_without(tmp_path: Path) -> None:
    script = Script(BadRequest("model 'x' does not support tools"), says(REACT))
    provider = CallDetector(script, Formats(tmp_path / "tool_calls.json"))
    assert final(await heard(provider, asking())).calls[0].name == "read_file"
    await provider.close()
    assert [bool(request.tools) for request in script.requests] == [True, False]


async def test_a_model_that_calls_natively_stays_as_it_is(tmp_path: Path) -> None:
    native = says("", ("read_file", {"path": "a"}))
    talk = 'A call looks like this:\n```json\n{"name": "read_file", "arguments": {"path": "a"}}\n```\n'
    provider = CallDetector(Script(native, says(talk), streamed(talk, 5)), Formats(tmp_path / "tool_calls.json"))
    assert (await heard(provider, asking()))[-1] is native
    assert final(await heard(provider, asking())).text == talk
    chunks = await heard(provider, asking())
    assert (final(chunks).text, seen(chunks)) == (talk, talk.strip())
    assert not (tmp_path / "tool_calls.json").exists()


async def test_a_damaged_file_of_formats_costs_only_what_it_said(tmp_path: Path) -> None:
    (tmp_path / "tool_calls.json").write_text('{"test/model": {"form": "morse"}, "other": ')
    assert Formats(tmp_path / "tool_calls.json").of("test/model") is None


async def test_an_unreadable_call_is_answered_with_the_form_and_at_last_stands_as_words() -> None:
    broken = 'Action: {"tool": "read_file", "args": {"path": '
    script = Script(*[says(broken) for _ in range(3)])
    provider = TextTools(script, "react")
    messages: list[Message] = [user("Read a.txt.")]
    for _ in range(2):
        reply = final(await heard(provider, ModelRequest("", messages, TOOLS)))
        messages += [reply, Message("user", (ToolOutput(reply.calls[0].id, "refused"),))]
    reply = final(await heard(provider, ModelRequest("", messages, TOOLS)))
    assert (reply.calls, "read_file" in reply.text) == ((), True)
    told = script.requests[-1].messages[-1].text
    assert told.startswith("Observation: Error: The action can't be read: it breaks off before its end.")
    assert 'Action: {"tool": "NAME OF A TOOL"' in told


async def test_a_made_up_observation_ends_the_reply_before_it(tmp_path: Path) -> None:
    text = f"{REACT}\nObservation: it says 42\nFinal Answer: 42"
    provider = TextTools(Script(streamed(text, 7)), "react")
    chunks = await heard(provider, asking())
    assert (final(chunks).calls[0].name, "42" in seen(chunks), "42" in final(chunks).text) == (
        "read_file",
        False,
        False,
    )


async def test_pictures_of_a_result_stay_beside_its_text() -> None:
    script = Script(says(REACT), says("Final Answer: a cat"))
    provider = TextTools(script, "react")
    reply = final(await heard(provider, asking()))
    result = Message("user", (ToolOutput(reply.calls[0].id, "a picture"), Text("And now?")))
    answer = await heard(provider, ModelRequest("", [user("Read."), reply, result], TOOLS))
    assert (seen(answer), final(answer).text) == ("a cat", "a cat") or final(answer).text == "a cat"
    assert [block.text for block in script.requests[1].messages[-1].blocks if isinstance(block, Text)] == [
        "Observation: a picture",
        "And now?",
    ]


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ('Action: read_file\nAction Input: {"path": a.txt", }', "The action input can't be read"),
        ('Action: read_file\nAction Input: {"path": "a.txt\nObservation: done', "The action input can't be read"),
        ('Action: opn_file\nAction Input: {"path": "a.txt"}', "There is no tool 'opn_file'"),
        ('Action Input: {"path": "a.txt"}', "no line “Action:” before it"),
    ],
)
async def test_a_first_call_that_is_written_wrongly_goes_back_with_the_reason(
    tmp_path: Path, written: str, reason: str
) -> None:
    script = Script(says(f"Thought: I look.\n{written}"), says("Sorry."))
    talk = conversation(CallDetector(script, Formats(tmp_path / "tool_calls.json")), *TOOLS)
    events = await collect(talk.say("Read a.txt."))
    assert talk.transcript.messages[-1].text == "Sorry."
    (ended,) = [event.result for event in events if isinstance(event, ToolFinished)]
    assert ended.is_error
    assert reason in "".join(message.text for message in script.requests[1].messages) + ended.text
