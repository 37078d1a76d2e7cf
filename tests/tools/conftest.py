"""A harness to try tools at: a real folder, the real tools, a branch whose questions the test answers."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ba_tui.context.files import find_ripgrep
from ba_tui.core.events import Asked, Event, MessageDone, ToolFinished, TurnStarted
from ba_tui.core.messages import Message, ToolUse, user
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.core.values import Once
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Allow
from ba_tui.permissions.verdicts import JudgedCall
from ba_tui.tools.definitions import Definition, load_definitions
from ba_tui.tools.editing.seen_files import SeenFiles
from ba_tui.tools.guards.permission import CallJudge, GuardVerdict
from ba_tui.tools.guards.pipeline import pipeline
from ba_tui.tools.shells import Shell
from ba_tui.tools.toolbox import SessionPlace, builtin_tools

CHECKOUT = Path(__file__).resolve().parents[2]
Answer = Callable[[Question], Reply]


def allow(request: JudgedCall) -> GuardVerdict:
    return Allow()


class Harness:
    """Runs tools within their guards, as the loop would, and keeps every event."""

    def __init__(self, definitions: Mapping[str, Definition], root: Path, environment: Mapping[str, str]) -> None:
        self.workspace = Workspace(root)
        self.root = self.workspace.root
        self.definitions = definitions
        self.environment = environment
        self.events: list[Event] = []
        self._heard = asyncio.Event()
        self.remembered: list[tuple[str, str]] = []
        self.answer: Answer | None = None
        self.turn = Turn(self.listen)
        self.branch = Branch(self.turn, Transcript())
        self.rg = find_ripgrep()
        self.bash = shutil.which("bash")
        self.tools: dict[str, Tool] = {}
        self.equip()
        self.branch.emit(TurnStarted(user("go on")))
        self._calls = 0

    def equip(self, judge: CallJudge = allow, known: SeenFiles | None = None) -> None:
        place = SessionPlace(self.workspace, Shell(self.bash, self.environment), self.rg)
        guard = pipeline(place, judge, lambda rule, scope: self.remembered.append((rule, scope)))
        tools = tuple(map(guard, builtin_tools(self.definitions, place, known=Once(lambda: known) if known else None)))
        self.tools = {tool.name: tool for tool in tools}

    def listen(self, event: Event) -> None:
        self.events.append(event)
        self._heard.set()

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait for the event that makes ``reached`` true."""
        while not reached():
            self._heard.clear()
            await self._heard.wait()

    @property
    def asked(self) -> list[Question]:
        return [event.question for event in self.events if isinstance(event, Asked)]

    async def run(self, name: str, **args: Any) -> ToolResult:
        """One answer of the model with one call, and its result."""
        return (await self.run_all((name, args)))[0]

    async def run_all(self, *calls: tuple[str, dict[str, Any]]) -> Sequence[ToolResult]:
        uses: list[ToolUse] = []
        for name, args in calls:
            self._calls += 1
            uses.append(ToolUse(f"call-{self._calls}", name, args))
        self.branch.emit(MessageDone(Message("assistant", tuple(uses), origin="assistant")))
        return [await self.finish(use) for use in uses]

    async def finish(self, use: ToolUse) -> ToolResult:
        run = self.tools[use.name].run(use.input, answering_call(use.id, self.branch, self))
        result = await run
        self.branch.emit(ToolFinished(use.id, result))
        return result

    def write(self, path: str, content: str | bytes) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target


def answering_call(id: str, branch: Branch, harness: Harness) -> Call:
    """A call whose questions the harness answers as soon as they are asked."""

    async def consult(question: Question) -> Reply:
        answer = harness.answer
        if answer is None:
            pytest.fail(f"nobody expected the question {question.text!r}")
        branch.emit(Asked("ask", question))
        return answer(question)

    return Call(id, branch, consults=(consult,))


@pytest.fixture(scope="session")
def definitions() -> Mapping[str, Definition]:
    return load_definitions(CHECKOUT / "config" / "prompts" / "tools")


@pytest.fixture
async def harness(definitions: Mapping[str, Definition], tmp_path: Path) -> Harness:
    root = tmp_path / "work"
    root.mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "LC_ALL") if name in os.environ}
    return Harness(definitions, root, kept)
