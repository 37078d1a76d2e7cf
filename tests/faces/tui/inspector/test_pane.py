"""The inspector as people use it: every key, every display type, long content, and what it copies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.worker import WorkerFailed

from ba_tui.core.results import CommandText, Diff, Display, Prose, Source, Table, Todo, Todos
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.displays.table import TableView
from ba_tui.faces.tui.inspector.model import InspectorValue
from ba_tui.faces.tui.inspector.pane import Inspector, InspectorScreen
from ba_tui.faces.tui.inspector.rows import GridRow, RowView, line
from ba_tui.faces.tui.meters import duration

CHANGE = Diff("src/a.py", "a\nold\n", "a\nnew\n")


class Room(App[None]):
    def __init__(self, inspected: InspectorValue) -> None:
        super().__init__()
        self.pane = Inspector(inspected)
        self.copied: list[str] = []
        self.closed = 0

    def compose(self) -> ComposeResult:
        yield self.pane

    def on_mount(self) -> None:
        self.call_after_refresh(self.pane.focus)

    def on_copy_to_clipboard(self, event: CopyToClipboard) -> None:
        self.copied.append(event.text)

    def on_inspector_closed(self) -> None:
        self.closed += 1


async def settle(pilot: Pilot[None]) -> None:
    for _ in range(2):
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def seen(app: App[None]) -> str:
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)


@pytest.mark.parametrize(
    ("display", "words", "copied"),
    [
        (
            CHANGE,
            ["src/a.py  +1 -1", "2 - old", "2 + new"],
            "--- src/a.py\n+++ src/a.py\n@@ -1,2 +1,2 @@\n a\n-old\n+new\n",
        ),
        (CommandText("ls", "src", "\x1b[31ma.py\x1b[0m\n", 2), ["$ ls", "in src", "a.py", "exit 2"], "a.py\n"),
        (Source("a.py", "x = 1\n", 7), ["7  x = 1"], "x = 1\n"),
        (Prose("# One\n", markdown=True), ["# One"], "# One\n"),
        (Todos((Todo("1", "Do it", "completed"),)), ["[x] Do it"], "- [x] Do it"),
        (Table(("n", "name"), ((1, "[b]x"),)), ["n", "name", "1", "[b]x"], "n\tname\n1\t[b]x"),
        (None, ["what the model read"], "what the model read"),
    ],
)
async def test_each_display_is_shown_and_copied(display: Display | None, words: list[str], copied: str) -> None:
    inspected = InspectorValue("tool target", {"path": "p.py"}, display, "what the model read", "ok", 0.25)
    async with Room(inspected).run_test(size=(80, 24)) as pilot:
        app = pilot.app
        assert isinstance(app, Room)
        await settle(pilot)
        screen = seen(app)
        for word in ["tool target", "ok", "0.2 s", "path: p.py", *words]:
            assert word in screen, screen
        await pilot.press("y")
        await settle(pilot)
        assert app.copied == [copied]


async def test_escape_and_q_close() -> None:
    async with Room(InspectorValue("x", {}, CHANGE)).run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Room)
        await settle(pilot)
        await pilot.press("escape", "q")
        await settle(pilot)
        assert app.closed == 2


async def test_arguments_are_copied_when_they_have_the_focus() -> None:
    async with Room(InspectorValue("x", {"a": "ü"}, CHANGE)).run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Room)
        await settle(pilot)
        await pilot.press("tab", "y", "tab", "y")
        await settle(pilot)
        assert app.copied[0] == '{\n  "a": "ü"\n}'
        assert app.copied[1].startswith("---")


async def test_d_puts_a_diff_side_by_side_and_back() -> None:
    async with Room(InspectorValue("x", {}, CHANGE)).run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        sheet = pilot.app.query_one("#sheet", RowView)
        assert max(map(len, sheet.rows)) == 1
        await pilot.press("d")
        await settle(pilot)
        assert max(map(len, sheet.rows)) == 2
        await pilot.press("d")
        await settle(pilot)
        assert max(map(len, sheet.rows)) == 1


async def test_a_wide_pane_shows_both_sides_at_once() -> None:
    async with Room(InspectorValue("x", {}, CHANGE)).run_test(size=(120, 24)) as pilot:
        await settle(pilot)
        assert max(map(len, pilot.app.query_one("#sheet", RowView).rows)) == 2
        assert "d one below the other" in seen(pilot.app)
        assert "Result" not in seen(pilot.app), "a heading only where there is another part"
        await pilot.resize_terminal(100, 24)
        await settle(pilot)
        assert max(map(len, pilot.app.query_one("#sheet", RowView).rows)) == 1
        assert "d side by side" in seen(pilot.app)


async def test_w_lets_long_lines_run_on_and_scroll_beside_their_numbers() -> None:
    async with Room(InspectorValue("x", {}, Source("a.txt", "x" * 300 + "END"))).run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        sheet = pilot.app.query_one("#sheet", RowView)
        assert sheet.line_count > 3
        await pilot.press("w")
        await settle(pilot)
        assert sheet.line_count == 1
        sheet.scroll_to(x=sheet.max_scroll_x, animate=False)
        await settle(pilot)
        assert "1  xx" in seen(pilot.app)
        assert "END" in seen(pilot.app)


async def test_another_call_replaces_the_first() -> None:
    async with Room(InspectorValue("one", {"a": 1}, Table(("n",), ((1,),)))).run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Room)
        await settle(pilot)
        assert app.query(TableView)
        await app.pane.show(InspectorValue("two", {}, None, "", "running"))
        await settle(pilot)
        screen = seen(app)
        assert "two  running" in screen
        assert "No result yet." in screen
        assert "Arguments" not in screen


async def test_the_screen_closes_with_escape_and_passes_the_copy_on() -> None:
    async with Room(InspectorValue("x")).run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Room)
        await app.push_screen(InspectorScreen(InspectorValue("full", {}, CHANGE)))
        await settle(pilot)
        assert "2 + new" in seen(app)
        await pilot.press("y", "escape")
        await settle(pilot)
        assert app.copied
        assert not isinstance(app.screen, InspectorScreen)


async def test_a_failure_is_said_beside_its_display() -> None:
    inspected = InspectorValue("edit " + "a/" * 60, {}, CHANGE, "The file changed meanwhile.", "failed", note="changed")
    async with Room(inspected).run_test() as pilot:
        await settle(pilot)
        assert "The file changed meanwhile." in seen(pilot.app)
        assert seen(pilot.app).splitlines()[0].endswith("…  failed  changed"), "how it went stays in sight"


async def test_a_long_diff_opens_and_reaches_its_end() -> None:
    before = "".join(f"value_{n} = {n}\n" for n in range(5_000))
    display = Diff("long.py", before, before.replace("1 =", "2 ="))
    async with Room(InspectorValue("x", {}, display)).run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        sheet = pilot.app.query_one("#sheet", RowView)
        assert sheet.line_count > 1_000
        await pilot.press("end")
        await settle(pilot)
        assert "4995   value_4994 = 4994" in seen(pilot.app)
        assert "5 unchanged lines" in seen(pilot.app)


async def test_long_output_scrolls_to_its_end_in_a_small_pane() -> None:
    output = "".join(f"\x1b[3{n % 8}mline {n}\x1b[0m\n" for n in range(20_000))
    async with Room(InspectorValue("x", {"command": "make"}, CommandText("make", "", output, 0))).run_test(
        size=(40, 10)
    ) as pilot:
        await settle(pilot)
        await pilot.press("end")
        await settle(pilot)
        assert "line 19999" in seen(pilot.app)
        assert "exit 0" in seen(pilot.app)


async def test_a_table_larger_than_the_grid_says_so() -> None:
    table = Table(("n",), tuple((n,) for n in range(1_050)))
    async with Room(InspectorValue("x", {}, table)).run_test() as pilot:
        await settle(pilot)
        grid = pilot.app.query_one(TableView)
        assert grid.row_count == 1_001
        assert grid.get_row_at(1_000)[0].plain == "… 50 more rows"


async def test_rows_can_be_selected_without_their_gutters() -> None:
    async with Room(InspectorValue("x", {}, Source("a.txt", "alpha\nbeta\n"))).run_test(size=(60, 12)) as pilot:
        await settle(pilot)
        sheet = pilot.app.query_one("#sheet", RowView)
        await pilot.mouse_down(sheet, offset=(3, 0))
        await pilot.hover(sheet, offset=(6, 1))
        await pilot.mouse_up(sheet, offset=(6, 1))
        await settle(pilot)
        assert (pilot.app.screen.get_selected_text() or "").strip().startswith("alpha\nbet")


async def test_rows_given_at_once() -> None:
    async with Room(InspectorValue("x")).run_test() as pilot:
        await settle(pilot)
        sheet = pilot.app.query_one("#sheet", RowView)
        sheet.put([line(("brackets [red]stay[/]", "heading"), gutter="> ", tone="selected")])
        await settle(pilot)
        assert "> brackets [red]stay[/]" in seen(pilot.app)


@pytest.mark.parametrize(("seconds", "words"), [(0.04, "0.0 s"), (9.96, "10.0 s"), (59, "59 s"), (72.3, "1 min 12 s")])
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_nothing_heavy_is_imported_before_something_is_shown() -> None:
    program = (
        "import sys; import ba_tui.faces.tui.widgets.ask, ba_tui.faces.tui.inspector.pane;"
        "print([name for name in ('pygments', 'yaml', 'pydantic', 'anthropic', 'openai', 'textual.widgets._data_table')"
        " if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[4]
    )
    assert done.stdout.strip() == "[]"


async def test_what_cannot_be_made_is_said_and_a_better_version_may_fail() -> None:
    def broken() -> list[GridRow]:
        raise ValueError("odd [b]bytes[/]")

    async with Room(InspectorValue("x")).run_test() as pilot:
        await settle(pilot)
        sheet = pilot.app.query_one("#sheet", RowView)
        sheet.show(broken)
        with pytest.raises(WorkerFailed):
            await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert "Cannot show this: ValueError: odd [b]bytes[/]" in seen(pilot.app)
        sheet.show(lambda: [line(("plain", ""))], broken)
        with pytest.raises(WorkerFailed):
            await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert "plain" in seen(pilot.app)
