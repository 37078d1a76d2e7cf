"""Tools within the real loop: no argument and no behaviour of a tool ends a turn or leaves a call without a result."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.context.files import find_ripgrep
from ba_tui.core.agent import Agent
from ba_tui.core.errors import StopTurn
from ba_tui.core.events import Asked, Event, ToolFinished, TurnEnded, TurnStarted, event_to_json
from ba_tui.core.messages import Message, Text, ToolOutput, ToolUse, user
from ba_tui.core.provider import ModelInfo, ModelRequest
from ba_tui.core.questions import Reply
from ba_tui.core.results import CommandText, ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.permissions.paths import Workspace
from ba_tui.tools.definitions import Definition
from ba_tui.tools.guards.permission import PermissionGate
from ba_tui.tools.guards.pipeline import guarded, pipeline
from ba_tui.tools.guards.repeats import repeats
from ba_tui.tools.shells import Shell
from ba_tui.tools.toolbox import SessionPlace, builtin_tools
from tests.tools.conftest import allow

DONE = Message("assistant", (Text("done"),), stop="end_turn", origin="assistant")


class Script:
    """A provider that says what it is told, one message a request."""

    def __init__(self, *answers: Message) -> None:
        self.model = ModelInfo("script", "script", "Script")
        self._answers = list(answers)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Message]:
        yield self._answers.pop(0) if self._answers else DONE

    def connect(self) -> None:
        """There is nothing to connect to."""

    async def close(self) -> None:
        """Nothing is open."""


def calls(*uses: tuple[str, dict[str, Any]]) -> Message:
    blocks = tuple(ToolUse(f"id-{random.random()}", name, args) for name, args in uses)
    return Message("assistant", blocks, stop="tool_use", origin="assistant")


async def played(tools: Sequence[Tool], *answers: Message, choice: str = "deny") -> tuple[list[Event], Transcript]:
    """A whole turn; every question is answered with ``choice``."""
    events: list[Event] = []
    turn = Turn(events.append)
    branch = Branch(turn, Transcript())

    async def work() -> None:
        branch.emit(TurnStarted(user("go")))
        ending = TurnEnded("error")
        try:
            await Agent(Script(*answers), tools, "").run(branch)
            ending = TurnEnded("done")
        except StopTurn:
            ending = TurnEnded("limit")
        finally:
            branch.emit(ending)

    turn.run(asyncio.create_task(work()))
    async for event in turn:
        if isinstance(event, Asked):
            turn.answer(event.ask_id, Reply(choice))  # pyright: ignore[reportArgumentType]
    return events, branch.transcript


def assert_ended(events: Sequence[Event]) -> None:
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason in {"done", "limit"}


def assert_paired(transcript: Transcript, events: Sequence[Event]) -> None:
    wanted = [call.id for message in transcript.messages for call in message.calls]
    given = [
        block.tool_use_id
        for message in transcript.messages
        for block in message.blocks
        if isinstance(block, ToolOutput)
    ]
    assert wanted == given
    for event in events:
        event_to_json(event)


@pytest.fixture
def toolset(definitions: Mapping[str, Definition], tmp_path: Path) -> tuple[Tool, ...]:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    place = SessionPlace(Workspace(tmp_path), Shell(shutil.which("bash"), environment), find_ripgrep())
    return tuple(map(pipeline(place, allow, lambda rule, scope: None), builtin_tools(definitions, place)))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["a.txt", "..", "/", "~", "\0", "\ud800", "*", "(", "true", "1/0", "in_progress", "x" * 5_000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@given(st.data())
def test_no_argument_ends_the_loop(toolset: tuple[Tool, ...], data: st.DataObject) -> None:
    uses: list[tuple[str, dict[str, Any]]] = []
    for _ in range(data.draw(st.integers(1, 4))):
        tool = data.draw(st.sampled_from([tool for tool in toolset if tool.name != "shell"]))
        names = st.sampled_from(list(tool.input_schema["properties"]) or ["x"]) | st.text(max_size=5)
        typed = {"string": st.text(max_size=30), "boolean": st.booleans(), "integer": st.integers(1, 30)}
        args: dict[str, Any] = {}
        for name, schema in tool.input_schema["properties"].items():
            kind = schema.get("type")
            if data.draw(st.booleans()) and isinstance(kind, str):
                args[name] = data.draw(typed.get(kind, VALUES))
        args |= data.draw(st.dictionaries(names, VALUES, max_size=2))
        uses.append((tool.name, args))
    events, transcript = asyncio.run(played(toolset, calls(*uses)))
    assert_ended(events)
    finished = [event for event in events if isinstance(event, ToolFinished)]
    assert len(finished) == len(uses)
    wanted = [call.id for message in transcript.messages for call in message.calls]
    assert wanted == [
        block.tool_use_id
        for message in transcript.messages
        for block in message.blocks
        if isinstance(block, ToolOutput)
    ]
    for event in finished:
        event_to_json(event)


RAISED = st.sampled_from(
    [ValueError("bad \ud800"), SystemExit(1), KeyboardInterrupt(), RecursionError(), MemoryError(), OSError(5, "io")]
)
RETURNED = (
    st.none()
    | st.text(max_size=20)
    | st.builds(
        ToolResult,
        st.text(max_size=100) | st.sampled_from(["\ud800", "\x1b]52;c;eA==\x07", "x" * 100_000]),
        st.none() | st.builds(CommandText, st.text(max_size=9), output=st.sampled_from(["\ud800", "\0", "fine"])),
        summary=st.text(max_size=20),
        meta=st.dictionaries(st.text(max_size=3), st.binary(max_size=3) | st.floats(), max_size=2),
    )
)


@given(RAISED | RETURNED, st.booleans())
def test_no_behaviour_ends_the_loop(behaviour: object, timed: bool) -> None:
    async def run(args: Mapping[str, Any], call: Call) -> Any:
        call.report("working")
        if isinstance(behaviour, BaseException):
            raise behaviour
        return behaviour

    tool = Tool("probe", "", {"type": "object"}, run, timeout=5 if timed else None)
    gate = PermissionGate(allow, lambda rule, scope: None, lambda call: Path("/"))
    wrapped = guarded(tool, gate.guard, repeats(()))
    events, transcript = asyncio.run(played((wrapped,), calls(("probe", {}), ("probe", {"a": 1}))))
    assert_ended(events)
    assert_paired(transcript, events)


async def test_work_with_files_and_shell_in_one_turn(toolset: tuple[Tool, ...], tmp_path: Path) -> None:
    events, transcript = await played(
        toolset,
        calls(("read_file", {"path": "a.txt"}), ("grep", {"pattern": "two"})),
        calls(
            ("edit_file", {"path": "a.txt", "old_string": "two", "new_string": "2"}),
            ("shell", {"command": "cat a.txt"}),
        ),
        calls(("read_fil", {"path": "a.txt"})),
    )
    assert (tmp_path / "a.txt").read_text() == "one\n2\n"
    outputs = [event.result.text for event in events if isinstance(event, ToolFinished)]
    assert sorted(outputs[:2]) == ["1\tone\n2\ttwo", "a.txt:2:two"]
    assert outputs[3] == "one\n2"
    assert "Did you mean read_file" in outputs[4]
    assert_paired(transcript, events)


@pytest.mark.parametrize(
    ("name", "args", "malformed"),
    [("glob", {"pattern": "*"}, None), ("glob", {"patern": "*"}, None), ("blog", {}, None), ("glob", {}, '{"pat')],
    ids=["sound", "wrong arguments", "no such tool", "no JSON"],
)
async def test_going_in_circles_ends_the_turn_with_every_call_answered(
    toolset: tuple[Tool, ...], name: str, args: dict[str, Any], malformed: str | None
) -> None:
    uses = [ToolUse(f"id-{number}", name, args, malformed) for number in range(5)]
    again = [Message("assistant", (use,), stop="tool_use", origin="assistant") for use in uses]
    events, transcript = await played(toolset, *again)
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "limit"
    assert sum(isinstance(event, ToolFinished) for event in events) == 3
    assert_paired(transcript, events)


async def test_a_question_is_answered(toolset: tuple[Tool, ...]) -> None:
    use = ("ask_user", {"question": "Which?", "options": ["one", {"label": "two", "description": "more"}]})
    events, _ = await played(toolset, calls(use), choice="deny")
    asked = next(event.question for event in events if isinstance(event, Asked))
    assert [option.label for option in asked.options] == ["one", "two"]
    result = next(event.result for event in events if isinstance(event, ToolFinished))
    assert "did not answer" in result.text


@pytest.mark.parametrize("args", [{"question": " \n\t\u200b"}, {"question": "Which?", "options": ["one", " "]}])
async def test_a_question_of_blanks_is_not_asked(toolset: tuple[Tool, ...], args: dict[str, Any]) -> None:
    events, _ = await played(toolset, calls(("ask_user", args)))
    assert not any(isinstance(event, Asked) for event in events)
    result = next(event.result for event in events if isinstance(event, ToolFinished))
    assert result.error
    assert result.error.kind == "invalid_parameters"
