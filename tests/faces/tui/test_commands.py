"""The table of commands, and what each does, through the input of the app."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from textual.containers import VerticalScroll
from textual.widgets import Input, Static

from ba_tui.cli.commands import app_parts, guesses
from ba_tui.core.errors import StorageError
from ba_tui.core.events import MessageDone, TurnEnded, TurnStarted
from ba_tui.core.messages import user
from ba_tui.core.start import Start
from ba_tui.faces.tui.commands import complete, find, nearest, parse
from ba_tui.faces.tui.screens.help import HelpScreen
from ba_tui.faces.tui.screens.list_screen import ListScreen
from ba_tui.faces.tui.screens.models import ThemePicker
from ba_tui.faces.tui.screens.permissions import PermissionsScreen
from ba_tui.faces.tui.screens.sessions import SessionPicker
from ba_tui.faces.tui.screens.sheet import spelled
from tests.faces.tui.conftest import running
from tests.faces.tui.fakes import World, answer
from tests.faces.tui.sheets import lines, shown


def told(words: str) -> list[TurnStarted | MessageDone | TurnEnded]:
    return [TurnStarted(user(words)), MessageDone(answer(f"About {words}.")), TurnEnded("done")]


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("/help", ("help", "")),
        ("/Model openai/x ", ("Model", "openai/x")),
        ("  /export md out.md", ("export", "md out.md")),
        ("quit", ("exit", "")),
        (":q", ("exit", "")),
        ("/nonsense", ("nonsense", "")),
        (" /nonsense", None),
        ("!ls -la ", ("shell", "ls -la")),
        ("!!env", ("shell", "!env")),
        (" !important", None),
        ("# we use tabs", ("remember", "# we use tabs")),
        ("# Title\n\ntext", None),
        ("/etc/hosts is odd", None),
        ("/tmp", None),
        ("// a comment", None),
        ("tell me /help", None),
        ("/", None),
    ],
)
def test_what_is_a_command(text: str, called: tuple[str, str] | None) -> None:
    assert parse(text, Path("/"), app_parts().rows) == called


def test_every_name_and_key_belongs_to_one_row() -> None:
    names = [name for command in app_parts().rows for name in (command.name, *command.aliases)]
    keys = [key for command in app_parts().rows for key in command.keys.split(",") if key]
    assert len(set(names)) == len(names)
    assert len(set(keys)) == len(keys)
    assert {"help", "clear", "resume", "model", "permissions", "context", "copy", "export", "exit", "theme"} <= set(
        names
    )


def test_completion_and_suggestion() -> None:
    assert complete("the", app_parts().rows, guesses())[0].insert == "/theme"
    assert complete("rename", app_parts().rows, guesses())[0].insert == "/rename "
    assert complete("quit", app_parts().rows, guesses())[0].insert == "/exit"
    assert [each.insert for each in complete("co", app_parts().rows, guesses())[:3]] == [
        "/copy",
        "/context",
        "/cost",
    ], "names before aliases"
    assert "/export" in nearest("exprot", app_parts().rows, guesses())
    assert nearest("conetxt", app_parts().rows, guesses()) == "There is no /conetxt. Did you mean /context?"
    assert find("Q", app_parts().rows) is find("exit", app_parts().rows)


async def test_enter_takes_no_name_that_only_has_the_same_letters(world: World) -> None:
    """``rm`` is in ``/permissions``, and ``cd`` in ``/background``."""
    async with running(world) as hand:
        await hand.press(*"/rm")
        assert hand.chat.composer.popup.candidates[0].insert == "/permissions"
        await hand.press("enter")
        await hand.until(lambda: "There is no /rm." in hand.hint)
        assert hand.text == "/rm"
        await hand.press("end", "backspace", "m", "down", "up", "enter")
        # It was chosen now.
        await shown(hand, PermissionsScreen)


async def test_an_unknown_command_is_kept_and_the_nearest_named(world: World) -> None:
    async with running(world) as hand:
        await hand.send("/exprot")
        await hand.until(lambda: "Did you mean /export?" in hand.hint)
        assert hand.text == "/exprot"
        assert not world.script.requests


async def test_clear_opens_a_new_session_and_keeps_the_old_one(world: World) -> None:
    async with running(world) as hand:
        await hand.send("first words")
        await hand.idle()
        await hand.send("/clear")
        await hand.until(lambda: not hand.said())
        assert world.shelf.journals["00000001new"].closed
        assert world.shelf.journals["00000001new"].events


async def test_resume_with_words_replays_what_was_said(world: World) -> None:
    world.shelf.put("aaaa1111", "Fix the totals", told("totals"))
    async with running(world, size=(120, 36)) as hand:
        await hand.send("/resume totals")
        await hand.until(lambda: "About totals." in hand.said())
        await hand.until(lambda: "↑11.2k" in hand.status)
        assert "aaaa1111" in hand.chat.resume_hint()


async def test_start_with_the_last_session_or_none(world: World) -> None:
    async with running(world, Start(resume="last")) as hand:
        assert any("No session" in text for text in hand.said())
        assert hand.chat.session.conversation is not None
    world.shelf.infos.clear()
    world.shelf.put("bbbb2222", "Yesterday", told("yesterday"))
    async with running(world, Start(resume="last")) as hand:
        await hand.until(lambda: "About yesterday." in hand.said())


async def test_a_session_in_use_elsewhere_can_be_read_and_continued_in_a_copy(world: World) -> None:
    world.shelf.put("bbbb2222", "Yesterday", told("yesterday"))
    world.shelf.locked.add("bbbb2222")
    async with running(world, Start(resume="bbbb")) as hand:
        await hand.until(lambda: "About yesterday." in hand.said())
        assert hand.chat.status.situation.folder.endswith("read-only")
        prompt = hand.chat.composer.prompt
        assert prompt.placeholder == "Read-only: open in pid 1. Press Enter to continue in a copy."
        for refused in ("hello", "/mode plan", "/rename Mine"):
            await hand.send(refused)
            await hand.until(lambda: hand.said()[-1] == "This session is open in pid 1, so it is read-only here.")
            prompt.reset()
            hand.chat.notices.kept.clear()
        assert not world.script.requests
        await hand.send("/copy")
        await hand.until(lambda: "Copied" in hand.hint)
        await hand.send("")
        await hand.until(lambda: "Yesterday (fork)" in hand.hint)
        await hand.until(lambda: "Ask" in str(prompt.placeholder))
        await hand.send("hello")
        await hand.until(lambda: "Done." in hand.said())
        assert "About yesterday." in hand.said()


async def test_a_session_in_use_elsewhere_is_followed(world: World) -> None:
    world.shelf.put("bbbb2222", "Yesterday", told("yesterday"))
    world.shelf.locked.add("bbbb2222")
    async with running(world, Start(resume="bbbb")) as hand:
        await hand.until(lambda: "About yesterday." in hand.said())
        for event in told("today"):
            world.shelf.journals["bbbb2222"].append(event)
        await hand.until(lambda: "About today." in hand.said())
        assert hand.said().count("About yesterday.") == 1
        await hand.send("")
        await hand.until(lambda: "(fork)" in hand.hint)
        assert hand.said().count("About today.") == 1


async def test_the_session_picker_searches_renames_forks_and_deletes(world: World) -> None:
    world.shelf.put("aaaa1111", "Fix the totals", told("totals"))
    world.shelf.put("bbbb2222", "Write [the] report", told("report"))
    world.shelf.put("cccc3333", "Elsewhere", told("x"), cwd=Path("/other"))
    async with running(world, Start(resume="pick"), size=(100, 30)) as hand:
        await shown(hand, SessionPicker)
        await hand.until(lambda: "Fix the totals" in lines(hand))
        assert "Write [the] report" in lines(hand)
        assert "Elsewhere" not in lines(hand)
        await hand.press("ctrl+a")
        await hand.until(lambda: "Elsewhere" in lines(hand))
        await hand.press(*"report")
        await hand.until(lambda: "Fix the totals" not in lines(hand))
        await hand.press("ctrl+e")
        hand.app.screen.query_one(Input).value = "The report"
        await hand.press("enter")
        await hand.until(lambda: world.shelf.infos["bbbb2222"].title == "The report")
        await hand.until(lambda: "Fix the totals" in lines(hand))
        await hand.press(*"totals")
        await hand.press("ctrl+f")
        await hand.until(lambda: any("(fork)" in info.title for info in world.shelf.infos.values()))
        await hand.press("ctrl+d")
        assert "aaaa1111" in world.shelf.infos
        await hand.press("ctrl+d")
        await hand.until(lambda: "aaaa1111" not in world.shelf.infos)
        await hand.until(lambda: "(fork)" in lines(hand))
        await hand.press("enter")
        await hand.until(lambda: "About totals." in hand.said())


async def test_model_by_name_by_picker_and_unknown(world: World) -> None:
    async with running(world) as hand:
        await hand.send("/model qwen3-coder")
        await hand.until(lambda: "qwen3-coder" in hand.status)
        await hand.send("/model no/such")
        await hand.until(lambda: any("no/such" in text for text in hand.said()))
        await hand.send("/model")
        await shown(hand, ListScreen)
        await hand.until(lambda: "$3 / $15" in lines(hand))
        await hand.press(*"sonnet")
        await hand.press("enter")
        await hand.until(lambda: "claude-sonnet" in hand.status)
        assert not any(journal.events for journal in world.shelf.journals.values())


async def test_the_model_of_a_slot_by_name_by_picker_and_back_to_its_default(world: World) -> None:
    async with running(world) as hand:
        await hand.send("/model small openai/qwen3-coder")
        await hand.until(lambda: world.ways.remembered.get("small.model") == "openai/qwen3-coder")
        await hand.send("/model reasoning nonsense")
        await hand.until(lambda: any("nonsense" in text for text in hand.said()))
        await hand.send("/model small")
        await shown(hand, ListScreen)
        await hand.until(lambda: "$3 / $15" in lines(hand))
        await hand.press(*"sonnet")
        await hand.press("enter")
        await hand.until(lambda: "sonnet" in world.ways.remembered["small.model"])
        await hand.send("/model small default")
        await hand.until(lambda: world.ways.remembered["small.model"] == "")
        assert "qwen" not in hand.status


async def test_shift_tab_goes_round_the_modes(world: World) -> None:
    async with running(world) as hand:
        for mode in ("accept-edits", "plan", "auto", "default"):
            await hand.press("shift+tab")
            await hand.until(lambda mode=mode: hand.chat.session.mode == mode)
            assert hand.status.startswith(mode)


async def test_help_lists_every_command_and_live_key(world: World) -> None:
    async with running(world, size=(100, 30)) as hand:
        await hand.press("question_mark")
        await shown(hand, HelpScreen)
        screen = hand.app.screen
        assert isinstance(screen, HelpScreen)
        cells = [cell for row in screen.rows for cell in row.cells]
        for command in app_parts().rows:
            assert not command.slash or command.title in cells
            assert not command.keys or spelled(command.keys) in cells
        assert "Unfold pastes" in cells
        assert "Shift+Up" in cells
        assert "Yes, for this session: what the line names" in cells
        painted = str(screen.query_one(".rows", Static).content)
        assert all(word in painted for command in app_parts().rows if command.slash for word in command.title.split())
        await hand.press("end")
        place = screen.query_one(VerticalScroll)
        await hand.until(lambda: place.scroll_y == place.max_scroll_y > 0)


async def test_copy_takes_the_nth_answer(world: World) -> None:
    world.script.turns = [["older"], ["newer"]]
    async with running(world) as hand:
        await hand.send("a")
        await hand.idle()
        await hand.send("/copy 2")
        await hand.until(lambda: any("This session has 1 answer." in text for text in hand.said()))
        await hand.send("b")
        await hand.idle()
        await hand.press("ctrl+y")
        await hand.until(lambda: hand.app.clipboard == "newer")
        await hand.send("/copy 2")
        await hand.until(lambda: hand.app.clipboard == "older")
        await hand.send("/copy 9")
        await hand.until(lambda: any("2 answers" in text for text in hand.said()))
        await hand.send("/diff")
        await hand.until(lambda: "This session changed no files." in hand.said())


async def test_export_writes_a_file_and_never_over_another(world: World) -> None:
    async with running(world) as hand:
        await hand.send("/export")
        await hand.until(lambda: any("still empty" in text for text in hand.said()))
        await hand.send("a")
        await hand.idle()
        await hand.send("/export json out.json")
        await hand.until(lambda: (world.cwd / "out.json").exists())
        assert (world.cwd / "out.json").read_text().startswith("json of ")
        await hand.send("/export md out.json")
        await hand.until(lambda: any("exists" in text for text in hand.said()))


async def test_rename(world: World) -> None:
    async with running(world, size=(120, 30)) as hand:
        await hand.send("a")
        await hand.idle()
        await hand.send("/rename Sales [report]")
        await hand.until(lambda: "Sales [report]" in str(hand.chat.main_area.side.usage.content))


async def test_theme_is_previewed_taken_back_and_kept(world: World) -> None:
    async with running(world, Start(theme="dark")) as hand:
        await hand.send("/theme")
        await shown(hand, ThemePicker)
        await hand.press(*"solarized-l")
        await hand.until(lambda: hand.app.theme == "solarized-light")
        await hand.press("escape")
        await hand.until(lambda: hand.app.theme == "dark")
        await hand.send("/theme nord")
        await hand.until(lambda: world.ways.remembered == {"theme": "nord"})
        assert hand.app.theme == "nord"
        for name in hand.app.theme_names:
            await hand.send(f"/theme {name}")
            await hand.until(lambda name=name: world.ways.remembered == {"theme": name})
        await hand.send("/theme mauve")
        await hand.until(lambda: any("no theme 'mauve'" in text for text in hand.said()))


async def test_the_palette_runs_a_row(world: World) -> None:
    async with running(world) as hand:
        await hand.press("ctrl+p")
        await hand.until(lambda: hand.app.screen is not hand.chat)
        await hand.press(*"next permission")
        await hand.pilot.pause(0.3)
        await hand.press("enter", "enter")
        await hand.until(lambda: hand.chat.session.mode == "accept-edits")
        await hand.press("f1")
        await hand.until(lambda: isinstance(hand.app.screen, HelpScreen))
        await hand.press("ctrl+p")
        assert isinstance(hand.app.screen, HelpScreen), "it would be empty there"


async def test_a_command_that_fails_is_a_line(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(key: str, value: str) -> None:
        raise StorageError("config.yaml could not be written.", "Free some space.")

    monkeypatch.setattr(world.ways, "remember", full)
    async with running(world) as hand:
        await hand.send("/theme light")
        await hand.until(lambda: any("could not be written" in text for text in hand.said()))


@pytest.mark.parametrize(("theme", "told"), [("nosuch", ["There is no theme 'nosuch'."]), ("auto", [])])
async def test_a_theme_that_there_is_not_is_told_once_the_session_is_shown(
    world: World, services: threading.Event, theme: str, told: list[str]
) -> None:
    async with running(world, Start(theme=theme), ready=False) as hand:
        await hand.until(lambda: hand.app.chat)
        await hand.app.load_themes()
        await hand.pilot.pause()
        services.set()
        await hand.opened()
        assert hand.said() == told


async def test_exit_words_leave_and_say_how_to_come_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(world) as hand:
        assert hand.chat.resume_hint() == ""
        await hand.send("a")
        await hand.idle()
        assert hand.chat.resume_hint() == "Resume with: ba -r 00000001new", "no folder of the shell's"
        monkeypatch.chdir(world.cwd)
        assert hand.chat.resume_hint().endswith("ba -r 00000001new  (or ba -c: the newest session in this folder)")
        await hand.send("quit")
        await hand.until(lambda: not hand.app.is_running)
    assert world.shelf.journals["00000001new"].closed
