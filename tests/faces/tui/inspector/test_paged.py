"""Stored results, read page by page from real files: what is seen, searched, selected and copied."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection
from textual.widgets import Static

from ba_tui.core.errors import StorageError
from ba_tui.core.results import Diff, TextPage
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.inspector.model import InspectorValue, Whole
from ba_tui.faces.tui.inspector.paged import PAGE, PagedView
from ba_tui.faces.tui.inspector.pane import Inspector
from ba_tui.sessions.artifacts import Artifacts


class Counting(Artifacts):
    """Keeps which lines were asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.asked: list[int] = []

    def lines(self, ref: str, start: int = 1, count: int = 200, limit: int = 65_536) -> TextPage:
        self.asked.append(start)
        return super().lines(ref, start, count, limit)


class Look(App[None]):
    def __init__(self, inspected: InspectorValue) -> None:
        super().__init__()
        self.inspected = inspected
        self.copied: list[tuple[str, str]] = []

    def compose(self) -> ComposeResult:
        yield Inspector(self.inspected)

    def on_copy_to_clipboard(self, event: CopyToClipboard) -> None:
        self.copied.append((event.text, event.note))

    @property
    def shown(self) -> list[str]:
        sheet = self.query_one("#sheet")
        return [sheet.render_line(y).text.rstrip() for y in range(sheet.size.height)]


@pytest.fixture
def stored(tmp_path: Path) -> Counting:
    return Counting(tmp_path / "data")


@asynccontextmanager
async def looking(
    inspected: InspectorValue, columns: int = 60, rows: int = 20
) -> AsyncGenerator[tuple[Look, Pilot[None]]]:
    app = Look(inspected)
    async with app.run_test(size=(columns, rows)) as pilot:
        await until(pilot, lambda: app.query("#sheet"))
        app.query_one(Inspector).focus()
        yield app, pilot


async def until(pilot: Pilot[None], true: Callable[[], object]) -> None:
    while not true():  # noqa: ASYNC110 - what a person sees has no event to wait for
        await asyncio.sleep(0.005)
    await pilot.pause()


def kept(stored: Artifacts, text: str | bytes, **more: object) -> InspectorValue:
    whole = Whole(stored, stored.store(text).ref)
    return InspectorValue("shell make", {}, None, "what the model was given", "ok", 1.0, whole=whole, **more)  # pyright: ignore[reportArgumentType]


LONG = "".join(f"line {number} of the log\n" for number in range(1, 50_001))


async def test_only_what_is_seen_is_read(stored: Counting) -> None:
    async with looking(kept(stored, LONG)) as (app, pilot):
        await until(pilot, lambda: "    1  line 1 of the log" in app.shown[0])
        assert stored.asked == [1]
        assert "1.1 MB, 50,000 lines" in str(app.query_one("#result-label", Static).content)
        await pilot.press("G")
        await until(pilot, lambda: app.shown[-1] == "50000  line 50000 of the log")
        assert len(stored.asked) == 2
        await pilot.press("g")
        await pilot.pause()
        assert app.shown[0] == "    1  line 1 of the log"
        assert len(stored.asked) == 2


async def test_searching_walks_through_the_hits(stored: Counting) -> None:
    text = LONG.replace("line 700 of", "line 700 with a NEEDLE of").replace(
        "line 40000 of", "a needle, and line 40000 of"
    )
    async with looking(kept(stored, text)) as (app, pilot):
        await until(pilot, lambda: app.shown[0])
        await pilot.press("slash", *"needle", "q", "backspace", "enter")
        await until(pilot, lambda: any("700 with a NEEDLE" in line for line in app.shown))
        assert "hit 1 of 2" in app.shown[-1]
        await pilot.press("n")
        await until(pilot, lambda: any("a needle, and line 40000" in line for line in app.shown))
        await pilot.press("n")
        await until(pilot, lambda: any("700 with a NEEDLE" in line for line in app.shown))
        await pilot.press("N")
        await until(pilot, lambda: any("a needle, and line 40000" in line for line in app.shown))
        await pilot.press("slash", "ctrl+u", *"nowhere", "enter")
        await until(pilot, lambda: "nothing found" in app.shown[-1])
        await pilot.press("escape")
        await pilot.pause()
        assert app.query(Inspector)
        assert "nothing found" not in app.shown[-1]


async def test_long_lines_fold_and_the_last_one_can_be_reached(stored: Counting) -> None:
    text = "\n".join(f"{number} " + "word " * 60 for number in range(30)) + "\nthe end"
    async with looking(kept(stored, text), 60, 12) as (app, pilot):
        await until(pilot, lambda: "0 word" in app.shown[0] and app.shown[1].strip().startswith("ord word"))
        await pilot.press("G")
        await until(pilot, lambda: any(line.endswith("the end") for line in app.shown))
        for key in ("w", "g", "right"):
            # All at once: a key counts before the screen has been laid out for the one before it.
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: app.shown[1].lstrip().startswith("2  d word"))


async def test_foreign_text_stays_text(stored: Counting) -> None:
    text = "[bold]no markup[/]\n\x1b[31mred\x1b[0m\x1b]52;c;AAAA\x07 and plain\n\n" + "x" * 200_000 + "\nafter\n"
    async with looking(kept(stored, text)) as (app, pilot):
        await until(pilot, lambda: "no markup" in app.shown[0])
        assert app.shown[0].endswith("[bold]no markup[/]")
        assert app.shown[1].endswith("red and plain")
        await pilot.press("w")
        await until(pilot, lambda: app.shown[4].endswith("after"))


async def test_copying_the_whole_says_how_much_it_is(stored: Counting) -> None:
    async with looking(kept(stored, LONG)) as (app, pilot):
        await until(pilot, lambda: app.shown[0])
        await pilot.press("y")
        await until(pilot, lambda: app.copied)
        text, note = app.copied[0]
        assert LONG.startswith(text)
        assert len(text) == 1_000_000
        assert note == "That is the first 1.0 MB of 1.1 MB."


async def test_what_is_selected_is_copied_without_numbers(stored: Counting) -> None:
    async with looking(kept(stored, LONG)) as (app, pilot):
        await until(pilot, lambda: "line 3" in app.shown[2])
        sheet = app.query_one(PagedView)
        app.screen.selections = {sheet: Selection(Offset(5, 1), Offset(6, 2))}
        await pilot.press("y")
        await until(pilot, lambda: app.copied)
        assert app.copied == [("2 of the log\nline 3", "")]


async def test_an_expired_result_shows_what_is_left(stored: Counting, tmp_path: Path) -> None:
    inspected = kept(stored, LONG)
    assert inspected.whole
    (tmp_path / inspected.whole.ref).unlink()
    async with looking(inspected) as (app, pilot):
        await until(pilot, lambda: any("what the model was given" in line for line in app.shown))
        assert "deleted by the clean-up" in " ".join(app.shown)
        await pilot.press("y")
        await until(pilot, lambda: app.copied)
        assert app.copied[0][0] == "what the model was given"


async def test_a_page_that_can_not_be_read_says_so(stored: Counting) -> None:
    inspected = kept(stored, LONG)
    async with looking(inspected) as (app, pilot):
        await until(pilot, lambda: app.shown[0])

        def broken(ref: str, start: int = 1, count: int = 200, limit: int = 65_536) -> TextPage:
            raise StorageError("The disk is gone.")

        stored.lines = broken
        await pilot.press("G")
        await pilot.pause()
        first = 50_000 - 50_000 % PAGE - (0 if 50_000 % PAGE else PAGE)
        sheet = app.query_one(PagedView)
        await until(pilot, lambda: "The disk is gone." in sheet.row(first)[0].text)


async def test_a_picture_of_its_own_comes_first(stored: Counting) -> None:
    whole = Whole(stored, stored.store(LONG).ref)
    inspected = InspectorValue("edit_file a", {}, Diff("a", "one\n", "two\n"), "", "ok", whole=whole)
    async with looking(inspected) as (app, pilot):
        await until(pilot, lambda: any("two" in line for line in app.shown))
        await pilot.press("v")
        await until(pilot, lambda: app.query(PagedView) and "line 1" in app.shown[0])
        await pilot.press("v")
        await until(pilot, lambda: not app.query(PagedView) and any("two" in line for line in app.shown))
