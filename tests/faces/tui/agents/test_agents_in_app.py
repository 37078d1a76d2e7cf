"""Sub-agents as a person meets them: rows, questions, transcripts, the list, and what can be told to them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import replace as changed
from typing import Any

import pytest
from textual.events import Key

from ba_tui.core.events import AgentStarted, MessageDone, TurnEnded, TurnStarted
from ba_tui.core.messages import ToolUse, user
from ba_tui.core.ports.agents import Delegation, RunningAgent
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ToolResult
from ba_tui.core.start import Start
from ba_tui.core.tool import Call, Tool
from ba_tui.core.turn import Branch
from ba_tui.faces.tui.transcript.records import Prompt, ProseRecord
from ba_tui.features.agents.tui.screen import AgentList, AgentScreen
from tests.faces.tui.agents.story import begins, ends, said, starts, works
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World, answer
from tests.faces.tui.sheets import keys, lines, shown

A, B = "main/explore-1", "main/explore-2"


@dataclass
class Children:
    """Agents in the background that each ask once. A Delegation, too, as far as a person uses it."""

    replies: dict[str, Reply] = field(default_factory=dict[str, Reply])
    told: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    ended: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    def tool(self) -> Tool:
        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            branch = call.branch.fork("explore")
            self.tasks.append(asyncio.create_task(self._work(branch, call.id)))
            return ToolResult("begun", summary="in the background")

        return Tool("delegate_task", "", {"type": "object"}, run)

    async def _work(self, branch: Branch, call_id: str) -> None:
        self.ended[branch.name] = asyncio.Event()
        branch.emit(AgentStarted("explore", f"Look at {call_id}", call_id, background=True))
        branch.emit(TurnStarted(user("CHILD look")))
        self.replies[branch.name] = await branch.ask(Question("permission", f"Run {call_id}?", tool="shell"))
        await self.ended[branch.name].wait()
        branch.emit(MessageDone(said("All found.")))
        branch.emit(TurnEnded("done"))

    def running(self) -> list[RunningAgent]:
        return [
            RunningAgent(name, "explore", "", "acting", 0.0) for name, end in self.ended.items() if not end.is_set()
        ]

    def tell(self, agent_id: str, text: str) -> bool:
        self.told.append((agent_id, text))
        return True

    def pause(self, agent_id: str, *, on: bool) -> bool:
        self.told.append((agent_id, f"pause {on}"))
        return True

    def cancel(self, agent_id: str) -> bool:
        self.ended[agent_id].set()
        return True


@pytest.fixture
def children(world: World, monkeypatch: pytest.MonkeyPatch) -> Children:
    # Keys count at once: nobody has to read the question first.
    monkeypatch.setattr("ba_tui.faces.tui.widgets.ask.RECENT", 0.0)
    children = Children()
    world.brain.tools = [children.tool()]
    calls = [ToolUse(id, "delegate_task", {}) for id in ("one", "two")]
    world.script.turns = [[answer("I start two.", *calls)], ["They work."]]
    inventory = changed(world.brain.inventory, features={Delegation: children})  # pyright: ignore[reportArgumentType]
    world.brain.inventory = inventory
    return children


def title(hand: Hand) -> str:
    assert hand.chat.ask is not None
    return str(hand.chat.ask.border_title)


async def test_two_agents_ask_at_once_after_the_turn_and_each_gets_its_answer(world: World, children: Children):
    async with running(world) as hand:
        await hand.send("go")
        await hand.until(lambda: hand.chat.ask and hand.chat.ask.waiting == 2 and not hand.chat.turns.busy)
        assert "2 agents" in hand.status
        assert title(hand).startswith(" explore-1 asks: Run one? · 1 of 2")
        await hand.press("y")
        await hand.until(lambda: A in children.replies)
        assert title(hand).startswith(" explore-2 asks: Run two? · 2 of 2")
        await hand.press("n")
        await hand.until(lambda: B in children.replies)
        assert [children.replies[name].choice for name in (A, B)] == ["once", "deny"]

        children.ended[B].set()
        await hand.until(lambda: "1 agent" in hand.status)
        assert "explore-2 has finished." in [notice.text for notice in hand.chat.notices.kept]
        await hand.press("enter")
        await shown(hand, AgentScreen)
        screen = hand.app.screen
        assert isinstance(screen, AgentScreen)
        assert screen.agent_id == B
        await hand.until(lambda: not screen.line.running and screen.transcript.records)
        assert [item.text for item in screen.transcript.records if isinstance(item, ProseRecord)] == ["All found."]
        children.ended[A].set()
        await asyncio.gather(*children.tasks)


async def test_a_running_agent_is_told_paused_and_stopped(world: World, children: Children):
    async with running(world) as hand:
        await hand.send("go")
        await hand.until(lambda: hand.chat.ask and hand.chat.ask.waiting == 2 and not hand.chat.turns.busy)
        for name in (A, B):
            await hand.press("y")
            await hand.until(lambda name=name: name in children.replies)
        hand.chat.call_command("agents", "explore-1")
        await shown(hand, AgentScreen)
        screen = hand.app.screen
        assert isinstance(screen, AgentScreen)
        await hand.until(lambda: screen.running and screen.line.kind)
        # All at once, as a quick hand or a program types it.
        for key in "look again":
            hand.app.post_message(Key("space" if key == " " else key, key))
        await hand.press("enter", "alt+p")
        assert children.told == [(A, "look again"), (A, "pause True")]
        await hand.press("alt+x")
        assert "again" in keys(hand)
        await hand.press("alt+x")
        await hand.until(lambda: not screen.line.running)
        await hand.press("escape")
        assert hand.app.screen is hand.chat
        children.ended[B].set()
        await asyncio.gather(*children.tasks)


async def test_agents_of_a_stored_session_are_listed_and_read(world: World):
    events = [*begins("1", "2"), *starts(A, "1"), *starts(B, "2"), *works(A), *ends(A, "1"), *ends(B, "2"),
              TurnEnded("done", at=30.0)]  # fmt: skip
    world.shelf.put("old", "Old", events)
    async with running(world, Start(resume="old")) as hand:
        await hand.send("/agents")
        await shown(hand, AgentList)
        await hand.until(lambda: "Ended (2)" in lines(hand))
        assert "explore-1  Look at main/explore-1" in lines(hand)
        assert "2.0k" in lines(hand)
        await hand.press("down", "enter")
        await shown(hand, AgentScreen)
        screen = hand.app.screen
        assert isinstance(screen, AgentScreen)
        assert screen.agent_id == A
        await hand.until(lambda: screen.line.ending == "done" and screen.transcript.records)
        assert [item.text for item in screen.transcript.records if isinstance(item, Prompt)] == [f"CHILD {A}"]
        assert not screen.running
        assert "Enter open" in keys(hand)
        await hand.press("escape", "escape")
        # A row opens it, too.
        hand.chat.transcript.focus()
        await hand.press("end", "up", "up", "enter")
        await shown(hand, AgentScreen)
