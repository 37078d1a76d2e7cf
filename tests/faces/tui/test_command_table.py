"""Commands of the user's own, and skills by their names, through the input of the app."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from pathlib import Path

import pytest
from textual.widgets import OptionList

from ba_tui.cli.commands import app_parts
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.context import CommandLine, SkillLine
from ba_tui.faces.tui.commands import found, parse
from ba_tui.faces.tui.screens.help import HelpScreen
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World


@dataclass
class Own:
    """Commands as a test wants them."""

    held: list[CommandLine] = field(default_factory=list[CommandLine])

    def lines(self) -> Sequence[CommandLine]:
        return list(self.held)

    def check(self, text: str) -> None:
        if not text.startswith("/user:"):
            raise UsageError("There is no such command.")


@dataclass
class Skilled:
    """Skills that remember what was done with them."""

    held: list[SkillLine] = field(default_factory=list[SkillLine])
    bodies: dict[str, str] = field(default_factory=dict[str, str])
    done: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])

    def lines(self) -> Sequence[SkillLine]:
        return list(self.held)

    def body(self, id: str) -> str:
        if id not in self.bodies:
            raise UsageError(f"The skill {id} can't be read.")
        return self.bodies[id]

    def check(self, id: str) -> tuple[Sequence[str], Sequence[str]]:
        return ([], ["description is short"]) if id == "pdf" else (["name must be lower case"], [])

    def activate(self, id: str, parameters: str = "") -> None:
        if parameters == "too much":
            raise UsageError("That is too much.", "Put it into a file.")
        self.done.append(("activate", id, parameters))
        self._becomes(id, "waiting")

    def attach(self, names: Sequence[str]) -> Sequence[str]:
        return ()

    def handlers(self, name: str) -> Sequence[str]:
        return ()

    def end(self, id: str) -> None:
        if next(line.state for line in self.held if line.id == id) not in {"active", "waiting"}:
            raise UsageError(f"The skill {id} is not active.", "See which are: /skills.")
        self.done.append(("end", id))
        self._becomes(id, "on")

    def switch(self, id: str, *, on: bool) -> None:
        self.done.append(("switch", id, str(on)))
        self._becomes(id, "on" if on else "off")

    def _becomes(self, id: str, state: str) -> None:
        self.held = [changed(line, state=state) if line.id == id else line for line in self.held]


@pytest.fixture
def own(world: World) -> Own:
    own = Own([CommandLine("Review", "project", "Look at a [pull] request", "[number]", ".claude/commands/Review.md")])
    world.brain.inventory = changed(world.brain.inventory, commands=own)
    return own


@pytest.fixture
def skilled(world: World) -> Skilled:
    skilled = Skilled([SkillLine("pdf", "on", "bundled", "Work with PDF files", 900)], {"pdf": "# PDF\n\nRead it."})
    world.brain.inventory = changed(world.brain.inventory, skills=skilled)
    return skilled


async def known(hand: Hand) -> None:
    await hand.until(lambda: any(row.origin for row in hand.chat.commands.rows))


def prompts(world: World) -> list[str]:
    return [request.messages[-1].text for request in world.script.requests]


async def test_a_command_completes_with_its_hint_is_sent_as_typed_and_found_when_new(world: World, own: Own) -> None:
    async with running(world) as hand:
        await known(hand)
        await hand.type("/revi")
        (candidate,) = hand.chat.composer.popup.candidates
        assert (candidate.insert, candidate.label) == ("/Review ", "/Review [number]")
        assert candidate.detail == "Look at a [pull] request"
        await hand.press("enter", *"12", "enter")
        await hand.until(lambda: world.script.requests)
        assert prompts(world) == ["/Review 12"]
        assert "/Review 12" in hand.said()
        await hand.idle()
        await hand.send("/review one\ntwo")
        await hand.until(lambda: len(world.script.requests) == 2)
        await hand.idle()
        own.held.append(CommandLine("fresh", "user", "New", "", "~/.claude/commands/fresh.md"))
        await hand.send("/fresh now")
        await hand.until(lambda: len(world.script.requests) == 3)
        await hand.idle()
        await hand.send("/user:Review 3")
        await hand.until(lambda: len(world.script.requests) == 4)
        await hand.idle()
        assert prompts(world)[1:] == ["/Review one\ntwo", "/fresh now", "/user:Review 3"]
        await hand.send("/Reviw 3")
        await hand.until(lambda: "Did you mean /Review?" in hand.hint)
        assert hand.text == "/Reviw 3"


async def test_it_waits_in_the_queue_and_never_steers(world: World, own: Own) -> None:
    gate = asyncio.Event()
    world.script.turns = [[gate, "One."]]
    async with running(world) as hand:
        await known(hand)
        await hand.send("go")
        await hand.until(lambda: world.script.requests)
        await hand.send("/review 1")
        await hand.until(lambda: list(hand.chat.turns.waiting) == ["/Review 1"])
        await hand.press("enter")
        assert "/Review waits for the end of this turn." in hand.hint
        assert list(hand.chat.turns.waiting) == ["/Review 1"]
        gate.set()
        await hand.until(lambda: len(world.script.requests) == 2)
        await hand.idle()


async def test_what_cannot_be_called_is_told_once_and_help_and_palette_know_the_rest(world: World, own: Own) -> None:
    own.held += [
        CommandLine("bad", "project", path=".claude/commands/bad.md", trouble=".claude/commands/bad.md:2: no field"),
        CommandLine("clear", "user", "Mine", "", "~/.claude/commands/clear.md"),
    ]
    async with running(world, size=(100, 40)) as hand:
        await known(hand)
        broken = "The command /bad can't be used: .claude/commands/bad.md:2: no field."
        clash = "~/.claude/commands/clear.md is called as /user:clear: /clear is a command of ba's own."
        await hand.until(lambda: clash in hand.said())
        await hand.chat.commands.load()
        assert [text for text in hand.said() if text in (broken, clash)] == [broken, clash]
        assert hand.chat.commands.find("user:clear")
        await hand.send("/help")
        await hand.until(lambda: isinstance(hand.app.screen, HelpScreen))
        assert isinstance(hand.app.screen, HelpScreen)
        cells = [cell for row in hand.app.screen.rows for cell in row.cells]
        assert {"Your own commands", "/Review [number]", "/user:clear", broken, clash} <= set(cells)
        assert "Look at a [pull] request (.claude/commands/Review.md)" in cells
        await hand.press("escape", "ctrl+p", *"look at a")
        offers = hand.app.screen.query_one(OptionList)
        await hand.until(lambda: offers.option_count and "/Review" in str(offers.get_option_at_index(0).prompt))
        await hand.press("down", "enter")
        await hand.until(lambda: hand.text == "/Review ")


async def test_a_skill_starts_by_its_name_alone_or_with_what_is_wanted(world: World, skilled: Skilled) -> None:
    async with running(world) as hand:
        await known(hand)
        await hand.send("/pdf")
        await hand.until(lambda: "The skill pdf applies from your next message." in hand.hint)
        assert skilled.done == [("activate", "pdf", "")]
        assert not world.script.requests
        await hand.send("/pdf read a.pdf")
        await hand.until(lambda: prompts(world) == ["/pdf read a.pdf"])


def test_rows_of_own_commands_win_over_skills_and_give_way_to_ba(own: Own, skilled: Skilled, world: World) -> None:
    own.held.append(CommandLine("pdf", "user", "Mine", "", "pdf.md"))
    skilled.held += [SkillLine("help", "on"), SkillLine("gone", "broken"), SkillLine("other", "off", description="x")]
    rows, troubles = found(world.brain.inventory, app_parts().rows)
    assert [(row.name, row.origin) for row in rows] == [
        ("Review", ".claude/commands/Review.md"),
        ("pdf", "pdf.md"),
        ("other", "skill"),
    ]
    assert troubles == ()
    assert parse("/other a\nb", Path("/"), (*app_parts().rows, *rows)) == ("other", "a\nb")
    assert parse("/help a\nb", Path("/"), (*app_parts().rows, *rows)) == ("help", "a\nb")
    assert parse("/help\na", Path("/"), (*app_parts().rows, *rows)) is None
