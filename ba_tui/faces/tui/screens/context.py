"""The breakdown of the window: what fills it, and each thing in it to be opened and read; and what the session cost.

What the rows say is made in context_rows.py; how tokens are counted is the conversation's affair.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import BaError
from ba_tui.core.ledger import Ledger
from ba_tui.core.ports.context import ContextItem
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.inspector.model import Inspected
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.meters import short_count
from ba_tui.faces.tui.screens.context_rows import (
    ContextPage,
    Section,
    Window,
    cost_lead,
    costs,
    lead,
    painted_section,
    sections,
)
from ba_tui.faces.tui.screens.picker import Picker, PickerChoice, app_of

KEYS = "Esc close · r recount"
LISTED = 300
"""Things of one share that are listed, the biggest first."""


class _Reading(Picker):
    """Opens pages."""

    def open(self, page: ContextPage) -> None:
        if page.items:
            app_of(self).push_screen(ContextItems(page))
        else:
            title = paintable(page.title, newlines=False)
            app_of(self).push_screen(InspectorScreen(Inspected(title, text=page.text or "(nothing)")))


class SectionScreen(_Reading):
    """Rows under headings; most of them open. ``sections`` and ``lead`` say what is shown, in so many cells."""

    FILTERED: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "reload", "Count again"),
        Binding("q", "cancel", "Close", show=False),
        Binding("j", "step(1)", "Down", show=False),
        Binding("k", "step(-1)", "Up", show=False),
    ]
    DEFAULT_CSS = """
    SectionScreen OptionList > .option-list--option-disabled { color: $foreground; }
    """

    def __init__(self, title: str) -> None:
        super().__init__(title, (), keys=KEYS)
        self._pages: dict[str, ContextPage | None] = {}
        """What each row opens, by its id."""

    def on_mount(self) -> None:
        self.query_one(".sheet").mount(
            Static("Counting …", classes="lead", markup=False), after=self.query_one(".title")
        )
        self.action_reload()

    def action_reload(self) -> None:
        """Count again."""
        self.refill()

    def sections(self) -> Sequence[Section]:
        """What is shown now; nothing while that is not known."""
        return ()

    def lead(self, width: int) -> Content:
        """The lines above."""
        raise NotImplementedError

    def tell(self, words: Content | str) -> None:
        """Show ``words`` in the place of the lead."""
        self.query_one(".lead", Static).update(words)

    def refill(self) -> None:
        """All sections, the cursor where it was."""
        options = self.query_one(OptionList)
        before, width = self.highlighted, max(20, options.size.width - 4)
        shown = self.sections()
        if not shown:
            return
        self.tell(self.lead(width))
        self._pages.clear()
        options.clear_options()
        for number, section in enumerate(shown):
            title, rows = painted_section(section, width)
            gap = Content("\n") if number else Content("")
            options.add_option(Option(gap + title, disabled=True))
            for place, (entry, row) in enumerate(zip(section.entries, rows, strict=True)):
                id = f"{number}.{place}"
                self._pages[id] = entry.page
                options.add_option(Option(row, id))
        self._move(before if before in self._pages else next(iter(self._pages)))

    def choose(self, id: str) -> None:
        if page := self._pages.get(id):
            self.open(page)

    @on(OptionList.OptionHighlighted)
    def _moved(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        opens = "Enter opens · " if self._pages.get(event.option_id or "") else ""
        self.query_one(".keys", Static).update(opens + KEYS)

    def action_step(self, by: int) -> None:
        ids = list(self._pages)
        if self.highlighted in ids:
            target = ids.index(self.highlighted) + by
            self._move(ids[max(0, min(len(ids) - 1, target))])

    def _move(self, id: str) -> None:
        options = self.query_one(OptionList)
        options.highlighted = options.get_option_index(id)
        if options.highlighted == 1:
            # Its heading comes into sight with the first row.
            options.scroll_home(animate=False)


class ContextScreen(SectionScreen):
    """What fills the window."""

    def __init__(self, conversation: Conversation, ledger: Ledger) -> None:
        super().__init__("Context")
        self._ledger = ledger
        self._conversation = conversation
        self._window: Window | None = None

    def action_reload(self) -> None:
        self.run_worker(self._load, group="context", exclusive=True, exit_on_error=False)

    async def _load(self) -> None:
        conversation = self._conversation
        try:
            await conversation.history()
            parts = await asyncio.to_thread(conversation.context)
            model = conversation.model_info()
        except BaError as error:
            self.tell(paintable(error.with_hint, newlines=False))
            return
        self._window = Window(model, parts, self._ledger)
        self.query_one(".title", Static).update(f"Context of {paintable(model.id, newlines=False)}")
        self.refill()

    def sections(self) -> Sequence[Section]:
        return sections(self._window) if self._window else ()

    def lead(self, width: int) -> Content:
        return lead(self._window, width) if self._window else Content("")


class CostScreen(SectionScreen):
    """What the session cost, by model and by turn. ``ledger`` has it counted already."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__("Cost")
        self._ledger = ledger

    def sections(self) -> Sequence[Section]:
        return costs(self._ledger)

    def lead(self, width: int) -> Content:
        return Content(cost_lead(self._ledger))


class ContextItems(_Reading):
    """The things in one share of the window; typing filters them."""

    def __init__(self, page: ContextPage) -> None:
        items = sorted(page.items, key=lambda item: -item.tokens)[:LISTED]
        choices = [_choice(str(place), item) for place, item in enumerate(items)]
        count = f"the biggest {LISTED} of {len(page.items):,}" if len(page.items) > LISTED else str(len(items))
        super().__init__(f"{page.title}: {count}", choices, keys="Enter reads it · Esc closes")
        self._items = items

    def choose(self, id: str) -> None:
        item = self._items[int(id)]
        self.open(ContextPage(item.label, item.text))


def _choice(id: str, item: ContextItem) -> PickerChoice:
    return PickerChoice(id, (item.label, f"~{short_count(item.tokens)}".rjust(7), item.detail))
