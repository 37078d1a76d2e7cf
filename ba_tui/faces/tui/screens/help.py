"""Help: every command and key, read from the command table and the live bindings; and the pages of the guide."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget

from ba_tui.command import PROMPT, Command
from ba_tui.core.questions import Question
from ba_tui.faces.tui.acts.port import Actions, CommandRows
from ba_tui.faces.tui.screens.list_screen import ListRow, ListScreen
from ba_tui.faces.tui.screens.sheet import MarkdownSheet, ReportPane, ReportRow, app_of, spelled
from ba_tui.faces.tui.transcript.layout import FIRST, LayoutPosition
from ba_tui.faces.tui.transcript.markdown import warm
from ba_tui.faces.tui.transcript.page import MarkdownPage
from ba_tui.faces.tui.widgets.ask_answers import answers_to
from ba_tui.guide import Guide, GuidePage, flowed

WRITING = (
    ("Enter", "Send, or queue while a turn runs"),
    ("Enter, empty", "Send next queued message now"),
    ("Shift+Enter", "New line; also Ctrl+J, Alt+Enter, and \\ before Enter"),
    ("Up  Down", "Earlier and later prompts, from the first and last line"),
    ("@", "Complete a file, folder, skill, tool or session"),
    ("/", "Complete a command"),
    ("#", "Remember the rest of the line, for later sessions"),
    ("?, empty", "Keys and commands"),
    ("Tab", "Switch focus"),
    ("Ctrl+C", "Copy the selection, else interrupt, else clear; twice: quit"),
    ("Ctrl+D", "Quit when the input is empty"),
    ("Ctrl+P", "All commands by name"),
)
BESIDE = (
    ("Enter", "Show it on the full screen"),
    ("Ctrl+Y", "Copy it"),
    ("Alt+W  Alt+D", "Wrap lines; show a diff side by side"),
    ("Alt+V  Ctrl+F", "Show the whole text; search it"),
)
ASKED = (
    ("e", "Edit the arguments first"),
    ("d", "Full diff or text; choose which changes of a diff to accept"),
    ("r", "Edit the rule"),
    ("Esc", "No, and interrupt"),
)
SIDEWAYS = {"scroll_left", "scroll_right", "page_left", "page_right"}
"""Every widget that scrolls has them; the conversation never needs them."""
SAMPLE = Question("permission", "", rule="what the line names")


class HelpScreen(ReportPane):
    """Shows the present commands and keys. ``widgets``: those whose keys are listed, by heading."""

    def __init__(self, commands: CommandRows, widgets: Mapping[str, Widget]) -> None:
        bundled = [command for command in commands.rows if command.origin in {"", PROMPT}]
        rows = [heading("Writing"), *map(ReportRow, WRITING)]
        rows += [heading("Commands")]
        rows += [ReportRow((command.title, _summary(command))) for command in bundled if command.slash]
        own = [command for command in commands.rows if command.origin not in {"", PROMPT, "skill"}]
        if own or commands.troubles:
            rows += [heading("Your own commands")]
            rows += [ReportRow((command.title, f"{command.summary} ({command.origin})")) for command in own]
            rows += [ReportRow(("", trouble)) for trouble in commands.troubles]
        rows += [heading("When ba asks")]
        rows += [ReportRow((answer.shown, f"{answer.label} {answer.rule}".rstrip())) for answer in answers_to(SAMPLE)]
        rows += map(ReportRow, ASKED)
        rows += [heading("Keys")]
        rows += [ReportRow((spelled(command.keys), command.summary)) for command in bundled if command.keys]
        for title, widget in widgets.items():
            rows += [heading(title), *_bound(widget)]
        rows += [heading("In a result beside the conversation"), *map(ReportRow, BESIDE)]
        super().__init__("Help", "", rows)


def heading(text: str) -> ReportRow:
    return ReportRow((text,), "heading")


def _summary(command: Command) -> str:
    others = ", ".join(f"/{alias}" for alias in command.aliases)
    return f"{command.summary} (also {others})" if others else command.summary


def _bound(widget: Widget) -> Iterable[ReportRow]:
    """Return the widget's own bindings, several keys of one deed in one row."""
    keys: dict[str, list[str]] = {}
    for key, bindings in widget._bindings.key_to_bindings.items():
        for binding in bindings:
            if binding.action not in SIDEWAYS:
                keys.setdefault((binding.description or binding.action).capitalize(), []).append(key)
    return [ReportRow((spelled(",".join(names)), description)) for description, names in keys.items()]


class GuideList(ListScreen[GuidePage]):
    """Typing finds by topic, title and every word of a page."""

    ENTER: ClassVar[str] = "open"

    def __init__(self, guide: Guide) -> None:
        rows = [ListRow(page.topic, (page.title, page.topic), page.summary, value=page) for page in guide.pages]
        super().__init__("Guide", rows)
        self._guide = guide

    def matching(self) -> list[ListRow[GuidePage]]:
        """Return the pages that are about the words first."""
        if not self.words.strip():
            return list(self.rows)
        rows = {row.id: row for row in self.rows}
        return [rows[page.topic] for page in self._guide.search(self.words)]

    def choose(self, row: ListRow[GuidePage]) -> None:
        if row.value:
            app_of(self).push_screen(GuideScreen(self._guide, row.value))


class GuideScreen(MarkdownSheet):
    """One page at a time. Backspace goes back to the page whose link was followed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("backspace,left", "back", "Previous page")]

    def __init__(self, guide: Guide, page: GuidePage) -> None:
        super().__init__("")
        self.add_class("page")
        self._guide = guide
        self._page = page
        self._before: list[tuple[GuidePage, LayoutPosition]] = []
        """The pages whose links were followed, and how far each was read."""

    def on_mount(self) -> None:
        self.query_one(".title").display = False
        self.run_worker(self._begin, exit_on_error=False)

    async def _begin(self) -> None:
        # The first Markdown of a session loads its parser.
        await asyncio.to_thread(warm)
        self._show()

    def _show(self, place: LayoutPosition = FIRST) -> None:
        self.text = self._page.text
        self.query_one(MarkdownPage).read(flowed(self.text), place)
        back = "Backspace back" if self._before else ""
        self.keys = " · ".join(filter(None, ("Tab next link", "Enter open it", back, "/ search", "Esc close")))
        self.say("")

    def action_back(self) -> None:
        if self._before:
            self._page, place = self._before.pop()
            self._show(place)

    @on(MarkdownPage.LinkFollowed)
    def _follow(self, event: MarkdownPage.LinkFollowed) -> None:
        event.stop()
        if page := self._guide.linked(event.address):
            self._before.append((self._page, self.query_one(MarkdownPage).place))
            self._page = page
            self._show()
            # The base class would copy the address.
            event.prevent_default()


def show_help(chat: Actions, _: str) -> None:
    chat.ba.push_screen(
        HelpScreen(
            chat.commands,
            {"In the input": chat.composer.prompt, "In the conversation": chat.transcript},
        )
    )


async def guide(chat: Actions, words: str) -> None:
    """Open the page that ``words`` name, or the list of all pages."""
    found = await asyncio.to_thread(Guide)
    chat.ba.push_screen(GuideScreen(found, found.find(words, "/guide")) if words.strip() else GuideList(found))


@cache
def topics() -> Sequence[tuple[str, str]]:
    """Return the topics and their titles."""
    return [(page.topic, page.title) for page in Guide().pages]
