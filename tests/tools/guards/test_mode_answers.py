"""A mode that is chosen while a question waits answers it where it allows the call, and only there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ba_tui.core.events import Answered, Asked, Judged, Mode
from ba_tui.core.questions import Reply
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.permissions.answers import bundled_rules
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.verdicts import Bounds
from ba_tui.tools.guards.permission import PermissionGate
from tests.tools.conftest import Harness


class Waiting:
    """One call whose question waits."""

    def __init__(self, harness: Harness, modes: Sequence[Mode] = (), quiet: float = 0) -> None:
        self.harness = harness
        self.policy = Policy(Workspace(harness.root), bundled_rules(), bounds=Bounds(bypass=True, quiet=quiet))
        for mode in modes:
            self.policy.set_mode(mode)
        gate = PermissionGate(
            self.policy.judge, self.policy.remember, lambda call: harness.root,
            mode_changed=self.policy.mode_changes.settled,
        )  # fmt: skip
        self._guard = gate.guard
        self.runs: list[Mapping[str, Any]] = []

    def tool(self, name: str, effect: Effect, target: str, concern: str = "") -> Tool:
        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            self.runs.append(args)
            return ToolResult("ran")

        async def worry(args: Mapping[str, Any]) -> str:
            return concern

        paths = ("path",) if target == "path" else ()
        return Tool(name, "", {}, run, effect, facts=ToolFacts(target=target, paths=paths), concern=worry)

    async def begin(self, tool: Tool, **args: Any) -> asyncio.Future[ToolResult]:
        task = asyncio.ensure_future(self._guard(tool).run(args, Call("c1", self.harness.branch)))
        await self.harness.until(lambda: bool(self.harness.asked))
        # The wait for another mode begins in a task of its own.
        await asyncio.sleep(0)
        return task

    def answer(self, reply: Reply) -> bool:
        asked = [event for event in self.harness.events if isinstance(event, Asked)]
        return self.harness.turn.answer(asked[-1].ask_id, reply)

    @property
    def judged(self) -> list[tuple[str, str]]:
        return [(event.verdict, event.by) for event in self.harness.events if isinstance(event, Judged)]


async def test_a_mode_that_allows_the_call_answers(harness: Harness) -> None:
    waiting = Waiting(harness)
    task = await waiting.begin(waiting.tool("edit_file", Effect.WRITE, "path"), path="a.txt")
    waiting.policy.set_mode("accept-edits")
    assert (await task).text == "ran"
    assert waiting.judged == [("ask", "mode"), ("allow", "mode")]
    answered = [event.reply for event in harness.events if isinstance(event, Answered)]
    assert [reply.by for reply in answered] == ["mode"]
    assert not waiting.answer(Reply("deny"))


@pytest.mark.parametrize(
    ("tool", "target", "about", "mode"),
    [
        ("edit_file", "path", ".git/config", "accept-edits"),
        ("edit_file", "path", "../x", "accept-edits"),
        ("shell", "command", "make", "accept-edits"),
        ("edit_file", "path", "a.txt", "plan"),
        ("shell", "command", "make", "auto"),
    ],
)
async def test_a_mode_that_does_not_leaves_it_to_the_person(
    harness: Harness, tool: str, target: str, about: str, mode: Mode
) -> None:
    waiting = Waiting(harness)
    effect = Effect.WRITE if target == "path" else Effect.EXECUTE
    task = await waiting.begin(waiting.tool(tool, effect, target), **{target: about})
    waiting.policy.set_mode(mode)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not task.done()
    assert waiting.answer(Reply("deny", "not now"))
    assert "not now" in (await task).text
    assert waiting.runs == []


async def test_a_reason_of_the_tool_is_no_mode_s_to_answer(harness: Harness) -> None:
    waiting = Waiting(harness)
    tool = waiting.tool("write_file", Effect.WRITE, "path", concern="3 unread lines would go")
    task = await waiting.begin(tool, path="a.txt")
    waiting.policy.set_mode("bypass")
    for _ in range(20):
        await asyncio.sleep(0)
    assert not task.done()
    assert waiting.answer(Reply("once"))
    assert (await task).text == "ran"


async def test_the_first_answer_wins(harness: Harness) -> None:
    waiting = Waiting(harness, quiet=60)
    task = await waiting.begin(waiting.tool("edit_file", Effect.WRITE, "path"), path="a.txt")
    waiting.policy.set_mode("accept-edits")
    assert waiting.answer(Reply("deny"))
    assert (await task).is_error
    assert waiting.judged[-1] == ("deny", "person")


async def test_a_mode_that_is_only_passed_by_answers_nothing(harness: Harness) -> None:
    waiting = Waiting(harness)
    task = await waiting.begin(waiting.tool("edit_file", Effect.WRITE, "path"), path="a.txt")
    for mode in ("accept-edits", "plan"):
        waiting.policy.set_mode(mode)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not task.done()
    waiting.policy.set_mode("accept-edits")
    assert (await task).text == "ran"


async def test_a_cancelled_call_stops_waiting(harness: Harness) -> None:
    waiting = Waiting(harness)
    task = await waiting.begin(waiting.tool("edit_file", Effect.WRITE, "path"), path="a.txt")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(asyncio.all_tasks()) == 1
