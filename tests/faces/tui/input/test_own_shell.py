"""Commands that the user types behind ``!``: the sign before the input, the row, paths, stopping and moving."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.results import CommandText, Table, ToolResult, failure
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.faces.tui.transcript.records import ToolRow
from ba_tui.faces.tui.widgets.completion import last_word, paths
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World


class Bash:
    """A shell that prints its command; ``wait`` prints and waits to be released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.ran: list[tuple[str, bool]] = []

    @property
    def tool(self) -> Tool:
        return Tool("shell", "", {}, self._run, Effect.EXECUTE, facts=ToolFacts(target="command"))

    async def _run(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        command = str(args["command"])
        self.ran.append((command, call.private))
        if command == "no":
            return failure("permission_denied", "Denied by the rule shell(no).")
        if command == "wait":
            call.report("begun\n")
            await self.released.wait()
        return ToolResult(f"$ {command}", CommandText(command, output=f"{command}\n", exit_code=0), summary="exit 0")


@pytest.fixture
def bash(world: World) -> Bash:
    from dataclasses import replace

    shell = Bash()
    world.brain.inventory = replace(world.brain.inventory, own_shell=shell.tool)
    return shell


def rows(hand: Hand) -> list[ToolRow]:
    return [record for record in hand.chat.transcript.records if isinstance(record, ToolRow)]


def sign(hand: Hand) -> str:
    return str(hand.chat.composer.query_one("#sign").render())


async def test_the_sign_says_who_reads_the_output_as_soon_as_it_is_typed(world: World, bash: Bash) -> None:
    async with running(world) as hand:
        assert sign(hand) == "❯"
        await hand.press("exclamation_mark")
        assert sign(hand) == "shared $"
        await hand.press("exclamation_mark", "l")
        assert sign(hand) == "private $"
        await hand.press("ctrl+u")
        assert sign(hand) == "❯"


async def test_a_query_runs_beside_the_turns_and_its_rows_are_shown(world: World) -> None:
    from dataclasses import replace

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        display = Table(("region", "units"), (("North", 17),), handle="R1", total=40)
        return ToolResult(f"R1 of {args['sql']}", display, summary="R1 · 40 rows")

    query = Tool("query_data", "", {}, run, facts=ToolFacts(target="sql"))
    world.brain.inventory = replace(world.brain.inventory, own_query=query)
    async with running(world) as hand:
        await hand.send("/sql FROM 'sales.csv'")
        await hand.until(lambda: [row.state for row in rows(hand)] == ["ok"])
        assert [(row.name, row.target, row.summary) for row in rows(hand)] == [
            ("/sql", "FROM 'sales.csv'", "R1 · 40 rows")
        ]
        assert not world.script.requests


async def test_commands_run_at_once_and_their_rows_say_who_reads_them(world: World, bash: Bash) -> None:
    async with running(world) as hand:
        await hand.send("!git status")
        await hand.send("!!env")
        await hand.until(lambda: [row.state for row in rows(hand)] == ["ok", "ok"])
        assert [(row.name, row.target) for row in rows(hand)] == [("! shared", "git status"), ("!! private", "env")]
        assert bash.ran == [("git status", False), ("env", True)]
        assert not world.script.requests
        await hand.send("hello")
        await hand.idle()
        said = [message.text for message in world.script.requests[0].messages]
        assert "hello" in said[0]
        assert "env" not in said[0]


async def test_a_command_that_is_sent_before_the_session_is_there_waits_for_it(
    world: World, bash: Bash, services: threading.Event
) -> None:
    async with running(world, ready=False) as hand:
        await hand.send("!date")
        services.set()
        await hand.opened()
        await hand.until(lambda: [row.target for row in rows(hand)] == ["date"])


async def test_a_space_before_it_sends_it_as_a_prompt(world: World, bash: Bash) -> None:
    async with running(world) as hand:
        await hand.send(" !important")
        await hand.idle()
        assert not bash.ran
        assert world.script.requests[0].messages[0].text == " !important"


async def test_a_command_runs_beside_a_turn_and_its_row_outlives_the_turn(world: World, bash: Bash) -> None:
    gate = asyncio.Event()
    world.script.turns = [["Thinking ", gate, "done."]]
    async with running(world) as hand:
        await hand.send("hello")
        await hand.until(lambda: world.script.requests)
        await hand.send("!wait")
        await hand.until(lambda: [row.state for row in rows(hand)] == ["running"])
        gate.set()
        await hand.idle()
        assert [row.state for row in rows(hand)] == ["running"]
        bash.released.set()
        await hand.until(lambda: [row.state for row in rows(hand)] == ["ok"])


async def test_escape_stops_what_began_last(world: World, bash: Bash) -> None:
    gate = asyncio.Event()
    world.script.turns = [["Thinking ", gate, "done."]]
    async with running(world) as hand:
        await hand.send("hello")
        await hand.until(lambda: world.script.requests)
        await hand.send("!wait")
        await hand.until(lambda: rows(hand) and rows(hand)[0].tail)
        await hand.press("escape")
        await hand.until(lambda: rows(hand)[0].state == "cancelled")
        assert hand.chat.turns.busy
        await hand.press("escape")
        await hand.idle()


async def test_ctrl_b_moves_a_command_to_the_background_without_a_turn(world: World, bash: Bash) -> None:
    async with running(world) as hand:
        await hand.send("!wait")
        await hand.until(lambda: rows(hand) and rows(hand)[0].tail)
        assert "Ctrl+B" in hand.hint
        await hand.press("ctrl+b")
        assert world.job_shelf.detached == [rows(hand)[0].call_id]
        bash.released.set()
        await hand.until(lambda: rows(hand)[0].state == "ok")


async def test_a_denied_command_says_why(world: World, bash: Bash) -> None:
    async with running(world) as hand:
        await hand.send("!no")
        await hand.until(lambda: [row.state for row in rows(hand)] == ["denied"])
        await hand.send("hello")
        await hand.idle()
        assert len(world.script.requests[0].messages) == 1


@pytest.mark.parametrize("typed", ["!", "!!", "!  "])
async def test_a_sign_alone_asks_for_a_command(world: World, bash: Bash, typed: str) -> None:
    async with running(world) as hand:
        await hand.send(typed)
        await hand.until(lambda: any("no command" in text for text in hand.said()))
        assert not bash.ran


async def test_commands_come_back_from_the_history_and_in_an_opened_session(world: World, bash: Bash) -> None:
    async with running(world) as hand:
        await hand.send("!!date")
        await hand.until(lambda: [row.state for row in rows(hand)] == ["ok"])
        await hand.press("up")
        assert hand.text == "!!date"
        assert sign(hand) == "private $"
        (id,) = world.shelf.journals
        await hand.press("ctrl+k")
        await hand.send("/new")
        await hand.until(lambda: not rows(hand))
        await hand.send(f"/resume {id}")
        await hand.until(lambda: [(row.name, row.state) for row in rows(hand)] == [("!! private", "ok")])


async def test_words_to_remember_stay_in_the_input(world: World) -> None:
    async with running(world, size=(120, 30)) as hand:
        await hand.send("# we use tabs")
        await hand.until(lambda: "This session has no memory." in hand.said())
        assert hand.text == "# we use tabs"
        assert not world.script.requests


async def test_paths_complete_and_enter_runs_what_is_typed(world: World, bash: Bash) -> None:
    (world.cwd / "read me.md").write_text("")
    (world.cwd / "src").mkdir()
    (world.cwd / "src" / "app.py").write_text("")
    async with running(world) as hand:
        popup = hand.chat.composer.popup
        await hand.type("!cat r")
        await hand.until(lambda: [each.label for each in popup.candidates] == ["read me.md"])
        await hand.press("tab")
        assert hand.text == "!cat read\\ me.md "
        await hand.type("s")
        await hand.until(lambda: [each.label for each in popup.candidates] == ["src/"])
        await hand.press("tab")
        await hand.until(lambda: [each.label for each in popup.candidates] == ["app.py"])
        await hand.press("enter")
        await hand.until(lambda: bash.ran)
        assert bash.ran == [("cat read\\ me.md src/", False)]


@pytest.mark.parametrize(
    ("line", "column", "text", "first"),
    [
        ("!ls", 1, "ls", True),
        ("!!./run", 2, "./run", True),
        ("!cat a\\ b", 5, "a b", False),
        ("!cat 'a b", 5, "a b", False),
        ("!ls | gr", 6, "gr", True),
        ("!ls>out", 4, "out", False),
        ("!ls ", 4, "", False),
        ("!make DIR=sr", 10, "sr", False),
    ],
)
def test_the_last_word_of_a_command(line: str, column: int, text: str, first: bool) -> None:
    word = last_word(line)
    assert (word.column, word.text, word.first) == (column, text, first)


def test_which_paths_complete_a_word(tmp_path: Path) -> None:
    for name in ("Data", "data.csv", ".data", "it's"):
        (tmp_path / name).touch()

    def found(line: str) -> list[str]:
        return [each.insert for each in paths(last_word(line), tmp_path)]

    assert found("!cat da") == ["data.csv ", "Data "]
    assert found("!cat .d") == [".data "]
    assert found("!cat it") == ["it\\'s "]
    assert found('!cat "it') == ['"it\'s" ']
    assert found("!da") == []
    assert found("!./da") == ["./data.csv ", "./Data "]
    assert found("!cat nothing/at") == []


async def test_the_first_command_of_a_session_takes_the_place_of_the_start_page(world: World, bash: Bash) -> None:
    async with running(world) as hand:
        await hand.until(lambda: hand.chat.main_area.start_page is not None)
        await hand.type("!ls")
        await hand.press("enter")
        await hand.until(lambda: bool(rows(hand)))
        assert hand.chat.main_area.start_page is None
        assert hand.chat.transcript.display
