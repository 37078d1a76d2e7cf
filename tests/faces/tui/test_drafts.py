"""What is written and not sent outlives the app, however it ends."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from textual import events

from ba_tui.core.start import Start
from ba_tui.faces.tui.drafts import DraftStore, LeftBehind, PromptHistory, SavedInput
from ba_tui.faces.tui.widgets.prompt import LARGE
from tests.faces.tui.conftest import running
from tests.faces.tui.fakes import World

LONG = "".join(f"{number}:\n\tretries: 3  \n\n" for number in range(20_000))
CONTINUE = Start(resume="last")


def left_in(state: Path) -> list[str]:
    return [file.name for file in (state / "drafts").iterdir()] if (state / "drafts").exists() else []


async def test_a_long_draft_is_kept_whole(world: World) -> None:
    assert len(LONG) > 3 * LARGE
    async with running(world) as hand:
        await hand.send("begin")
        await hand.idle()
        await hand.type("Use this: ")
        hand.chat.composer.prompt.post_message(events.Paste(LONG))
        await hand.until(lambda: "[Pasted" in hand.text)
        await hand.app.action_quit()
    async with running(world, CONTINUE) as hand:
        await hand.until(lambda: hand.text)
        assert hand.chat.composer.text == f"Use this: {LONG}"
        assert len(hand.text) < 100
        await hand.press("enter")
        await hand.idle()
    assert world.script.requests[-1].messages[-1].text == f"Use this: {LONG}"


async def test_a_long_prompt_that_is_cleared_comes_back_from_the_history(world: World) -> None:
    async with running(world) as hand:
        hand.chat.composer.put_back(LONG)
        hand.chat.composer.clear()
        await hand.press("up")
        assert hand.chat.composer.text == LONG
        await hand.app.action_quit()
    async with running(world) as hand:
        await hand.press("up")
        await hand.until(lambda: hand.text)
        assert hand.chat.composer.text == LONG


async def test_waiting_prompts_outlive_quitting_and_are_held(world: World, state: Path) -> None:
    world.script.turns = [["one", asyncio.Event()]]
    async with running(world) as hand:
        await hand.send("a")
        await hand.until(lambda: "one" in hand.said())
        for text in ("joins", LONG, "c"):
            await hand.send(text)
        hand.chat.turns.nudge()
        await hand.type("a draft")
        await hand.app.action_quit()
    world.script.turns = [["two"], ["three"], ["four"], ["five"]]
    asked = len(world.script.requests)
    async with running(world, CONTINUE) as hand:
        assert list(hand.chat.turns.waiting) == ["joins", LONG, "c"]
        assert hand.text == "a draft"
        assert "Not sent before ba ended: 3 prompts." in hand.said()
        assert "paused" in hand.status
        assert len(world.script.requests) == asked
        hand.chat.composer.prompt.reset()
        await hand.press("enter")
        await hand.until(lambda: "four" in hand.said())
        said = [request.messages[-1].text for request in world.script.requests[asked:]]
        assert said == ["joins", LONG, "c"]
        await hand.app.action_quit()
    assert left_in(state) == []


def nothing_begun(_: str) -> bool:
    return False


def all_begun(_: str) -> bool:
    return True


def left_of(drafts: DraftStore) -> SavedInput:
    """What was left of the session itself, when there is no other."""
    return drafts.take_over(all_begun, lambda _: False).own


def after_a_kill(state: Path, copy: Path, cwd: Path, session: str = "") -> LeftBehind:
    """What the next process would find if this one were killed now: nobody holds the locks of a copy."""
    shutil.rmtree(copy, ignore_errors=True)
    with suppress(OSError):
        # A file that is being replaced may be gone.
        shutil.copytree(state / "drafts", copy / "drafts")
    with closing(DraftStore(copy, cwd, session)) as drafts:
        return drafts.take_over(nothing_begun, lambda _: True)


async def test_what_is_written_before_there_is_a_session_outlives_a_kill(
    world: World, services: threading.Event, state: Path, tmp_path: Path
) -> None:
    world.script.turns = [["one"]]
    async with running(world, ready=False) as hand:
        await hand.send("queued")
        await hand.type("a draft")
        await hand.until(lambda: after_a_kill(state, tmp_path / "copy", Path.cwd()).texts == ("queued", "a draft"))
        services.set()
        await hand.until(lambda: "one" in hand.said())
        # The session may be in another folder than the shell.
        id = hand.chat.session.live[1].id
        await hand.until(lambda: after_a_kill(state, tmp_path / "copy", world.cwd, id).own == SavedInput("a draft"))
        await hand.until(lambda: len(left_in(state)) == 2)
        assert hand.text == "a draft"


async def test_an_app_that_ends_without_leaving_saves_and_releases_what_is_unsent(world: World, state: Path) -> None:
    async with running(world) as hand:
        await hand.type("a draft")
        id = hand.chat.session.live[1].id
    with closing(DraftStore(state, world.cwd, id)) as drafts:
        assert left_of(drafts) == SavedInput("a draft")


async def test_a_prompt_at_the_start_goes_before_what_was_left(world: World) -> None:
    world.script.turns = [["zero"], ["one"]]
    async with running(world) as hand:
        await hand.send("begin")
        await hand.idle()
        hand.chat.turns.restore(["later"])
        await hand.type("a draft")
        await hand.app.action_quit()
    async with running(world, Start("now", "last")) as hand:
        await hand.until(lambda: "one" in hand.said())
        await hand.idle()
        assert list(hand.chat.turns.waiting) == ["later"]
        assert hand.chat.turns.paused
        assert not hand.text
        await hand.press("up")
        assert hand.text == "later"


async def test_a_draft_appears_in_no_other_session(world: World) -> None:
    """Not in one that starts in the same folder, and it comes back with its own."""
    async with running(world) as hand:
        await hand.send("begin")
        await hand.idle()
        await hand.type("half a thought")
        await hand.app.action_quit()
    async with running(world) as hand:
        assert not hand.text
        await hand.press("up")
        assert hand.text == "begin", "nor in the history"
    async with running(world, CONTINUE) as hand:
        assert hand.text == "half a thought"


async def test_what_was_written_in_a_session_that_never_began_is_in_the_history(world: World, state: Path) -> None:
    async with running(world) as hand:
        await hand.type("half a thought")
        await hand.app.action_quit()
    world.shelf.infos.clear()
    async with running(world) as hand:
        assert not hand.text
        assert "Saved to the history: 1 unsent text from a session that never began." in hand.said()
        await hand.press("up")
        assert hand.text == "half a thought"
        await hand.press("ctrl+k")
        await hand.app.action_quit()
    assert left_in(state) == []


async def test_going_on_where_no_session_began_brings_the_words_back(world: World) -> None:
    async with running(world) as hand:
        await hand.type("half a thought")
        await hand.app.action_quit()
    world.shelf.infos.clear()
    async with running(world, CONTINUE) as hand:
        assert hand.text == "half a thought"


async def test_another_session_brings_its_own_draft_and_a_new_one_takes_it_along(world: World) -> None:
    async with running(world) as hand:
        await hand.send("first")
        await hand.idle()
        first = hand.chat.session.live[1].id
        await hand.type("of the first")
        hand.chat.call_command("clear")
        await hand.until(lambda: hand.chat.session.live[1].id != first and not hand.said())
        assert hand.text == "of the first"
        await hand.press("end", "ctrl+u", *"second", "enter")
        await hand.until(lambda: "second" in hand.said() and not hand.chat.turns.busy)
        await hand.type("of the second")
        hand.chat.turns.restore(["waits in the second"])
        hand.chat.call_command("resume", first)
        await hand.until(lambda: not hand.text)
        assert not hand.chat.turns.waiting
        await hand.type("of the first again")
        hand.chat.call_command("resume", "00000002")
        await hand.until(lambda: hand.text == "of the second")
        assert list(hand.chat.turns.waiting) == ["waits in the second"]
        await hand.app.action_quit()
    async with running(world, Start(resume=first)) as hand:
        assert hand.text == "of the first again"


def test_what_a_process_leaves_is_taken_over_once_and_only_by_its_session(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    first = DraftStore(tmp_path, here, "s1")
    first.current = SavedInput("one", ("a", "b"))
    assert first.save()
    files = list((tmp_path / "drafts").iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    # It still runs.
    assert not left_of(DraftStore(tmp_path, here, "s1"))
    first.close()
    assert not left_of(DraftStore(tmp_path, here, "s2"))
    second = DraftStore(tmp_path, there, "s1")
    second.current = SavedInput("typed", ("c",))
    assert left_of(second) == SavedInput("one", ("a", "b"))
    assert second.current == SavedInput("one\n\ntyped", ("a", "b", "c"))
    assert not left_of(DraftStore(tmp_path, here, "s1"))
    second.close()
    third = DraftStore(tmp_path, here, "s1")
    assert left_of(third) == second.current
    third.current = SavedInput()
    third.close()
    assert list((tmp_path / "drafts").iterdir()) == []


def test_what_cannot_be_shelved_stays(tmp_path: Path) -> None:
    first = DraftStore(tmp_path, tmp_path, "s1")
    first.current = SavedInput("one", ("a",))
    first.close()
    assert not DraftStore(tmp_path, tmp_path, "s2").take_over(nothing_begun, lambda _: False).texts
    assert DraftStore(tmp_path, tmp_path, "s3").take_over(nothing_begun, lambda _: True).texts == ("a", "one")
    assert not DraftStore(tmp_path, tmp_path, "s4").take_over(nothing_begun, lambda _: True).texts


LEAVE = """
import os, signal, sys
from pathlib import Path
from ba_tui.faces.tui.drafts import DraftStore, SavedInput
state, text = Path(sys.argv[1]), sys.argv[2]
drafts = DraftStore(state, state, "s1")
drafts.current = SavedInput(text, (text,))
drafts.save()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_killed_processes_left_is_all_taken_over(tmp_path: Path) -> None:
    for text in ("first", "second"):
        done = subprocess.run([sys.executable, "-c", LEAVE, tmp_path, text], check=False)
        assert done.returncode == -signal.SIGKILL
    with closing(DraftStore(tmp_path, tmp_path, "s1")) as drafts:
        assert left_of(drafts) == SavedInput("first\n\nsecond", ("first", "second"))


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"draft": 1}', b'{"draft": "", "prompts": 5}'])
def test_a_damaged_file_is_left_alone(tmp_path: Path, damage: bytes) -> None:
    first = DraftStore(tmp_path, tmp_path, "s1")
    first.current = SavedInput("one")
    first.save()
    first.close()
    (file,) = (tmp_path / "drafts").glob("*.json")
    file.write_bytes(damage)
    assert not left_of(DraftStore(tmp_path, tmp_path, "s1"))
    assert not DraftStore(tmp_path, tmp_path, "s2").take_over(nothing_begun, lambda _: True).texts
    assert file.read_bytes() == damage


def test_a_folder_that_cannot_be_written_keeps_what_is_there(tmp_path: Path, monkeypatch: Any) -> None:
    first = DraftStore(tmp_path, tmp_path, "s1")
    first.current = SavedInput("one")
    first.save()
    first.close()
    second = DraftStore(tmp_path, tmp_path, "s1")
    monkeypatch.setattr(os, "replace", _full)
    assert left_of(second) == SavedInput("one")
    second.close()
    monkeypatch.undo()
    with closing(DraftStore(tmp_path, tmp_path, "s1")) as third:
        assert left_of(third) == SavedInput("one")


def _full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_large_history_gives_its_newest(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path)
    for number in range(30):
        history.append(f"{number} " + "x" * 1_000_000)
    again = PromptHistory(tmp_path)
    again.load()
    assert again.entries[-1].startswith("29 ")
    assert 15 < len(again.entries) < 20
    assert (tmp_path / "history.jsonl").stat().st_size < 20_000_000
