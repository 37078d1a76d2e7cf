"""A conversation in memory for tests: a provider that plays a script, a journal that is a list."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from ba_tui.core.agent import Agent, CutAnswers, Interceptor, StepLimit
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import TRANSIENT, ActivityChanged, Event, Mode, event_from_json, event_to_json
from ba_tui.core.messages import Message, Text, ToolUse, Usage
from ba_tui.core.ports.brain import AdmittedPrompt, Inventory
from ba_tui.core.ports.context import Condenser, ContextPart
from ba_tui.core.ports.permissions import RuleLine, RuleScope, RuleVerdict
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.provider import ModelInfo, ModelRequest, Prices, ReplyChunk
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Listener, Turn

Step = Message | Exception | Callable[[ModelRequest], AsyncIterator[ReplyChunk]]


def says(text: str, *calls: tuple[str, dict[str, Any]], stop: Any = None) -> Message:
    """An answer with ``text`` and calls; their ids are ``name-1``, ``name-2`` in order of the text's uses."""
    uses = tuple(ToolUse(f"{name}-{index}-{text}", name, args) for index, (name, args) in enumerate(calls))
    blocks = ((Text(text),) if text else ()) + uses
    reason = stop or ("tool_use" if uses else "end_turn")
    return Message("assistant", blocks, usage=Usage(100, 10), stop=reason, model="test/model", origin="assistant")


class Script:
    """A Provider that plays ``steps`` in order and keeps the requests it got."""

    def __init__(self, *steps: Step) -> None:
        self.model = ModelInfo("test/model", "test", "model", prices=Prices(1, 2, 0.1, 1.25))
        self.steps = list(steps)
        self.requests: list[ModelRequest] = []
        self.closed = False

    def connect(self) -> None:
        """There is nothing to connect to."""

    async def close(self) -> None:
        self.closed = True

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        self.requests.append(request)
        step = self.steps.pop(0) if self.steps else says("(end of script)")
        if isinstance(step, Exception):
            raise step
        if isinstance(step, Message):
            yield step
            return
        async for chunk in step(request):
            yield chunk


class Memory:
    """A Journal that keeps lines of JSON, as the file does."""

    def __init__(self, events: Sequence[Event] = ()) -> None:
        self.lines = [event_to_json(event) for event in events]
        self.full: Exception | None = None

    def append(self, event: Event) -> None:
        if self.full:
            raise self.full
        if not isinstance(event, TRANSIENT):
            self.lines.append(event_to_json(event))

    def read(self) -> list[Event]:
        return [event_from_json(line) for line in self.lines]

    def tail(self, limit: int) -> list[Event]:
        return self.read()[-limit:]

    def later(self, place: int) -> tuple[list[Event], int]:
        return self.read()[place:], len(self.lines)

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass


class Open:
    """Permissions that only remember the mode."""

    def __init__(self) -> None:
        self.mode: Mode = "default"

    def set_mode(self, mode: Mode) -> None:
        self.mode = mode

    def modes(self) -> Sequence[Mode]:
        return ("default", "accept-edits", "plan", "auto")

    def rules(self) -> Sequence[RuleLine]:
        return ()

    def add(self, rule: str, verdict: RuleVerdict, scope: RuleScope) -> RuleLine:
        return RuleLine(rule, verdict, scope)

    def remove(self, rule: RuleLine) -> None:
        pass


class Mind:
    """A Brain around one provider."""

    def __init__(
        self, provider: Any, tools: Sequence[Tool] = (), interceptors: Sequence[Interceptor] = (), max_loops: int = 100
    ) -> None:
        self.permissions = Open()
        self.provider = provider
        loop = (StepLimit(max_loops), CutAnswers())
        self._agent = Agent(provider, tools, "You are tested.", (*loop, *interceptors))
        self.notes: list[Message] = []
        self.inventory = Inventory()
        self.condenser: Condenser | None = None
        self.listeners: Sequence[Listener] = ()
        self.admits: Callable[[Message, Branch], Awaitable[Sequence[Message]]] | None = None

    async def admit(self, prompt: Message, branch: Branch) -> AdmittedPrompt:
        return AdmittedPrompt(tuple(await self.admits(prompt, branch)) if self.admits else ())

    def model(self, name: str) -> ModelInfo:
        return self.provider.model

    def agent(self, model: str) -> Agent:
        return self._agent

    def reminders(self, transcript: Transcript) -> Sequence[Message]:
        return self.notes

    def context(self, transcript: Transcript, model: str) -> Sequence[ContextPart]:
        return ()

    async def close(self) -> None:
        pass


def conversation(provider: Any, *tools: Tool, journal: Memory | None = None, **mind: Any) -> Conversation:
    return thinking(Mind(provider, tools, **mind), journal)


def thinking(mind: Mind, journal: Memory | None = None) -> Conversation:
    """A conversation with ``mind``."""
    info = SessionInfo("20261121-120000-test", "", Path("/srv"), 0.0, 0.0, model="test/model")
    return Conversation(info, journal or Memory(), mind)


async def collect(turn: Turn, react: Callable[[Event], None] | None = None) -> list[Event]:
    """All events of a turn; ``react`` sees each as it comes. The limit of the test ends a turn that never does."""
    events: list[Event] = []
    async for event in turn:
        events.append(event)
        if react:
            react(event)
    return events


def kinds(events: Sequence[Event]) -> list[str]:
    """What happened; states of agents follow from it."""
    return [event.type for event in events if not isinstance(event, ActivityChanged)]
