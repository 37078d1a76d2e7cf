"""Before the first prompt: sessions to continue, prompts to try, and numbers that never take a word away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.start import Start
from ba_tui.faces.tui.widgets.start_page import ALWAYS, CRASHED, StartChoices, look_for_suggestions, page, suggestions
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World
from tests.faces.tui.test_commands import told

NOW = 1_000_000.0
SESSION = SessionInfo("a", "Fix the totals", Path("/w"), 0.0, NOW - 7_200, 3, preview="now the report")
CHOICES = StartChoices("~/work", "anthropic/claude", (SESSION,), ("Review it.", "Explain it."))


def shown(hand: Hand) -> str:
    start = hand.chat.main_area.start_page
    return str(start.content) if start else ""


async def offered(hand: Hand) -> str:
    await hand.until(lambda: shown(hand))
    return shown(hand)


async def test_it_offers_folder_model_sessions_and_prompts(world: World) -> None:
    (world.cwd / "sales.csv").write_text("a\n")
    world.shelf.put("aaaa1111", "Fix the totals", told("totals"))
    async with running(world) as hand:
        text = await offered(hand)
        for part in ("…/app", "demo/tour", "1  Fix the totals", "2  What does @sales.csv show?"):
            assert part in text


async def test_a_number_and_enter_continue_a_session(world: World) -> None:
    world.shelf.put("aaaa1111", "Fix the totals", told("totals"))
    async with running(world) as hand:
        await offered(hand)
        await hand.press("1")
        assert hand.text == "1"
        await hand.press("enter")
        await hand.until(lambda: "About totals." in hand.said())
        assert hand.chat.session.conversation
        assert hand.chat.session.conversation.id == "aaaa1111"
        assert not shown(hand)
        assert hand.chat.composer.history
        assert "1" not in hand.chat.composer.history.entries


async def test_a_prompt_that_begins_with_a_number_is_a_prompt(world: World) -> None:
    world.shelf.put("aaaa1111", "Fix the totals", told("totals"))
    async with running(world) as hand:
        await offered(hand)
        await hand.press(*"1 file is wrong", "enter")
        await hand.until(lambda: "Done." in hand.said())
        assert "1 file is wrong" in hand.said()
        assert not shown(hand)
        await hand.send("1")
        await hand.idle()
        assert "1" in hand.said(), "without the page a number is a prompt as well"


async def test_the_number_of_a_prompt_puts_it_into_the_input(world: World) -> None:
    async with running(world) as hand:
        await offered(hand)
        await hand.press("2", "enter")
        await hand.until(lambda: hand.text == ALWAYS[1])
        assert not world.script.requests


async def test_what_can_not_be_continued_here_is_not_offered(world: World) -> None:
    for id, title, change in (
        ("aaaa1111", "Printed", {"unattended": True}),
        ("bbbb2222", "Taken", {"locked_by": "pid 7"}),
        ("cccc3333", "Mine", {}),
        ("dddd4444", "Elsewhere", {"cwd": Path("/other")}),
    ):
        info = world.shelf.put(id, title, told(title))
        world.shelf.infos[id] = replace(info, **change)
    async with running(world) as hand:
        text = await offered(hand)
        assert "Mine" in text
        assert not any(word in text for word in ("Printed", "Taken", "Elsewhere"))


async def test_a_new_session_offers_them_again(world: World) -> None:
    async with running(world, Start(prompt="hello")) as hand:
        await hand.until(lambda: "Done." in hand.said())
        assert not shown(hand)
        await hand.send("/clear")
        assert "hello" in await offered(hand) or "Try" in shown(hand)


async def test_it_knows_another_model_at_once(world: World) -> None:
    async with running(world) as hand:
        await offered(hand)
        await hand.send("/model demo/tour")
        await hand.until(lambda: "Model: demo/tour" in hand.hint)
        assert "demo/tour" in shown(hand)


def test_after_a_crash_the_newest_session_comes_with_a_warning() -> None:
    crashed = replace(CHOICES, sessions=(replace(SESSION, left_open=True), SESSION))
    assert CRASHED in "\n".join(line.plain for line in page(crashed, NOW, 78, 20))
    older = replace(CHOICES, sessions=(SESSION, replace(SESSION, left_open=True)))
    assert CRASHED not in "\n".join(line.plain for line in page(older, NOW, 78, 20))


@pytest.mark.parametrize("width", [20, 40, 78, 100])
@pytest.mark.parametrize("height", [1, 3, 6, 9, 12, 40])
def test_it_fits_any_size(width: int, height: int) -> None:
    lines = page(CHOICES, NOW, width, height)
    assert len(lines) <= height
    assert all(line.cell_length <= max(width, 69) for line in lines)
    if height >= 6:
        assert any("1  " in line.plain for line in lines), "sessions go last"


def test_a_row_shows_what_was_said_last_and_when() -> None:
    row = page(CHOICES, NOW, 78, 20)[3].plain
    assert row.startswith(" 1  Fix the totals  now the report ")
    assert row.endswith("3 turns, 2 h ago")
    assert len(row) == 78


@pytest.mark.parametrize(
    ("names", "git", "wanted"),
    [
        ((), False, ALWAYS),
        (("sales.csv", "b.csv"), True, ("@b.csv show", "uncommitted", "@b.csv and @sales.csv")),
        (("package.json", "src.ts", "tests"), True, ("uncommitted", "Run the tests", "structured")),
        (("my data.xlsx",), False, ('@"my data.xlsx"',)),
        (("notes.md", "app.log", "a.ipynb"), False, ("@a.ipynb", "@app.log", "@notes.md")),
        ((".env", "x\n.csv", 'q".csv', "\u202efdp.csv"), False, ALWAYS),
    ],
)
def test_prompts_fit_the_folder(names: tuple[str, ...], git: bool, wanted: tuple[str, ...]) -> None:
    found = suggestions(sorted(names), git=git)
    assert len(found) == 3
    for words in wanted:
        assert any(words in text for text in found), found


def test_a_folder_that_can_not_be_read_still_gives_prompts(tmp_path: Path) -> None:
    assert look_for_suggestions(tmp_path / "gone", git=False) == ALWAYS
