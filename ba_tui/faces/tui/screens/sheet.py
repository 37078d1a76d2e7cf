"""Sheets: a heading, a body and a line of keys in the middle of the screen. Their bodies are reports with aligned rows,
rows of text, or Markdown.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from rich.cells import cell_len, set_cell_size
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.values import frozen
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.inspector.rows import GridRow, RowView, line, painted
from ba_tui.faces.tui.transcript.page import MarkdownPage
from ba_tui.faces.tui.transcript.view import TranscriptView

SHEETS = Path(__file__).parents[1] / "styles" / "screens.tcss"
"""Absolute, because screens of features are in other folders."""
LOW: list[tuple[int, str]] | None = [(0, "-low"), (18, "-tall")]
"""Rows of a screen from which a sheet has margins."""
KEY_NAMES = {"underscore": "_", "slash": "/", "pageup": "PgUp", "pagedown": "PgDn", "escape": "Esc"}
R = TypeVar("R")


def app_of(screen: Screen[Any]) -> App[Any]:
    """Return the app that shows ``screen``."""
    return cast("App[Any]", screen.app)  # pyright: ignore[reportUnknownMemberType] - App is generic


def spelled(keys: str) -> str:
    """Return ``ctrl+underscore,alt+b`` as ``Ctrl+_  Alt+B``."""
    return "  ".join(_spelled_key(key.strip().split("+")) for key in keys.split(","))


def _spelled_key(parts: list[str]) -> str:
    """Spell one key. A single letter keeps its case: ``g`` and ``G`` are two keys."""
    if len(parts) == 1 and len(parts[0]) == 1:
        return parts[0]
    return "+".join(KEY_NAMES.get(part, part.title() if len(part) > 1 else part.upper()) for part in parts)


class Sheet(ModalScreen[R]):
    """Subclasses compose the ``body``. Esc dismisses the sheet with None."""

    CSS_PATH = SHEETS
    VERTICAL_BREAKPOINTS = LOW
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close", show=False)]

    def __init__(self, title: str = "", *, keys: str = "Esc close", classes: str = "picker") -> None:
        super().__init__(classes=classes)
        self.keys = keys
        self._heading = title

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(paintable(self._heading, newlines=False), classes="title", markup=False)
            yield from self.body()
            yield Static(self.keys, classes="keys", markup=False)

    def body(self) -> ComposeResult:
        """Yield the widgets between the heading and the keys."""
        raise NotImplementedError

    def entitle(self, text: str) -> None:
        """Change the heading."""
        self.query_one(".title", Static).update(paintable(text, newlines=False))

    def say(self, text: str, style: str = "") -> None:
        """Show a message in place of the keys; an empty text shows the keys again."""
        shown = Content.styled(paintable(text, newlines=False), style) if text else self.keys
        self.query_one(".keys", Static).update(shown)

    def action_close(self) -> None:
        self.dismiss(None)


STYLES = {"deny": "$text-error", "ask": "$text-warning", "allow": "$text-success"}
WIDEST = 30
SHORT = 12


@frozen
class ReportRow:
    """One row; ``kind`` colours its second cell (``deny``, ``ask``, ``allow``) or makes it a ``heading``."""

    cells: tuple[str, ...]
    kind: str = ""


class ReportPane(Sheet[None]):
    """A ``lead`` and aligned ``rows``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,enter,f1", "close", "Close", show=False),
        Binding("down,j", "scroll(1)", "Down", show=False),
        Binding("up,k", "scroll(-1)", "Up", show=False),
        Binding("pagedown,space", "scroll(10)", "Page down", show=False),
        Binding("pageup", "scroll(-10)", "Page up", show=False),
        Binding("home,g", "ends('home')", "First line", show=False),
        Binding("end,G", "ends('end')", "Last line", show=False),
    ]

    def __init__(self, title: str, lead: str, rows: Sequence[ReportRow]) -> None:
        super().__init__(title, keys="↑ ↓ scroll · Esc close", classes="report")
        self.set_class(len(rows) > SHORT, "-long")
        self.lead = lead
        self.rows = rows

    def body(self) -> ComposeResult:
        if self.lead:
            yield Static(paintable(self.lead), classes="lead", markup=False)
        with VerticalScroll(can_focus=False):
            yield Static(classes="rows", markup=False)

    def on_resize(self) -> None:
        self.call_after_refresh(self.redraw)

    def redraw(self) -> None:
        """Show ``rows`` as they are now."""
        place = self.query_one(".rows", Static)
        width = max(20, self.query_one(VerticalScroll).size.width - 2)
        place.update(table(self.rows, width) if self.rows else Content.styled("Nothing.", "$text-muted"))

    def action_scroll(self, by: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)

    def action_ends(self, end: str) -> None:
        place = self.query_one(VerticalScroll)
        place.scroll_to(y=place.max_scroll_y if end == "end" else 0, animate=False)


def table(rows: Sequence[ReportRow], width: int) -> Content:
    """Return rows with aligned, wrapped columns; the last one gets the remaining width."""
    cleaned = [tuple(paintable(cell, newlines=False) for cell in row.cells) for row in rows]
    columns = max(len(cells) for cells in cleaned)
    plain = [cells for cells, row in zip(cleaned, rows, strict=True) if row.kind != "heading"]
    widths = [
        min(WIDEST, width * 2 // 5, max((cell_len(cells[index]) for cells in plain if index < len(cells)), default=0))
        for index in range(columns - 1)
    ]
    indent = sum(widths) + 2 * len(widths)
    lines: list[Content] = []
    for cells, row in zip(cleaned, rows, strict=True):
        if row.kind == "heading":
            lines += [*([Content("")] if lines else []), Content.styled(cells[0], "bold")]
            continue
        room = [*widths, max(10, width - indent)]
        folded = [_wrapped(cell, room[index]) for index, cell in enumerate(cells)]
        for number in range(max(map(len, folded), default=0)):
            parts = [
                (set_cell_size(fold[number] if number < len(fold) else "", room[index]) + "  ", _style(row, index))
                for index, fold in enumerate(folded[: columns - 1])
            ]
            last = folded[-1] if len(cells) == columns else []
            lines.append(Content.assemble(*parts, (last[number] if number < len(last) else "", "$text-muted")))
    return Content("\n").join(lines)


def _style(row: ReportRow, index: int) -> str:
    return STYLES.get(row.kind, "$text-muted") if index == 1 else ""


def _wrapped(text: str, width: int) -> list[str]:
    return [line.plain.strip() for line in Content(text).wrap(width)] or [""]


LISTED = 40
"""Items that ``bullets`` lists at most."""
_SIGNS = regex(r"([\\`*_{}\[\]<>()#+\-.!|~&])")


class RowPage(Sheet[str]):
    """A page of rows. Dismissed with a message for the list that opened it, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "close", "Close", show=False),
        Binding("w", "wrap", "Wrap", show=False),
    ]

    def __init__(self, title: str, rows: Sequence[GridRow], *, keys: str = "↑ ↓ scroll · Esc close") -> None:
        super().__init__(title, keys=keys)
        self._rows = rows

    def body(self) -> ComposeResult:
        yield RowView(self._rows, word_wrap=True, id="tool")

    def on_mount(self) -> None:
        self.query_one(RowView).focus()

    def action_wrap(self) -> None:
        view = self.query_one(RowView)
        view.wrap = not view.wrap


class MarkdownSheet(Sheet[None]):
    """A page of Markdown. Copying gives ``text``; a link is not opened, but its address is copied."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "close", "Close", show=False)]

    def __init__(
        self, title: str, markdown: str = "", text: str = "", *, keys: str = "↑ ↓ scroll · / search · Esc close"
    ) -> None:
        super().__init__(title, keys=keys)
        self.text = text
        self._markdown = markdown

    def body(self) -> ComposeResult:
        yield MarkdownPage()

    def on_mount(self) -> None:
        self.query_one(MarkdownPage).focus()
        if self._markdown:
            self.read(self._markdown)

    def read(self, markdown: str) -> None:
        """Show ``markdown``."""
        self.query_one(MarkdownPage).read(markdown)

    @on(TranscriptView.CopyRequested)
    def _copy(self, event: TranscriptView.CopyRequested) -> None:
        event.stop()
        self.post_message(CopyToClipboard(self.text))

    @on(MarkdownPage.LinkFollowed)
    def _copy_address(self, event: MarkdownPage.LinkFollowed) -> None:
        event.stop()
        self.post_message(CopyToClipboard(event.address))
        self.say(f"Copied: {event.address}")

    @on(TranscriptView.Opened)
    def _opened(self, event: TranscriptView.Opened) -> None:
        """Do nothing: the page is open already."""
        event.stop()


# Parts of row pages


def fact_rows(facts: Sequence[tuple[str, str]], width: int = 10) -> list[GridRow]:
    """Return a row for each name with its text; empty texts are left out."""
    return [line((f"{name:<{width}}", "muted"), (painted(text), "")) for name, text in facts if text]


def section_rows(heading: str, texts: Sequence[str]) -> list[GridRow]:
    """Return a heading with the lines of ``texts``; nothing without any."""
    rows = [row for text in texts if text for row in text.split("\n")]
    return [line(), line((heading, "heading")), *(line((painted(row), "")) for row in rows)] if rows else []


# Parts of Markdown pages


def plain(text: str) -> str:
    """Return ``text`` so that Markdown shows it literally, on one line."""
    return _SIGNS.sub(r"\\\1", " ".join(text.split()))


def fact_lines(facts: Sequence[tuple[str, str]], width: int = 9) -> str:
    """Return names with their texts in Markdown, a line each; empty texts are left out."""
    return "\\\n".join(f"**{name}**{' ' * (width - len(name))}{plain(text)}" for name, text in facts if text)


def bullets(heading: str, items: Sequence[str]) -> str:
    """Return ``items`` as a list in Markdown; empty for none."""
    if not items:
        return ""
    shown = [f"- {plain(item)}" for item in items[:LISTED]]
    more = [f"- and {len(items) - LISTED} more"] if len(items) > LISTED else []
    return "\n".join([f"**{heading}**", "", *shown, *more])
