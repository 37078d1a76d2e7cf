"""Status, cost, doctor, settings, hooks, context files and the transcript, as people call and read them."""

from __future__ import annotations

import contextlib
import json
import stat
from collections.abc import Generator
from dataclasses import replace as changed
from pathlib import Path

import pytest
from textual.widgets import Input, Static

from ba_tui.context.instructions import InstructionPlace
from ba_tui.context.system_prompt import InstructionList, TouchedFiles
from ba_tui.core.errors import StorageError
from ba_tui.core.events import MessageDone, TurnEnded, TurnStarted
from ba_tui.core.messages import user
from ba_tui.core.ports.contributions import CheckResult
from ba_tui.core.ports.permissions import HookList, HookRun
from ba_tui.core.start import Start
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.screens.config import ConfigScreen, ContextFileList
from ba_tui.faces.tui.screens.context import CostScreen
from ba_tui.faces.tui.screens.list_screen import ListScreen
from ba_tui.faces.tui.screens.status import DoctorScreen, StatusScreen
from ba_tui.features.hooks.session import ListedHooks
from ba_tui.features.hooks.tui import HookBrowser
from ba_tui.permissions.secrets.sharing import ingress_for
from ba_tui.permissions.session import check_value
from ba_tui.resources import places
from ba_tui.settings import load_settings
from ba_tui.settings.editing import SettingsOfFolder
from ba_tui.settings.hooks import Hook
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World, answer
from tests.faces.tui.sheets import keys, lines, shown


def report(hand: Hand) -> str:
    """What a page to read says."""
    return str(hand.app.screen.query_one(".rows", Static).content)


def lead(hand: Hand) -> str:
    return str(hand.app.screen.query_one(".lead", Static).content)


def title(hand: Hand) -> str:
    return str(hand.app.screen.query_one(".title", Static).content)


def program(folder: Path, name: str, script: str) -> Path:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


async def test_status_says_how_things_stand(world: World) -> None:
    async with running(world) as hand:
        await hand.send("/status")
        await shown(hand, StatusScreen)
        await hand.until(lambda: "demo/tour" in report(hand))
        assert "default: Asks before edits and commands." in report(hand)
        assert str(world.cwd) in report(hand).replace("\n", "").replace(" ", "")
        await hand.press("escape")
        await hand.send("hello")
        await hand.idle()
        await hand.send("/status")
        await hand.until(lambda: "hello, 1 turn" in report(hand))


async def test_cost_is_shown_by_model_and_turn(world: World) -> None:
    async with running(world, size=(100, 36)) as hand:
        await hand.send("/usage")
        await shown(hand, CostScreen)
        await hand.until(lambda: lead(hand) == "Nothing was asked in this session yet.")
        await hand.press("escape")
        await hand.send("first question")
        await hand.idle()
        await hand.send("/cost")
        await shown(hand, CostScreen)
        await hand.until(lambda: "1 request" in lead(hand))
        for words in ("Tokens and cost", "Models", "demo/tour", "1 first question"):
            assert words in lines(hand)


async def test_the_doctor_reports_one_finding_after_the_other(world: World) -> None:
    world.findings = (
        CheckResult("python", "ok", "3.14 at /usr/bin/python"),
        CheckResult("key", "warn", "no key for [openai]", "Set OPENAI_API_KEY."),
    )
    async with running(world) as hand:
        await hand.send("/doctor")
        await shown(hand, DoctorScreen)
        await hand.until(lambda: lead(hand) == "2 checks: 1 to look at.")
        assert "no key for [openai]" in report(hand)
        assert "→ Set OPENAI_API_KEY." in report(hand)
        world.findings = (CheckResult("python", "ok", "fine"),)
        await hand.press("r")
        await hand.until(lambda: lead(hand) == "All is well: 1 check.")
        world.findings = (StorageError("keys.yaml can't be read.", "Correct it."),)
        await hand.press("r")
        await hand.until(lambda: lead(hand) == "The doctor stopped: keys.yaml can't be read. Correct it.")


@pytest.fixture
def form(world: World) -> SettingsOfFolder:
    world.settings = form = SettingsOfFolder(
        places(), lambda: load_settings({}, places(), world.cwd, {"BA_LOG_LEVEL": "debug"}), check_value
    )
    return form


@pytest.mark.usefixtures("form")
async def test_a_setting_is_found_and_changed_in_place(world: World, ba_home: Path) -> None:
    (ba_home / "config.yaml").write_text("# mine\nmax_loops: 12\n")
    async with running(world) as hand:
        await hand.send("/config max_loops")
        await shown(hand, ConfigScreen)
        await hand.until(lambda: "config.yaml:2" in lines(hand))
        assert ", 2 set" in title(hand)
        await hand.press("enter")
        await hand.until(lambda: not isinstance(hand.app.screen, ConfigScreen))
        assert hand.app.screen.query_one(Input).value == "12"
        await hand.press("backspace", "backspace", *"2000", "enter")
        await hand.until(lambda: "Not saved: max_loops" in keys(hand))
        await hand.press("enter", "backspace", "backspace", *"20", "enter")
        await hand.until(lambda: keys(hand).startswith("max_loops is set in"))
        assert (ba_home / "config.yaml").read_text() == "# mine\nmax_loops: 20\n"
        assert "20" in lines(hand)


@pytest.mark.usefixtures("form")
async def test_the_closest_key_comes_first_and_a_setting_goes_back_to_its_default(world: World, ba_home: Path) -> None:
    (ba_home / "config.yaml").write_text("# mine\ntheme: nord\n")
    async with running(world) as hand:
        await hand.send("/config")
        await shown(hand, ConfigScreen)
        await hand.until(lambda: ", 2 set" in title(hand))
        await hand.press(*"mode")
        assert hand.app.screen.highlighted == "permission_mode", "a word of the key before model"  # type: ignore[attr-defined]
        await hand.press(*["backspace"] * 4, *"theme", "ctrl+r")
        await hand.until(lambda: keys(hand).startswith("theme has its default again"))
        assert (ba_home / "config.yaml").read_text() == "# mine\n"
        await hand.press("ctrl+r")
        await hand.until(lambda: keys(hand) == "theme has its default already.")


@pytest.mark.usefixtures("form")
async def test_choices_are_offered_and_groups_are_left_to_their_screen(world: World, ba_home: Path) -> None:
    async with running(world) as hand:
        await hand.send("/config log_level")
        await shown(hand, ConfigScreen)
        await hand.until(lambda: "debug" in lines(hand))
        await hand.press("enter")
        await hand.until(lambda: "warning" in lines(hand))
        await hand.press("down", "enter")
        await hand.until(lambda: "has no effect here" in keys(hand))
        assert "log_level: info" in (ba_home / "config.yaml").read_text()
        await hand.press(*["backspace"] * 9, *"permissions.deny")
        await hand.press("enter")
        await hand.until(lambda: "Change it with /permissions." in keys(hand))


async def test_the_demo_keeps_no_settings(world: World) -> None:
    async with running(world, Start(kept=False)) as hand:
        await hand.send("/config")
        await hand.until(lambda: "This session saves no settings." in hand.said())


async def test_hooks_are_listed_by_event_with_their_last_run(world: World) -> None:
    (world.cwd / ".claude").mkdir()
    theirs = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh"}]}]}
    (world.cwd / ".claude" / "settings.json").write_text(json.dumps({"hooks": theirs}))
    ran = {"make lint": HookRun(0, 0.5, "denied", count=3)}
    hooks = [Hook("stop", "notify [done]", source="mine.yaml:3"), Hook("post_tool", "make lint", "shell", source="x")]
    listed = ListedHooks(
        hooks, ["x: Nothing: no such event"], world.cwd, lambda: False, lambda each: ran.get(each.command)
    )
    world.brain.inventory = changed(world.brain.inventory, features={HookList: listed})
    async with running(world, size=(100, 36)) as hand:
        await hand.send("/hooks")
        await shown(hand, HookBrowser)
        await hand.until(lambda: "make lint" in lines(hand))
        assert title(hand) == "3 hooks, 1 off"
        text = lines(hand)
        order = [
            text.index(words) for words in ("pre_tool", "./check.sh", "post_tool", "make lint", "stop", "Not in use")
        ]
        assert order == sorted(order)
        assert "off: this folder is not trusted (/trust)" in text
        assert "ran 3×" in text
        assert "notify [done]" in text
        assert "no such event" in text
        await hand.press("down", "enter")
        await shown(hand, InspectorScreen)


@pytest.fixture
def files(world: World, ba_home: Path) -> Path:
    """AGENTS.md in the project, read together with what it imports."""
    (world.cwd / ".git").mkdir()
    (world.cwd / "AGENTS.md").write_text("Use tabs. @more.md\n")
    (world.cwd / "more.md").write_text("And spaces.\n")
    place = InstructionPlace(world.cwd, world.cwd, ba_home)
    listed = InstructionList(place, ingress_for(places(), world.cwd), TouchedFiles(world.cwd))
    world.brain.inventory = changed(world.brain.inventory, context_files=listed)
    return world.cwd


@contextlib.contextmanager
def _nothing() -> Generator[None]:
    yield


async def test_memory_lists_context_files_and_opens_one(
    world: World, files: Path, ba_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", str(program(world.cwd, "edit", 'echo "edited" >>"$1"')))
    async with running(world) as hand:
        monkeypatch.setattr(hand.app, "suspend", _nothing)
        await hand.send("/memory")
        await shown(hand, ContextFileList)
        await hand.until(lambda: "AGENTS.md" in lines(hand))
        text = lines(hand)
        assert "This project's" in text
        assert "imports more.md" in text
        assert "not there" in text, "the user has none yet"
        assert "1 context file read" in title(hand)
        await hand.press("enter")
        await hand.until(lambda: "counts from your next message" in keys(hand))
        assert (ba_home / "AGENTS.md").read_text() == "edited\n"
        assert "2 context files read" in title(hand)
        await hand.press("down", "enter")
        await hand.until(lambda: "edited" in (files / "AGENTS.md").read_text())


async def test_memory_says_what_is_wrong_with_the_editor(
    world: World, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", str(program(files, "edit", "exit 3")))
    async with running(world) as hand:
        monkeypatch.setattr(hand.app, "suspend", _nothing)
        await hand.send("/memory")
        await shown(hand, ContextFileList)
        await hand.until(lambda: "AGENTS.md" in lines(hand))
        await hand.press("enter")
        await hand.until(lambda: "ended with 3" in keys(hand))


async def test_the_transcript_opens_in_the_pager(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = [TurnStarted(user("hi")), MessageDone(answer("Hello.")), TurnEnded("done")]
    world.shelf.put("aaaa1111", "Fix the totals", told)
    monkeypatch.setenv("PAGER", str(program(tmp_path, "pager", f'cp "$1" {tmp_path}/seen; echo "$1" >{tmp_path}/name')))
    async with running(world) as hand:
        monkeypatch.setattr(hand.app, "suspend", _nothing)
        await hand.send("/transcript")
        await hand.until(lambda: "This session is still empty." in hand.said())
    async with running(world, Start(resume="aaaa")) as hand:
        monkeypatch.setattr(hand.app, "suspend", _nothing)
        await hand.send("/transcript")
        await hand.until((tmp_path / "name").exists)
        assert "md of aaaa1111" in (tmp_path / "seen").read_text()
        gone = Path((tmp_path / "name").read_text().strip())
        await hand.until(lambda: not gone.exists())


async def test_a_folder_is_added_after_a_yes(world: World, tmp_path: Path) -> None:
    other = tmp_path / "other dir"
    other.mkdir()
    (world.cwd / ".git").mkdir()
    (world.cwd / "inner").mkdir()
    async with running(world) as hand:
        await hand.send("/add-dir nowhere")
        await hand.until(lambda: "There is no folder nowhere." in hand.said())
        hand.chat.composer.prompt.reset()
        await hand.send("/add-dir inner")
        await hand.until(lambda: "is part of the workspace already" in hand.hint)
        await hand.send("/add-dir ../other\\ dir")
        await shown(hand, ListScreen)
        await hand.press("down", "enter")
        await hand.until(lambda: not isinstance(hand.app.screen, ListScreen))
        assert not world.added
        await hand.type("/add-dir ../oth")
        await hand.until(lambda: hand.chat.composer.popup.candidates)
        await hand.press("tab")
        assert hand.text == "/add-dir ../other\\ dir/"
        await hand.press("enter")
        await shown(hand, ListScreen)
        await hand.press("enter")
        await hand.until(lambda: world.added == [other])
        await hand.until(lambda: "until ba ends" in hand.hint)


async def test_plan_switches_the_mode_and_sends_words(world: World) -> None:
    async with running(world) as hand:
        await hand.send("/plan")
        await hand.until(lambda: hand.chat.session.mode == "plan")
        assert not world.script.requests
        await hand.send("/plan move the tests")
        await hand.until(lambda: world.script.requests)
        await hand.idle()
        assert world.script.requests[0].messages[-1].text == "move the tests"
