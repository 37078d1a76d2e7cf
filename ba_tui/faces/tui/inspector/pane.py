"""The inspector: one call in full, beside the conversation or over the whole screen. It only shows values."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, ClassVar

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

from ba_tui.core.displays.charts import Chart
from ba_tui.core.errors import BaError
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import byte_size, count
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.displays.renderer import Build
from ba_tui.faces.tui.displays.renderers import renderer_of
from ba_tui.faces.tui.inspector.json_tree import argument_rows
from ba_tui.faces.tui.inspector.model import CallState, DataTable, Inspected, Whole
from ba_tui.faces.tui.inspector.row_view import RowView
from ba_tui.faces.tui.inspector.rows import GridRow, line, marked, painted
from ba_tui.faces.tui.inspector.terminal import output_rows
from ba_tui.faces.tui.inspector.views import MOST, ResultViews, ViewName, table_name, text_of, views_of

if TYPE_CHECKING:
    from ba_tui.faces.tui.inspector.paged import Paged

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
    """Arguments above, result below. ``show`` replaces both.

    ``beside``: it stands beside the conversation, where single letters go to the input and are no keys.
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
        """The person wants it away."""

    def __init__(self, inspected: Inspected | None = None, *, beside: bool = False, id: str | None = None) -> None:
        super().__init__(id=id)
        self._beside = beside
        self.inspected = inspected or Inspected("")
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

    async def show(self, inspected: Inspected) -> None:
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
            from ba_tui.faces.tui.inspector.json_view import JsonView  # noqa: PLC0415 - only for JSON

            await place.mount(JsonView(self._views.value, id="tree"))
        elif self._view == "grid" and self._views.table:
            await self._show_grid(place, self._views.table)
        elif self._view == "chart" and inspected.datasets and isinstance(inspected.display, Chart):
            from ba_tui.faces.tui.charts.pane import pane_of  # noqa: PLC0415 - only for charts

            await place.mount(pane_of(inspected.display, inspected.datasets, letters=not self._beside))
        elif inspected.whole and self._view == "pages":
            from ba_tui.faces.tui.inspector.paged import Paged  # noqa: PLC0415 - only for what is stored

            await place.mount(Paged(inspected.whole, inspected.text, letters=not self._beside, id="sheet"))
        elif inspected.display and (make := renderer_of(inspected.display).widget):
            await place.mount(make(inspected.display))
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
        """Beside the conversation; else Enter opens and closes a branch of a tree."""
        if not self._beside and self._view == "tree":
            self.query_one("#tree", Tree).action_toggle_node()
        elif self._beside:
            self.app.push_screen(InspectorScreen(self.inspected))  # pyright: ignore[reportUnknownMemberType] - App is generic

    async def action_other_view(self) -> None:
        """The next view of the same result."""
        if len(self._views.names) > 1:
            self._view = self._views.after(self._view)
            await self._show_result()
            self.focus()

    def on_paged_known(self, event: Paged.Known) -> None:
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
        """Mark the line that the inspector was opened for, and bring it into sight."""
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
        """What is selected; else what has the focus: the arguments, or the result."""
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


def builds(inspected: Inspected, *, split: bool = False) -> list[Build]:
    """Functions that make the rows of the result, quick one first; each may run in a thread."""
    display, text = inspected.display, inspected.text
    renderer = renderer_of(display) if display else None
    # A question says why it is asked, a failure why it failed; what a command printed says so itself.
    ended = inspected.state in {"failed", "denied", "cancelled"} and not (renderer and renderer.printed)
    note = [*output_rows(text), line()] if text and (ended or inspected.state == "waiting") else []
    if renderer is None:
        return [lambda: output_rows(text) if text else [_nothing(inspected)]]
    return [lambda make=make: [*note, *make()] for make in renderer.page(display, split)]


def has_changes(inspected: Inspected) -> bool:
    """Whether it shows changes of files, which can stand side by side."""
    return inspected.display is not None and renderer_of(inspected.display).changes is not None


def _nothing(inspected: Inspected) -> GridRow:
    waiting = inspected.state in {"queued", "waiting", "running"}
    return line(("No result yet." if waiting else "No output.", "muted"))


def _title(inspected: Inspected, width: int) -> Content:
    """The name is cut where there is no room for all; how it went stays in sight."""
    name = Content.styled(painted(" ".join(inspected.title.split())), "bold")
    parts: list[str | tuple[str, str]] = []
    if inspected.state:
        parts += [("  ", ""), (inspected.state, STATE_COLOURS.get(inspected.state, MUTED))]
    if inspected.duration is not None:
        parts += [(f"  {spell(inspected.duration)}", MUTED)]
    if inspected.note:
        parts += [(f"  {painted(' '.join(inspected.note.split()))}", MUTED)]
    facts = Content.assemble(*parts)
    return name.truncate(max(width // 3, width - facts.cell_length), ellipsis=True) + facts


def _alternative(keys: str) -> str:
    """A key of the full screen and what it does, as it is beside the conversation."""
    key, does = keys.split(" ", 1)
    return f"{BESIDE.get(key) or (f'Alt+{key.upper()}' if key.isalpha() else key)} {does}"


def _keys(inspected: Inspected, view: ViewName, *, split: bool) -> list[str]:
    keys = ["Esc close", "y copy"]
    if view == "tree":
        return [*keys, "→ ← open and close"]
    if view == "pages":
        return [*keys, "w wrap", "/ search"]
    if view in {"grid", "chart"}:
        return keys
    if not (inspected.display and renderer_of(inspected.display).widget):
        keys.append("w wrap")
    if has_changes(inspected):
        keys.append("d one below the other" if split else "d side by side")
    return keys


def spell(seconds: float) -> str:
    """``0.3 s``, ``42 s``, ``3 min 5 s``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


class InspectorScreen(ModalScreen[None]):
    """The inspector over the whole screen."""

    DEFAULT_CSS = """
    InspectorScreen { background: $surface; }
    InspectorScreen Inspector { width: 100%; height: 100%; }
    """

    def __init__(self, inspected: Inspected) -> None:
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
