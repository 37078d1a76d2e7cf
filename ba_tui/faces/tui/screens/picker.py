"""A list to choose from by typing, arrows and Enter: the frame of every picker. What is listed comes from outside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

from rich.cells import cell_len, set_cell_size
from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ba_tui.core.text.untrusted import paintable
from ba_tui.core.values import frozen
from ba_tui.faces.tui.widgets.text_fields import ClusterInput

SHEETS = Path(__file__).parents[1] / "styles" / "screens.tcss"
"""Absolute, as screens stand in several folders."""
LOW: list[tuple[int, str]] | None = [(0, "-low"), (18, "-tall")]
"""Rows from which a sheet has room for margins."""


@frozen
class PickerChoice:
    """``cells`` are the aligned columns; the first takes what room is left. ``below`` is a second, quiet line.
    ``keywords`` are not shown, but found.
    """

    id: str
    cells: tuple[str, ...]
    below: str = ""
    current: bool = False
    keywords: str = ""

    @property
    def searched(self) -> str:
        return " ".join((*self.cells, self.below, self.keywords)).casefold()


def app_of(screen: Screen[Any]) -> App[Any]:
    """The app that shows ``screen``."""
    return cast("App[Any]", screen.app)  # pyright: ignore[reportUnknownMemberType] - App is generic


class Picker(ModalScreen[str | None]):
    """Dismissed with the id of the choice, or None. Typing filters; the list moves under the arrows meanwhile."""

    FILTERED: ClassVar[bool] = True
    """False: nothing is typed, and letters are keys."""
    MOST: ClassVar[int] = 1_000_000
    """Rows that are shown at a time."""
    CSS_PATH = SHEETS
    VERTICAL_BREAKPOINTS = LOW
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Close"),
        Binding("up", "step(-1)", "Up", show=False, priority=True),
        Binding("down", "step(1)", "Down", show=False, priority=True),
        Binding("pageup", "step(-8)", "Page up", show=False, priority=True),
        Binding("pagedown", "step(8)", "Page down", show=False, priority=True),
    ]

    def __init__(
        self, title: str, choices: Sequence[PickerChoice], *, keys: str = "Enter chooses · Esc closes"
    ) -> None:
        super().__init__(classes="picker")
        self.heading = title
        self.choices: Sequence[PickerChoice] = choices
        self.keys = keys
        self.empty = "Nothing to choose from."

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(self.heading, classes="title", markup=False)
            yield ClusterInput(placeholder="Type to search", compact=True, select_on_focus=False)
            yield OptionList(compact=True, markup=False)
            yield Static(self.keys, classes="keys", markup=False)

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.can_focus = not self.FILTERED
        self.query_one(Input).display = self.FILTERED
        self.query_one(Input).cursor_blink = False
        (self.query_one(Input) if self.FILTERED else options).focus()

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self.refill)

    @property
    def words(self) -> str:
        return self.query_one(Input).value

    @property
    def highlighted(self) -> str | None:
        """The id under the cursor."""
        options = self.query_one(OptionList)
        if options.highlighted is None:
            return None
        id = options.get_option_at_index(options.highlighted).id
        return id if id and not id.startswith("\0") else None

    def say(self, text: str) -> None:
        """In the place of the keys."""
        self.query_one(".keys", Static).update(paintable(text))

    def matching(self) -> Sequence[PickerChoice]:
        words = self.words.casefold().split()
        return [choice for choice in self.choices if all(word in choice.searched for word in words)]

    def refill(self) -> None:
        """Show what matches, the cursor where it was."""
        options = self.query_one(OptionList)
        before = self.highlighted
        matching = self.matching()[: self.MOST]
        width = max(20, options.size.width - 4)
        options.clear_options()
        options.add_options(Option(row, id=choice.id) for choice, row in rendered(matching, width))
        if not matching:
            options.add_option(Option(self.empty if not self.choices else "Nothing matches.", "\0", disabled=True))
            return
        ids = [choice.id for choice in matching]
        current = next((index for index, choice in enumerate(matching) if choice.current), 0)
        options.highlighted = ids.index(before) if before in ids else current

    @on(Input.Changed)
    def _filter(self, event: Input.Changed) -> None:
        event.stop()
        self.refill()

    @on(Input.Submitted)
    def _choose(self, event: Input.Submitted) -> None:
        event.stop()
        if self.highlighted:
            self.choose(self.highlighted)

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_id and not event.option_id.startswith("\0"):
            self.choose(event.option_id)

    def choose(self, id: str) -> None:
        self.dismiss(id)

    def action_step(self, by: int) -> None:
        """Move over headings. A single step goes around the ends of the list; a page stops there."""
        options = self.query_one(OptionList)
        rows = [index for index, option in enumerate(options.options) if not option.disabled]
        if options.highlighted in rows:
            target = rows.index(options.highlighted) + by
            last = len(rows) - 1
            options.highlighted = rows[target % (last + 1) if abs(by) == 1 else max(0, min(last, target))]

    def action_cancel(self) -> None:
        self.dismiss(None)


class FewChoices(Picker):
    """Choices that need no search; ``lead`` says what they mean."""

    FILTERED: ClassVar[bool] = False

    def __init__(self, title: str, choices: Sequence[PickerChoice], *, keys: str, lead: str = "") -> None:
        super().__init__(title, choices, keys=keys)
        self._lead = lead

    def on_mount(self) -> None:
        if self._lead:
            lead = Static(self._lead, classes="lead", markup=False)
            self.query_one(".sheet").mount(lead, after=self.query_one(".title"))


def rendered(choices: Sequence[PickerChoice], width: int) -> list[tuple[PickerChoice, Content]]:
    """Columns aligned over all rows; the first gives way when there is too little room."""
    if not choices:
        return []
    cells = [[paintable(cell, newlines=False) for cell in choice.cells] for choice in choices]
    columns = max(map(len, cells))
    widths = [max((cell_len(row[index]) for row in cells if index < len(row)), default=0) for index in range(columns)]
    shown = columns
    while shown > 1 and width - sum(widths[1:shown]) - 2 * (shown - 1) < min(widths[0] + 2, 24):
        shown -= 1
    first = max(8, width - sum(widths[1:shown]) - 2 * (shown - 1))
    found: list[tuple[PickerChoice, Content]] = []
    for choice, row in zip(choices, cells, strict=True):
        mark = "● " if choice.current else "  "
        # A row of one column has the whole width.
        room = width if len(row) == 1 else first
        head = (mark + fitted(row[0], max(8, room - 2)), "bold" if choice.current else "")
        rest = [
            ("  " + set_cell_size(cell, widths[index]), "$text-muted") for index, cell in enumerate(row[1:shown], 1)
        ]
        lines = [Content.assemble(head, *rest)]
        if choice.below:
            below = paintable(choice.below, newlines=False)
            lines.append(Content.styled("  " + fitted(below, width - 2).rstrip(), "$text-muted"))
        found.append((choice, Content("\n").join(lines)))
    return found


def fitted(text: str, width: int) -> str:
    """``text`` in ``width`` cells; what is cut off is marked. It is cut between words unless much would be lost."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    kept = set_cell_size(text, width - 1)
    whole, _, part = kept.rpartition(" ")
    goes_on = text[len(kept) : len(kept) + 1].strip()
    if text.startswith(kept) and goes_on and whole.strip() and cell_len(part) <= width // 3:
        kept = whole
    return set_cell_size(f"{kept.rstrip()}…", width)
