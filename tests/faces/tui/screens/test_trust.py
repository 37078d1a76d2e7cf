"""The question whether a folder is trusted: before the first prompt, the safe answer first, and again by command."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Static

from ba_tui.core.events import Notice
from ba_tui.core.ports.permissions import ASKS_AGAIN, AskedSetting, ToolWrite, TrustedItems, TrustState
from ba_tui.core.results import Diff
from ba_tui.core.start import Start
from ba_tui.faces.tui.inspector.rows import RowView
from ba_tui.faces.tui.screens.trust import AllowScreen, TrustScreen
from ba_tui.permissions.sandbox.workspace_scan import WorkspaceScan
from ba_tui.permissions.trust.grants import Trust
from ba_tui.permissions.trust.session_writes import SessionWrites, WatchedPlace
from ba_tui.permissions.trust.write_records import WriteRecords
from ba_tui.resources import places
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World

FILE = Diff(".ba/tools/fetch.py", None, "import os\nos.system('true')\n")
CHANGED = Diff(".mcp.json", '{"command": "npx"}\n', '{"command": "\x1b]0;x\x07uvx"}\n')
NEW = TrustState(
    Path("/home/ann/coffee"),
    "unknown",
    "1",
    (
        TrustedItems("hooks", ("PreToolUse", "Stop")),
        TrustedItems("MCP servers", ("files", "web")),
        TrustedItems("tools", ("fetch.py", "[bold]sales.py")),
        TrustedItems(
            "settings", ("permissions.allow: shell(make test)", "providers.corp.base_url: https://models.example/v1")
        ),
    ),
    (FILE,),
)
WRITTEN = TrustState(
    Path("/home/ann/coffee"),
    "trusted",
    "3",
    NEW.holds,
    (Diff("AGENTS.md", "Be brief.\n", "Obey.\n"),),
    written=(ToolWrite(Path("/home/ann/coffee/AGENTS.md"), "AGENTS.md", "`make`", "2026-11-28 14:00 UTC", runs=False),),
)
OTHER = TrustState(Path("/home/ann/coffee"), "changed", "2", NEW.holds, (CHANGED, FILE), (".ba/agents/old.md",))


class Asked(App[None]):
    """The screen alone, with a clock that only a test moves."""

    def __init__(self, seen: TrustState, *, starting: bool = True, theme: str = "textual-dark") -> None:
        super().__init__()
        self.theme = theme
        self.now = 0.0
        self.verdict = "none yet"
        self.asked = TrustScreen(seen, starting=starting, clock=lambda: self.now)

    async def on_mount(self) -> None:
        await self.push_screen(self.asked, self.answered)
        self.now = 1.0

    def answered(self, verdict: str | None) -> None:
        self.verdict = verdict or "as it is"


def body(app: Asked) -> str:
    sheet = app.asked.query_one("#trust-body", RowView)
    return "\n".join("".join(cell.gutter + cell.text for cell in row) for row in sheet.rows)


@pytest.mark.parametrize(
    ("seen", "starting", "keys", "verdict"),
    [
        (NEW, True, ["enter"], "no"),
        (WRITTEN, False, ["enter"], "as it is"),
        (WRITTEN, False, ["escape"], "as it is"),
        (WRITTEN, False, ["1"], "trust"),
        (WRITTEN, False, ["3"], "revoke"),
        (NEW, True, ["up", "enter"], "trust"),
        (NEW, True, ["x", "z", "down", "enter"], "quit"),
        (NEW, False, ["3", "q", "enter"], "no"),
        (OTHER, True, ["up", "escape"], "no"),
        (TrustState(NEW.root, "trusted", "1", NEW.holds), False, ["2"], "revoke"),
        (TrustState(NEW.root, "unknown", trouble="It holds too much."), True, ["1", "y", "up", "down", "enter"], "no"),
    ],
)
async def test_answers(seen: TrustState, starting: bool, keys: list[str], verdict: str) -> None:
    app = Asked(seen, starting=starting)
    async with app.run_test() as pilot:
        await pilot.press(*keys)
        await pilot.pause()
        assert app.verdict == verdict


async def test_keys_that_were_meant_for_something_else_are_ignored() -> None:
    app = Asked(NEW)
    async with app.run_test() as pilot:
        app.now = 0.49
        await pilot.press("y", "enter", "escape")
        assert app.verdict == "none yet"
        # Somebody goes on with the prompt they were writing.
        app.now = 0.9
        await pilot.press("y")
        assert app.verdict == "none yet"
        app.now = 1.41
        await pilot.press("y")
        await pilot.pause()
        assert app.verdict == "trust"


async def test_what_it_brings_is_shown_in_short_and_whole() -> None:
    app = Asked(NEW)
    async with app.run_test() as pilot:
        await app.workers.wait_for_complete()
        assert "tools          2  fetch.py, [bold]sales.py" in body(app)
        await pilot.press("d")
        await app.workers.wait_for_complete()
        assert "os.system('true')" in body(app)
        await pilot.press("escape")
        await app.workers.wait_for_complete()
        assert "fetch.py, [bold]sales.py" in body(app), "Esc goes back first"
        assert app.verdict == "none yet"
        await pilot.press("escape")
        await pilot.pause()
        assert app.verdict == "no"


async def test_what_tools_wrote_is_named_with_the_difference() -> None:
    app = Asked(WRITTEN, starting=False)
    async with app.run_test() as pilot:
        await pilot.pause()
        shown = body(app)
        assert "AGENTS.md: written by `make`, 2026-11-28 14:00 UTC" in shown
        assert "Be brief." in shown
        assert "Obey." in shown


async def test_a_change_is_shown_at_once_and_acts_on_no_terminal() -> None:
    app = Asked(OTHER)
    async with app.run_test():
        await app.workers.wait_for_complete()
        shown = body(app)
        assert ".ba/agents/old.md is gone" in shown
        assert "- {" in shown
        assert "uvx" in shown
        assert "\x1b" not in shown


@pytest.fixture
def folder(world: World, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of ``world``, a project of its own that nobody trusted yet."""
    (world.cwd / ".ba" / "tools").mkdir(parents=True)
    (world.cwd / ".ba" / "tools" / "mine.py").write_text("A = 1\n")
    world.trust = Trust(places())
    monkeypatch.chdir(world.cwd)
    return world.cwd


async def asked(hand: Hand) -> TrustScreen:
    await hand.until(lambda: isinstance(hand.app.screen, TrustScreen))
    screen = hand.app.screen
    assert isinstance(screen, TrustScreen)
    await hand.until(lambda: screen.listening)
    return screen


async def test_no_prompt_is_sent_before_the_answer_and_none_is_lost(world: World, folder: Path) -> None:
    async with running(world, Start(prompt="hello"), ready=False) as hand:
        await asked(hand)
        assert not world.script.requests
        await hand.press("n")
        await hand.until(lambda: world.script.requests)
        await hand.idle()
        assert not Trust(places()).trusted(folder)
        assert hand.chat.status.situation.folder.endswith("not trusted")
        await hand.send("/clear")
        await hand.until(lambda: world.shelf.created == 2)
        await hand.pilot.pause()
        assert hand.app.screen is hand.chat, "the answer holds for this run"


@pytest.mark.parametrize("answer", ["n", "y"])
@pytest.mark.parametrize("texts", [["y"], ["first", "second"], ["!touch ran"], ["/sql SELECT 1", "hello"]])
async def test_what_was_sent_before_the_question_goes_back_to_the_input(
    world: World, folder: Path, texts: list[str], answer: str
) -> None:
    connecting = threading.Event()

    def wait() -> None:
        connecting.wait()

    world.gate = wait
    async with running(world, ready=False) as hand:
        await hand.until(lambda: hand.app.chat is not None and hand.app.chat.early is None)
        for text in texts:
            await hand.send(text)
        connecting.set()
        screen = await asked(hand)
        assert screen.seen.state == "unknown"
        await hand.press(answer)
        await hand.opened()
        await hand.until(lambda: all(text in hand.text for text in texts))
        assert not hand.chat.turns.unsent
        assert not world.script.requests
        assert not hand.chat.turns.running.newest
        assert "before ba asked about the folder" in hand.hint
        assert not (folder / "ran").exists()


async def test_a_yes_opens_the_session_anew_and_can_be_taken_back(world: World, folder: Path) -> None:
    async with running(world, ready=False) as hand:
        await asked(hand)
        await hand.press("y")
        await hand.opened()
        assert Trust(places()).trusted(folder)
        assert world.shelf.created == 2
        assert "not trusted" not in hand.chat.status.situation.folder
        await hand.send("hello")
        await hand.idle()
        id = hand.chat.session.live[1].id
        await hand.send("/trust")
        await asked(hand)
        await hand.press("2")
        await hand.until(lambda: "not trusted" in hand.hint)
        assert not Trust(places()).trusted(folder)
        assert hand.chat.session.live[1].id == id
        assert "hello" in hand.said()
    async with running(World(world.cwd, trust=world.trust), ready=False) as hand:
        await asked(hand)
        await hand.press("q")
        await hand.until(lambda: hand.app.return_code is not None or not hand.app.is_running)


async def test_instructions_that_a_tool_wrote_are_named_at_the_start_and_accepted_by_command(
    world: World, folder: Path
) -> None:
    trust = Trust(places())
    trust.grant(trust.look(folder))
    place = WatchedPlace(folder, places().config, WorkspaceScan([folder]))
    session = SessionWrites(WriteRecords(places().written), place)
    session.begin("`make`")
    (folder / "AGENTS.md").write_text("Obey.\n")
    session.end("`make`")
    session.close()
    async with running(world) as hand:
        await hand.until(lambda: any("AGENTS.md: written by `make`" in each for each in hand.said()))
        await hand.send("/trust")
        screen = await asked(hand)
        assert [one.name for one in screen.seen.written] == ["AGENTS.md"]
        await hand.press("1")
        await hand.until(lambda: "is trusted" in hand.hint)
        assert not trust.look(folder).written


async def test_what_start_up_had_to_say_is_told_after_a_yes(world: World, folder: Path) -> None:
    async with running(world, Start(resume="cccc"), ready=False) as hand:
        await asked(hand)
        await hand.press("y")
        await hand.opened()
        await hand.until(lambda: any("No session matches" in text for text in hand.said()))


async def test_a_yes_that_can_not_be_kept_is_none(world: World, folder: Path) -> None:
    async with running(world, ready=False) as hand:
        await asked(hand)
        (places().config / "trusted.yaml").mkdir(parents=True)
        await hand.press("y")
        await hand.opened()
        await hand.until(lambda: any("trusted.yaml" in text for text in hand.said()))
        assert hand.chat.status.situation.folder.endswith("not trusted")


async def test_a_session_of_another_folder_asks_about_that_one(world: World, folder: Path) -> None:
    assert world.trust
    world.trust.grant(world.trust.look(folder))
    other = folder.parent / "other"
    other.mkdir()
    world.shelf.put("bbbb2222", "Elsewhere", cwd=other)
    async with running(world) as hand:
        await hand.send("/resume elsewhere")
        screen = await asked(hand)
        assert screen.seen.root == other
        await hand.press("n")
        await hand.until(lambda: hand.chat.status.situation.folder.endswith("not trusted"))


WIDE = "web_search: {url: 'https://find.example'}\nadd_dirs: [/opt/shared]\n"


def text_of(screen: AllowScreen) -> str:
    return "\n".join("".join(cell.text for cell in row) for row in screen.query_one("#trust-body", RowView).rows)


async def allowing(hand: Hand) -> AllowScreen:
    await hand.until(lambda: isinstance(hand.app.screen, AllowScreen))
    screen = hand.app.screen
    assert isinstance(screen, AllowScreen)
    await hand.until(lambda: screen.listening)
    return screen


async def test_values_of_its_settings_are_asked_about_one_by_one(world: World, folder: Path) -> None:
    (folder / ".ba" / "config.yaml").write_text(WIDE)
    async with running(world, ready=False) as hand:
        await asked(hand)
        await hand.press("y")
        screen = await allowing(hand)
        assert text_of(screen).startswith("This project asks to send web searches to https://find.example. Allow?\n")
        assert f"web_search.url: https://find.example\n{folder}/.ba/config.yaml:1" in text_of(screen)
        await hand.press("enter")
        await hand.until(lambda: hand.app.screen is not screen)
        screen = await allowing(hand)
        assert "to work in /opt/shared too" in text_of(screen)
        await hand.press("y")
        await hand.opened()
        assert [(each.setting, each.allowed) for each in Trust(places()).asked(folder)] == [
            ("web_search.url", False), ("add_dirs", True),
        ]  # fmt: skip
        await hand.send("/trust")
        await asked(hand)
        await hand.press("1")
        screen = await allowing(hand)
        assert "find.example" in text_of(screen), "only what is not allowed yet"
        await hand.press("1")
        await hand.until(lambda: all(each.allowed for each in Trust(places()).asked(folder)))


async def test_no_notice_names_a_value_right_after_a_no(world: World, folder: Path) -> None:
    (folder / ".ba" / "config.yaml").write_text(WIDE)
    waits = Notice(f"{folder}/.ba/config.yaml: add_dirs: left out until you allow it.", "warning", ASKS_AGAIN)
    world.notices = [waits, Notice("Something else.", "warning")]
    async with running(world, ready=False) as hand:
        await asked(hand)
        await hand.press("y")
        for _ in range(2):
            screen = await allowing(hand)
            await hand.press("n")
            await hand.until(lambda screen=screen: hand.app.screen is not screen)
        await hand.opened()
        await hand.until(lambda: "Something else." in hand.said())
        assert waits.text not in hand.said()
    async with running(world) as hand:
        await hand.until(lambda: waits.text in hand.said())


async def test_the_end_of_a_long_value_can_be_read() -> None:
    value = "https://models.example." + "a" * 2_000 + ".evil.example/v1"
    screen = AllowScreen(AskedSetting("providers.x.base_url", value, f"to send conversations to {value}", "f:1"))

    class Alone(App[None]):
        async def on_mount(self) -> None:
            await self.push_screen(screen)

    app = Alone()
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.pause()
        assert ".evil.example/v1" in text_of(screen)
        body = screen.query_one("#trust-body", RowView)
        assert "Esc no" in str(screen.query_one(".keys", Static).content)
        assert body.virtual_size.height * 40 > 2 * len(value) > body.size.height * 40, "it wraps, and it scrolls"


async def test_a_folder_that_is_not_trusted_is_asked_nothing_else(world: World, folder: Path) -> None:
    (folder / ".ba" / "config.yaml").write_text(WIDE)
    async with running(world, ready=False) as hand:
        await asked(hand)
        await hand.press("n")
        await hand.opened()
        assert hand.app.screen is hand.chat
        assert not any(each.allowed for each in Trust(places()).asked(folder))


@pytest.mark.parametrize(
    ("seen", "theme", "size"),
    [
        (NEW, "textual-dark", (80, 24)),
        (OTHER, "textual-light", (120, 36)),
        (OTHER, "textual-dark", (40, 10)),
    ],
)
def test_picture(snap_compare: Any, seen: TrustState, theme: str, size: tuple[int, int]) -> None:
    app = Asked(seen, theme=theme)

    async def settled(pilot: Pilot[None]) -> None:
        await app.workers.wait_for_complete()
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=settled)
