"""Rows and their layout change together: no view paints new rows by an old layout, whatever comes in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from textual.app import App, ComposeResult
from textual.selection import SELECT_ALL
from textual.widget import Widget

from ba_tui.core.events import Event, TurnEnded, TurnStarted
from ba_tui.core.messages import user
from ba_tui.core.plan_folds import PlanCourse
from ba_tui.core.ports.tables import Column, Page
from ba_tui.core.teamwork import SubTask
from ba_tui.faces.tui.grid.view import GridView
from ba_tui.faces.tui.inspector.rows import SMALL, GridRow, RowView, line
from ba_tui.faces.tui.transcript.view import TranscriptView
from ba_tui.features.plans.tui.view import PlanView
from tests.faces.tui.plan.course import TRIP, course

MANY = SMALL + 50


def single(count: int) -> list[GridRow]:
    return [line((f"one {number}", "")) for number in range(count)]


def double(count: int) -> list[GridRow]:
    return [(*line((f"left {number}", "")), *line((f"right {number}", ""))) for number in range(count)]


class Shows(App[None]):
    def __init__(self, view: Widget) -> None:
        super().__init__()
        self.view = view

    def compose(self) -> ComposeResult:
        yield self.view


def painted(view: RowView | GridView | PlanView | TranscriptView) -> list[str]:
    return [view.render_line(y).text.rstrip() for y in range(view.size.height)]


@pytest.mark.parametrize(("before", "after"), [(single, double), (double, single)])
@pytest.mark.parametrize("count", [2, MANY])
async def test_rows_are_painted_by_their_own_layout(
    before: Callable[[int], Sequence[GridRow]], after: Callable[[int], Sequence[GridRow]], count: int
) -> None:
    view = RowView()
    async with Shows(view).run_test(size=(60, 12)) as pilot:
        view.put(before(MANY))
        while not painted(view)[0]:
            await pilot.pause()
        view.put(after(count))
        painted(view)
        # The new layout is being made, or is there: what is painted is one of the two, never a mixture.
        for width in (40, 90, 20, 60):
            await pilot.resize_terminal(width, 12)
            shown = [text for text in painted(view) if text]
            assert len({text.split()[0] for text in shown}) == 1, shown
            view.get_selection(SELECT_ALL)
        while painted(view)[0].split()[0] != ("one" if after is single else "left"):
            await pilot.pause()
        view.reveal(count - 1)


class Tables:
    """A table that gets other columns while it is read."""

    def __init__(self) -> None:
        self.columns = tuple(Column(name, "VARCHAR") for name in "abcd")

    async def page(self, table: str, wanted: object = None, *, offset: int = 0, limit: int = 0) -> Page:
        rows = tuple(tuple("x" for _ in self.columns) for _ in range(limit))
        return Page(self.columns, rows, tuple(range(offset, offset + limit)), offset, 100_000)


async def test_a_table_that_loses_columns_while_it_is_read_is_laid_out_again() -> None:
    tables = Tables()
    view = GridView(tables, "t")  # pyright: ignore[reportArgumentType] - one method of the port
    async with Shows(view).run_test(size=(60, 12)) as pilot:
        while not view.feed.ready or len(painted(view)[0].split()) != 4:
            await pilot.pause()
        view.go(0, 3)
        tables.columns = tables.columns[:2]
        view.go(50_000)
        while len(painted(view)[0].split()) != 2:
            await pilot.pause()
        assert painted(view)[1].split()[1:] == ["x", "x"]
        view.show(view.feed.arrangement)
        await pilot.pause()
        view.go(1)
        assert view.cursor[1] < 2


async def test_a_plan_that_is_made_anew_while_it_is_hidden_is_painted_anew() -> None:
    view, fold = PlanView(), PlanCourse(course("flights", executing="hotel"))
    async with Shows(view).run_test(size=(60, 12)) as pilot:
        assert fold.newest
        view.show(fold.newest)
        await pilot.resize_terminal(1, 12)
        other = replace(TRIP, subtasks=(SubTask("new", "Another way", status="executing"),))
        for event in course(plan=other):
            fold.apply(event)
        view.show(fold.newest)
        view.choose("new")
        await pilot.resize_terminal(60, 12)
        assert "Another way" in painted(view)[0]


async def test_a_transcript_that_is_emptied_while_it_is_hidden_is_painted_anew() -> None:
    view = TranscriptView()
    story: list[Event] = [each for n in range(30) for each in (TurnStarted(user(f"prompt {n}")), TurnEnded("done"))]
    async with Shows(view).run_test(size=(60, 12)) as pilot:
        view.replay(story)
        await pilot.pause()
        assert any("prompt 29" in text for text in painted(view))
        view.styles.height = 0
        await pilot.pause()
        view.clear()
        # What Textual asks for when the room is back, before the view hears of that.
        assert not any(view.render_line(y).text.strip() for y in range(12))
