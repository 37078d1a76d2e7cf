"""The inspector: one call in full, beside the conversation or over the whole screen. It only shows values."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import ClassVar, Literal, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static, Tree

from ba_tui.core.errors import BaError
from ba_tui.core.results import Chart, Table
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import byte_size, count
from ba_tui.core.values import frozen
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.displays.renderer import Build, renderer_of
from ba_tui.faces.tui.grid.feed import LOOK, output_format
from ba_tui.faces.tui.inspector.json_values import LOOK as JSON_LOOK
from ba_tui.faces.tui.inspector.json_values import JsonView, Parsed, argument_rows, begins_like_json, parsed_json
from ba_tui.faces.tui.inspector.model import CallState, DataTable, InspectorValue, Whole
from ba_tui.faces.tui.inspector.paged import PagedView
from ba_tui.faces.tui.inspector.rows import GridRow, RowView, line, marked, painted
from ba_tui.faces.tui.inspector.source import output_rows
from ba_tui.faces.tui.meters import duration

MOST = 1_000_000
"""Bytes of a stored result that are read as JSON, or copied."""

ViewName: TypeAlias = Literal["tree", "result", "pages", "grid", "chart"]
"""A tree of JSON; the result in the conversation; the stored result by pages; a table or a chart of the session's data.
"""


@frozen
class ResultViews:
    """``value``: what a tree shows; ``table``: what a grid shows."""

    names: tuple[ViewName, ...] = ("result",)
    value: Parsed = None
    table: DataTable | None = None

    def after(self, name: ViewName) -> ViewName:
        """Return the view that follows ``name``, round the end."""
        return self.names[(self.names.index(name) + 1) % len(self.names)]

    def words(self, name: ViewName) -> str:
        """Return what the key that leads to it is called."""
        result = "text" if "tree" in self.names else "short form"
        return {"result": result, "pages": "whole text"}.get(name, name)


async def views_of(inspected: InspectorValue) -> ResultViews:
    """Read the data off the UI loop."""
    if inspected.datasets and isinstance(inspected.display, Chart):
        return ResultViews(("chart",))
    # Some displays (a diff, a table, todos) show more than the text that they were made of.
    complete = inspected.display is not None and renderer_of(inspected.display).complete
    names: list[ViewName] = ["result"]
    if inspected.whole:
        names = ["result", "pages"] if complete else ["pages", "result"]
    if result := _result(inspected):
        return ResultViews(("grid", *names), None, result)
    value = None if complete else await _json(inspected)
    table = None if complete or value is not None else await asyncio.to_thread(_output, inspected)
    found: list[ViewName] = [*(["tree"] if value is not None else []), *names, *(["grid"] if table else [])]
    return ResultViews(tuple(found), value, table)


def _result(inspected: InspectorValue) -> DataTable | None:
    """Return the result of a query, which the engine keeps."""
    display = inspected.display
    if inspected.datasets and isinstance(display, Table) and display.handle:
        return DataTable(inspected.datasets, display.handle)
    return None


def _output(inspected: InspectorValue) -> DataTable | None:
    """Return output that can become a table. Reads files."""
    if inspected.datasets is None:
        return None
    try:
        text = inspected.whole.reader.read(inspected.whole.ref, 0, LOOK).text if inspected.whole else text_of(inspected)
    except BaError:
        return None
    format = output_format(text)
    return DataTable(inspected.datasets, "", format) if format else None


def text_of(inspected: InspectorValue) -> str:
    """Return the result without gutters and decoration."""
    display = inspected.display
    return renderer_of(display).text(display) if display else inspected.text


async def table_name(table: DataTable, inspected: InspectorValue) -> str:
    """Return the name of the table; make the table first if necessary. Raises BaError."""
    if table.name:
        return table.name
    ref = inspected.whole.ref if inspected.whole else None
    return (await table.datasets.register_output(text_of(inspected), table.format, ref)).name


async def _json(inspected: InspectorValue) -> Parsed:
    if inspected.whole:
        return await asyncio.to_thread(_stored, inspected.whole)
    text = text_of(inspected)
    return await asyncio.to_thread(parsed_json, text) if begins_like_json(text) else None


def _stored(whole: Whole) -> Parsed:
    """Return the parsed JSON of a stored result; None if it is no JSON, larger than MOST or unreadable."""
    try:
        if not begins_like_json(whole.reader.read(whole.ref, 0, JSON_LOOK).text):
            return None
        page = whole.reader.read(whole.ref, 0, MOST)
    except BaError:
        return None
    return parsed_json(page.text) if page.last else None


WIDE = 120
"""Columns from which a diff opens side by side."""
MUTED = "$text-muted"
BESIDE = {"y": "Ctrl+Y", "/": "Ctrl+F"}
STATE_COLOURS: dict[CallState, str] = {
    "ok": "$text-success",
    "failed": "$text-error",
    "denied": "$text-warning",
    "cancelled": "$text-warning",
    "waiting": "$text-accent",
}


class Inspector(Widget):
    """Arguments above, result below; ``show`` replaces both. ``beside``: it is shown beside the conversation, where
    single letters go to the input.
    """

    DEFAULT_CSS = """
    Inspector {
        layout: vertical;
        background: $surface;
        padding: 0 1;
        & .title { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
        & .part { height: 1; color: $text-muted; margin-top: 1; }
        & .keys { height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
        & #arguments { height: auto; max-height: 30%; }
        & #result { height: 1fr; min-height: 1; }
        & RowView:focus, & TableView:focus { background-tint: $foreground 4%; }
        &.-low .part { margin-top: 0; }
        &.-low #arguments { max-height: 3; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Close"),
        Binding("enter", "full_screen", "Full screen", show=False),
        Binding("ctrl+y,y", "copy", "Copy"),
        Binding("alt+w,w", "wrap", "Wrap"),
        Binding("alt+d,d", "split", "Side by side"),
        Binding("alt+v,v", "other_view", "Other view"),
        Binding("tab", "other_part", "Other part", show=False),
    ]

    split: var[bool | None] = var[bool | None](None)
    """Diffs side by side; None decides by the width."""

    class Closed(Message):
        """The user closed it."""

    def __init__(self, inspected: InspectorValue | None = None, *, beside: bool = False, id: str | None = None) -> None:
        super().__init__(id=id)
        self._beside = beside
        self.inspected = inspected or InspectorValue("")
        self._shown_split: bool | None = None
        self._views = ResultViews()
        self._view: ViewName = "result"

    def compose(self) -> ComposeResult:
        yield Static(classes="title", markup=False)
        yield Static("Arguments", classes="part", id="arguments-label")
        yield RowView(id="arguments")
        yield Static("Result", classes="part", id="result-label")
        yield Vertical(id="result")
        yield Static(classes="keys", markup=False)

    async def on_mount(self) -> None:
        await self.show(self.inspected)

    def on_resize(self) -> None:
        self.set_class(self.size.height < 16, "-low")
        self._say_title()
        if self._is_split and self._split != self._shown_split:
            self._fill(self._result_view())

    @property
    def _is_split(self) -> bool:
        return has_changes(self.inspected) and self._view == "result"

    @property
    def _split(self) -> bool:
        return self.outer_size.width >= WIDE if self.split is None else self.split

    async def show(self, inspected: InspectorValue) -> None:
        """Show this call instead."""
        self.inspected = inspected
        views = await views_of(inspected)
        if self.inspected is not inspected:
            return
        self._views, self._view = views, views.names[0]
        self._say_title()
        arguments = self.query_one("#arguments", RowView)
        arguments.put(argument_rows(inspected.args))
        for part in ("#arguments", "#arguments-label"):
            self.query_one(part).display = bool(inspected.args)
        await self._show_result()

    def _say_title(self) -> None:
        self.query_one(".title", Static).update(_title(self.inspected, self.size.width))

    async def _show_result(self) -> None:
        inspected = self.inspected
        self._say_keys()
        label = self.query_one("#result-label", Static)
        self._say_label()
        label.display = bool(inspected.args or inspected.unread) or self._view == "pages"
        place = self.query_one("#result", Vertical)
        await place.remove_children()
        if self._view == "tree":
            await place.mount(JsonView(self._views.value, id="tree"))
        elif self._view == "grid" and self._views.table:
            await self._show_grid(place, self._views.table)
        elif self._view == "chart" and inspected.datasets and isinstance(inspected.display, Chart):
            from ba_tui.faces.tui.chart_pane import pane_of  # noqa: PLC0415 - only for charts

            await place.mount(pane_of(inspected.display, inspected.datasets, letters=not self._beside))
        elif inspected.whole and self._view == "pages":
            await place.mount(PagedView(inspected.whole, inspected.text, letters=not self._beside, id="sheet"))
        elif inspected.display and (renderer := renderer_of(inspected.display)).has_widget:
            await place.mount(renderer.widget(inspected.display))
        else:
            view = RowView(word_wrap=inspected.display is None or renderer_of(inspected.display).word_wrap, id="sheet")
            await place.mount(view)
            self._fill(view)

    async def _show_grid(self, place: Vertical, table: DataTable) -> None:
        from ba_tui.faces.tui.grid.pane import GridPane  # noqa: PLC0415 - only for data

        try:
            name = await table_name(table, self.inspected)
        except BaError as error:
            await place.mount(RowView([line((painted(error.with_hint), "warning"))], id="sheet"))
            return
        await place.mount(GridPane(table.datasets, name, letters=not self._beside))

    def _say_keys(self) -> None:
        keys = _keys(self.inspected, self._view, split=self._split)
        if len(self._views.names) > 1:
            keys.append(f"v {self._views.words(self._views.after(self._view))}")
        if self._view in {"grid", "chart"}:
            # Both name their own keys.
            keys = ["Tab arguments", *map(_alternative, keys[2:])]
        elif self._beside:
            keys = ["Esc close", "Enter full screen", *map(_alternative, keys[1:])]
        self.query_one(".keys", Static).update(" · ".join(keys))

    def action_full_screen(self) -> None:
        """Show it over the whole screen; there, Enter opens and closes branches of a tree."""
        if not self._beside and self._view == "tree":
            self.query_one("#tree", Tree).action_toggle_node()
        elif self._beside:
            self.app.push_screen(InspectorScreen(self.inspected))  # pyright: ignore[reportUnknownMemberType] - App is generic

    async def action_other_view(self) -> None:
        """Show the next view of the result."""
        if len(self._views.names) > 1:
            self._view = self._views.after(self._view)
            await self._show_result()
            self.focus()

    def on_paged_view_known(self, event: PagedView.Known) -> None:
        event.stop()
        about = event.artifact
        self._say_label(f"{byte_size(about.size)}, {count(about.lines, 'line')}")
        if place := self.inspected.sought_line:
            view = self._result_view()
            self.call_after_refresh(view.scroll_to, y=max(0, place - 1 - view.size.height // 3), animate=False)

    def _say_label(self, size: str = "") -> None:
        words = f"Result: {size}" if size else "Result"
        self.query_one("#result-label", Static).update(Content(f"{words}  {self.inspected.unread}".rstrip()))

    def focus(self, scroll_visible: bool = True, *, from_app_focus: bool = False) -> Inspector:
        """Focus the result."""
        for child in self.query("#sheet, #grid, #tree"):
            child.focus(scroll_visible)
        return self

    def _result_view(self) -> RowView:
        return self.query_one("#sheet", RowView)

    def _fill(self, view: RowView) -> None:
        self._shown_split = self._split
        self._say_keys()
        view.show(*builds(self.inspected, split=self._split))

    @on(RowView.LaidOut, "#sheet")
    def _seek(self, event: RowView.LaidOut) -> None:
        """Mark the line that the inspector was opened for, and scroll to it."""
        view, sought = event.view, self.inspected.sought
        rows = (at for at, row in enumerate(view.rows) if sought in " ".join(cell.text for cell in row))
        at = next(rows, None) if sought else None
        if at is not None:
            view.swap([*view.rows[:at], marked(view.rows[at]), *view.rows[at + 1 :]])
            view.reveal(at, above=view.size.height // 3)

    def watch_split(self) -> None:
        if self.is_mounted and self._is_split:
            self._fill(self._result_view())

    def action_close(self) -> None:
        self.post_message(self.Closed())

    def action_copy(self) -> None:
        """Copy the selection, else the focused part: the arguments or the result."""
        if selected := self.screen.get_selected_text():
            self.post_message(CopyToClipboard(selected))
            return
        if self._view != "result" and self.inspected.whole and not self.query_one("#arguments", RowView).has_focus:
            self.run_worker(
                partial(self._copy_whole, self.inspected.whole), group="copy", exclusive=True, exit_on_error=False
            )
            return
        if self.query_one("#arguments", RowView).has_focus:
            text = json.dumps(dict(self.inspected.args), ensure_ascii=False, indent=2, default=str)
        else:
            text = text_of(self.inspected)
        self.post_message(CopyToClipboard(paintable(text)))

    async def _copy_whole(self, whole: Whole) -> None:
        try:
            page = await asyncio.to_thread(whole.reader.read, whole.ref, 0, MOST)
        except BaError as error:
            self.post_message(CopyToClipboard(paintable(self.inspected.text), f"This is the model's copy: {error}"))
            return
        note = "" if page.last else f"That is the first {byte_size(page.upto)} of {byte_size(page.size)}."
        self.post_message(CopyToClipboard(paintable(page.text), note))

    def action_wrap(self) -> None:
        for view in self.query(RowView):
            view.wrap = not view.wrap

    def action_split(self) -> None:
        self.split = not self._split

    def action_other_part(self) -> None:
        arguments = self.query_one("#arguments", RowView)
        if arguments.display and not arguments.has_focus:
            arguments.focus()
        else:
            self.focus()


def builds(inspected: InspectorValue, *, split: bool = False) -> list[Build]:
    """Return functions that make the rows of the result, a quick one first; each may run in a thread."""
    display, text = inspected.display, inspected.text
    renderer = renderer_of(display) if display else None
    # A question says why it is asked, a failure why it failed; what a command printed says so itself.
    ended = inspected.state in {"failed", "denied", "cancelled"} and not (renderer and renderer.printed)
    note = [*output_rows(text), line()] if text and (ended or inspected.state == "waiting") else []
    if renderer is None:
        return [lambda: output_rows(text) if text else [_nothing(inspected)]]
    return [lambda make=make: [*note, *make()] for make in renderer.page(display, split=split)]


def has_changes(inspected: InspectorValue) -> bool:
    """Return whether it shows changes of files, which can be shown side by side."""
    return inspected.display is not None and renderer_of(inspected.display).has_changes


def _nothing(inspected: InspectorValue) -> GridRow:
    waiting = inspected.state in {"queued", "waiting", "running"}
    return line(("No result yet." if waiting else "No output.", "muted"))


def _title(inspected: InspectorValue, width: int) -> Content:
    """Return the name is cut where there is no room for all; how it went stays in sight."""
    name = Content.styled(painted(" ".join(inspected.title.split())), "bold")
    parts: list[str | tuple[str, str]] = []
    if inspected.state:
        parts += [("  ", ""), (inspected.state, STATE_COLOURS.get(inspected.state, MUTED))]
    if inspected.duration is not None:
        parts += [(f"  {duration(inspected.duration)}", MUTED)]
    if inspected.note:
        parts += [(f"  {painted(' '.join(inspected.note.split()))}", MUTED)]
    facts = Content.assemble(*parts)
    return name.truncate(max(width // 3, width - facts.cell_length), ellipsis=True) + facts


def _alternative(keys: str) -> str:
    """Return the label of a key for the inspector beside the conversation."""
    key, does = keys.split(" ", 1)
    return f"{BESIDE.get(key) or (f'Alt+{key.upper()}' if key.isalpha() else key)} {does}"


def _keys(inspected: InspectorValue, view: ViewName, *, split: bool) -> list[str]:
    keys = ["Esc close", "y copy"]
    if view == "tree":
        return [*keys, "→ ← open and close"]
    if view == "pages":
        return [*keys, "w wrap", "/ search"]
    if view in {"grid", "chart"}:
        return keys
    if not (inspected.display and renderer_of(inspected.display).has_widget):
        keys.append("w wrap")
    if has_changes(inspected):
        keys.append("d one below the other" if split else "d side by side")
    return keys


class InspectorScreen(ModalScreen[None]):
    """The inspector over the whole screen."""

    DEFAULT_CSS = """
    InspectorScreen { background: $surface; }
    InspectorScreen Inspector { width: 100%; height: 100%; }
    """

    def __init__(self, inspected: InspectorValue) -> None:
        super().__init__()
        self.inspected = inspected

    def compose(self) -> ComposeResult:
        yield Inspector(self.inspected)

    def on_mount(self) -> None:
        self.call_after_refresh(self.query_one(Inspector).focus)

    @on(Inspector.Closed)
    def _close_screen(self, event: Inspector.Closed) -> None:
        event.stop()
        self.dismiss()
