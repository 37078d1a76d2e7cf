"""Writing a prompt: newline keys, pastes, bursts, history, completion, draft, Esc and Ctrl+C."""

from __future__ import annotations

import asyncio
import stat
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from textual import events
from textual.binding import Binding

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.context import Suggestion, Weight
from ba_tui.core.start import Start
from ba_tui.faces.tui.acts.editor import edited
from ba_tui.faces.tui.widgets.prompt import Pastes, PromptInput, cleaned
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World


async def paste(hand: Hand, text: str) -> None:
    prompt = hand.chat.composer.prompt
    prompt.post_message(events.Paste(text))
    await hand.pilot.pause()


@pytest.mark.parametrize("key", ["shift+enter", "ctrl+j", "alt+enter"])
async def test_newline_keys(world: World, key: str) -> None:
    async with running(world) as hand:
        await hand.press("a", key, "b")
        assert hand.text == "a\nb"
        assert not world.script.requests


async def test_backslash_enter_breaks_the_line_and_goes(world: World) -> None:
    async with running(world) as hand:
        await hand.press("a", "backslash", "enter", "b")
        assert hand.text == "a\nb"


async def test_a_long_paste_folds_is_deleted_whole_and_sent_in_full(world: World) -> None:
    long = "\n".join(f"line {number}" for number in range(120))
    async with running(world) as hand:
        await hand.type("see ")
        await paste(hand, long)
        assert hand.text == "see [Pasted #1 +120 lines]"
        await hand.press("backspace")
        assert hand.text == "see "
        await paste(hand, long)
        assert hand.text == "see [Pasted #2 +120 lines]"
        await hand.press("enter")
        await hand.idle()
        assert hand.said()[0] == f"see {long}"


async def test_f4_unfolds_a_paste(world: World) -> None:
    long = "\n".join("ab" for _ in range(20))
    async with running(world) as hand:
        await paste(hand, long)
        await hand.press("f4")
        assert hand.text == long


async def test_typing_inside_a_token_does_not_break_it(world: World) -> None:
    async with running(world) as hand:
        await paste(hand, "x" * 2_000)
        await hand.press("left", "left", "a")
        assert hand.chat.composer.text == "x" * 2_000 + "a"


async def test_ten_megabytes_are_pasted_and_sent(world: World) -> None:
    huge = "0123456789abcde\n" * 655_360
    async with running(world) as hand:
        await paste(hand, huge)
        await hand.until(lambda: hand.text.startswith("[Pasted #1"))
        await hand.press("f4")
        assert hand.text.startswith("[Pasted #1"), "too much to edit: it stays folded"
        await hand.press("enter")
        await hand.until(lambda: world.script.requests)
        assert world.script.requests[0].messages[0].text == huge


async def test_what_no_terminal_or_vendor_can_take_is_cleaned() -> None:
    text = cleaned("a\0b\ud800c\x1b[31mred\x1b[0m\x1b]0;title\x07\r\nend\rlast\x07")
    assert text == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}cred\nend\nlast"


def test_tokens_of_other_people_are_left_alone() -> None:
    pastes = Pastes()
    assert pastes.unfold("[Pasted #1 +120 lines]") == "[Pasted #1 +120 lines]"


def test_the_last_line_break_begins_no_line() -> None:
    assert Pastes().fold("line\n" * 120) == "[Pasted #1 +120 lines]"


async def test_keys_that_come_together_act_in_their_order(world: World) -> None:
    """As a slow line delivers them: what a key does must not come after the letters behind it."""
    async with running(world) as hand:
        prompt = hand.chat.composer.prompt
        await hand.type("old words")
        for key, character in (("ctrl+u", "\x15"), ("n", "n"), ("w", "w"), ("left", None), ("e", "e")):
            prompt.post_message(events.Key(key, character))
        await hand.until(lambda: hand.text == "new")


def post_keys(prompt: PromptInput, text: str, first: float) -> None:
    """As a program types them, the first at the time ``first``."""
    for count, character in enumerate(text):
        key = events.Key("enter" if character == "\r" else character, character)
        key.time = first + count * 0.0001
        prompt.post_message(key)


async def test_keys_at_machine_speed_are_a_paste(world: World) -> None:
    async with running(world) as hand:
        post_keys(hand.chat.composer.prompt, "first\rsecond\r", time.monotonic())
        await hand.until(lambda: hand.text == "first\nsecond\n")
        assert not world.script.requests


async def test_keys_that_waited_for_a_busy_app_are_of_the_same_paste(world: World) -> None:
    async with running(world) as hand:
        prompt, now = hand.chat.composer.prompt, time.monotonic()
        post_keys(prompt, "first", now)
        while hand.text != "first":  # noqa: ASYNC110 - the burst must not end before the loop stands still
            await asyncio.sleep(0)
        post_keys(prompt, "\rsecond\r", now + 0.0005)
        # The loop stands still for longer than a burst waits for its next key.
        time.sleep(0.1)  # noqa: ASYNC251
        await hand.until(lambda: hand.text.count("\n") == 2 or world.script.requests)
        assert (hand.text, len(world.script.requests)) == ("first\nsecond\n", 0)


async def test_a_line_and_enter_in_one_piece_are_sent(world: World) -> None:
    async with running(world) as hand:
        post_keys(hand.chat.composer.prompt, "go on\r", time.monotonic())
        await hand.until(lambda: "Done." in hand.said())
        assert hand.said()[0] == "go on"


async def test_history_goes_back_and_forth_and_keeps_what_was_typed(world: World) -> None:
    async with running(world) as hand:
        for text in ("first", "second"):
            await hand.send(text)
            await hand.idle()
        await hand.type("third")
        await hand.press("up", "up")
        assert hand.text == "first"
        await hand.press("down", "down")
        assert hand.text == "third"


async def test_history_and_draft_outlive_the_app_in_private_files(world: World, state: Path) -> None:
    async with running(world) as hand:
        await hand.send("remember me\nin two lines")
        await hand.idle()
        await hand.type("unsent words")
        await hand.app.action_quit()
    async with running(world, Start(resume="last")) as hand:
        await hand.until(lambda: hand.text)
        assert hand.text == "unsent words"
        await hand.press("up")
        assert hand.text == "remember me\nin two lines"
    files = [state / "history.jsonl", *(state / "drafts").iterdir()]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


async def test_ctrl_r_finds_earlier_prompts(world: World) -> None:
    async with running(world) as hand:
        for text in ("read the sales", "write a report"):
            await hand.send(text)
            await hand.idle()
        await hand.press("ctrl+r")
        await hand.until(lambda: hand.chat.composer.popup.display)
        await hand.press(*"sal")
        await hand.press("enter")
        assert hand.text == "read the sales"


async def test_at_completes_files(world: World) -> None:
    async with running(world) as hand:
        await hand.type("look at ")
        await hand.press("@", "a", "p")
        await hand.until(lambda: hand.chat.composer.popup.display)
        await hand.press("tab")
        assert hand.text == "look at @src/app.py "
        await hand.press("@", "m", "e")
        await hand.until(lambda: hand.chat.composer.popup.display)
        await hand.press("enter")
        assert hand.text == 'look at @src/app.py @"read me.md"'


async def test_a_whole_name_wins_over_names_that_begin_with_it(world: World) -> None:
    async with running(world) as hand:
        await hand.press(*"/mode")
        assert hand.chat.composer.popup.candidates[0].insert == "/mode"
        assert any(each.insert == "/model" for each in hand.chat.composer.popup.candidates)
        await hand.press("enter")
        await hand.until(lambda: "accept-edits" in hand.status)
        assert hand.app.screen is hand.chat


async def test_a_whole_mention_wins_over_names_that_begin_with_it(world: World) -> None:
    world.names.found = (Suggestion("file", "app.py.bak", "app.py.bak"), Suggestion("file", "app.py", "app.py"))
    async with running(world) as hand:
        await hand.press(*"@app.py")
        await hand.until(lambda: hand.chat.composer.popup.display)
        await hand.press("tab")
        assert hand.text == "@app.py "


async def test_the_popup_says_how_many_rows_it_does_not_show(world: World) -> None:
    async with running(world) as hand:
        await hand.press("slash")
        popup = hand.chat.composer.popup
        total = len(popup.candidates)
        assert str(popup.render()).splitlines()[-1].strip() == f"… {total - 8} more below"
        await hand.press(*["down"] * 10)
        assert str(popup.render()).splitlines()[-1].strip() == f"… 6 more above, {total - 14} more below"
        assert popup.size.height == 9
        await hand.press(*"compac")
        assert "more" not in str(popup.render())


async def test_an_enter_is_not_lost_on_names_that_fit_no_more(world: World) -> None:
    async with running(world) as hand:
        prompt = hand.chat.composer.prompt
        await hand.press(*"@sr")
        await hand.until(lambda: hand.chat.composer.popup.display)
        for key, letter in (("x", "x"), ("space", " "), ("y", "y"), ("enter", "\r")):
            prompt.post_message(events.Key(key, letter))
        await hand.until(lambda: "@srx y" in hand.said())


async def test_the_popup_says_of_what_kind_a_name_is(world: World) -> None:
    async with running(world) as hand:
        await hand.press("@", "p")
        popup = hand.chat.composer.popup
        await hand.until(lambda: popup.display)
        first = popup.choice
        await hand.press("ctrl+n")
        await hand.until(lambda: popup.choice != first)
        await hand.press("ctrl+p")
        await hand.until(lambda: popup.choice == first)
        shown = {each.label: each.detail for each in hand.chat.composer.popup.candidates}
        assert shown["pdf"] == "skill    Reads and fills PDF files."
        assert shown["src/app.py"] == "file"


async def test_the_row_above_the_prompt_says_what_mentions_cost_until_they_are_gone(world: World) -> None:
    world.names.weights = {"@a.csv": Weight("a.csv", 1_900), "@f.py": Weight("f.py:1-4", 200)}
    async with running(world) as hand:
        await hand.type("sum @a.csv @f.py:1-4 up")
        await hand.until(lambda: hand.hint == "+2.1k tokens: a.csv 1.9k, f.py:1-4 200")
        await hand.press("enter")
        await hand.until(lambda: "tokens:" not in hand.hint)


async def test_a_picture_that_is_dropped_stands_as_a_chip_for_its_mention(world: World, tmp_path: Path) -> None:
    picture = tmp_path / "my picture.png"
    picture.write_bytes(b"x")
    async with running(world) as hand:
        for dropped in (f"'{picture}'", str(picture).replace(" ", "\\ "), f"file://{quote(str(picture))}"):
            await paste(hand, dropped)
            await hand.until(lambda: hand.text == "[Image 1] ")
            assert hand.chat.composer.text == f'@"{picture}" '
            hand.chat.composer.prompt.reset()
        await paste(hand, "/no/such/file.png")
        await hand.until(lambda: hand.text == "/no/such/file.png")


async def test_escape_hides_the_popup_first(world: World) -> None:
    async with running(world) as hand:
        await hand.press("slash", "t")
        assert hand.chat.composer.popup.display
        await hand.press("escape")
        assert not hand.chat.composer.popup.display
        assert hand.text == "/t"


async def test_escape_twice_clears_and_up_brings_it_back(world: World) -> None:
    async with running(world) as hand:
        await hand.type("some words")
        await hand.press("escape")
        await hand.until(lambda: "Press Esc again" in hand.hint)
        assert hand.text == "some words"
        await hand.press("escape")
        await hand.until(lambda: not hand.text)
        await hand.press("up")
        assert hand.text == "some words"


async def test_ctrl_c_clears_then_quits(world: World) -> None:
    async with running(world) as hand:
        await hand.type("some words")
        await hand.press("ctrl+c")
        assert hand.text == ""
        await hand.press("ctrl+c")
        await hand.until(lambda: not hand.app.is_running)


async def test_ctrl_c_copies_a_selection(world: World) -> None:
    async with running(world) as hand:
        await hand.type("some words")
        await hand.press("f7", "ctrl+c")
        assert hand.app.clipboard == "some words"
        assert hand.text == "some words"


async def test_ctrl_d_quits_only_when_empty(world: World) -> None:
    async with running(world) as hand:
        await hand.press("x", "ctrl+d")
        assert hand.app.is_running
        await hand.press("backspace", "ctrl+d")
        await hand.until(lambda: not hand.app.is_running)


async def test_readline_keys_and_undo(world: World) -> None:
    async with running(world) as hand:
        await hand.type("one two three")
        await hand.press("ctrl+w")
        assert hand.text == "one two "
        await hand.press("alt+b", "ctrl+k")
        assert hand.text == "one "
        await hand.press("ctrl+underscore")
        assert hand.text == "one two "
        await hand.press("ctrl+a", "x", "ctrl+e", "ctrl+u")
        assert hand.text == ""


async def test_every_editing_key_works_at_every_edge(world: World) -> None:
    async with running(world) as hand:
        prompt = hand.chat.composer.prompt
        actions = {binding.action for binding in PromptInput.BINDINGS if isinstance(binding, Binding)}
        for action in sorted(actions - {"paste"}):
            for text, down in (("", 0), ("a\n\nb", 0), ("a\n\nb", 1), ("a\n\nb", 2)):
                prompt.load_text(text)
                prompt.move_cursor((down, down // 2))
                await prompt.run_action(action)
        prompt.load_text("cut me")
        await hand.press("ctrl+x")
        assert (hand.text, hand.app.clipboard) == ("", "cut me")


async def test_an_editor_writes_the_prompt_through_a_private_file(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nstat -c %a "$1" > "$0.mode"\nprintf "%s and after\\n" "$(cat "$1")" > "$1"\n')
    editor.chmod(0o755)
    assert await edited("before", str(editor)) == "before and after"
    assert (tmp_path / "editor.mode").read_text().strip() == "600"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("/nowhere/editor", "could not be started: No such file or directory."),
        ("false", "ended with 1."),
        ("an 'unclosed quote", "could not be started: No closing quotation."),
    ],
)
async def test_an_editor_that_fails_is_an_error_of_one_line(command: str, told: str) -> None:
    with pytest.raises(UsageError) as error:
        await edited("before", command)
    assert str(error.value) == f"{command} {told}"


async def test_where_no_editor_can_be_opened_the_prompt_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "true")
    async with running(world) as hand:
        await hand.type("before")
        await hand.press("ctrl+g")
        await hand.until(lambda: any("can't be opened" in text for text in hand.said()))
        assert hand.text == "before"


async def test_the_cursor_comes_to_rest(world: World) -> None:
    async with running(world) as hand:
        prompt = hand.chat.composer.prompt
        prompt.still = False
        await hand.press("a")
        assert prompt.blink_timer._active.is_set()
        prompt._pause_blink()
        assert not prompt.blink_timer._active.is_set()
        await hand.press("b")
        assert prompt.blink_timer._active.is_set()
        await hand.press("f1")
        await hand.until(lambda: not hand.chat.is_active and not _shows_cursor(prompt))
        await hand.press("escape")
        await hand.until(lambda: hand.chat.is_active and _shows_cursor(prompt))


def _shows_cursor(prompt: PromptInput) -> bool:
    """Behind a dialog there is none: it has its own."""
    cursor = prompt.get_component_rich_style("text-area--cursor")
    return any(segment.style and segment.style.bgcolor == cursor.bgcolor for segment in prompt.render_line(0))
