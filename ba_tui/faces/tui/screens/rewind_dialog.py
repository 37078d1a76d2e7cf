"""What a rewind would do, before it is done: turns that go, files that change, and the choice of either or both.

Which turn is meant was chosen in rewind.py; the conversation does it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from ba_tui.core.errors import BaError
from ba_tui.core.rewinding import Checkpoints, FileChange, RewindScope, TurnHistory
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.faces.tui.inspector.model import Inspected
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.screens.picker import LOW, app_of
from ba_tui.faces.tui.screens.report import ReportRow, table
from ba_tui.faces.tui.screens.rewind import counts

SCOPES: dict[RewindScope, str] = {
    "both": "Conversation and files",
    "conversation": "Conversation only; files unchanged",
    "files": "Files only; conversation unchanged",
}
LEAVE = "leave"
DOES = {"new": "restore", "changed": "change", "gone": "delete"}
KEYS = "Enter rewind · PgUp PgDn files · d diff · Esc cancel"


@frozen
class Going:
    """A rewind as planned: its ``title`` and ``lead``, the checkpoint ``to`` for files (empty for none), the turns
    ``since``, and whether the conversation changes at all."""

    title: str
    lead: str
    to: str = ""
    since: tuple[tuple[int, str], ...] = ()
    talks: bool = True


def going_back(history: TurnHistory, number: int) -> Going:
    """To before turn ``number``. Raises UsageError when it does not stand."""
    stop = history.find(number)
    taken = sum(other.number >= number for other in history.stops)
    turns = "This prompt is" if taken == 1 else f"This prompt and {taken - 1} after it are"
    words = " ".join(stop.prompt.said.split())
    lead = f"{turns} removed; its text returns to the input. You can undo this."
    return Going(f"Rewind to before “{words}”", lead, history.files_before(number), tuple(history.since(number)))


def going_forth(history: TurnHistory) -> Going | None:
    """Taking the newest rewind back; None when there is none."""
    if history.newest is None:
        return None
    event = history.newest.event
    after = [stop for stop in history.stops if stop.index > history.newest.index]
    are = "1 turn since then is" if len(after) == 1 else f"{len(after)} turns since then are"
    lost = f" {are} removed." if after else ""
    since = tuple((stop.number, stop.checkpoint) for stop in after if stop.checkpoint)
    lead = f"Restores what the newest rewind removed.{lost} You can undo this."
    return Going("Undo the newest rewind", lead, event.undo, since, event.turns is not None)


class RewindDialog(ModalScreen[RewindScope | None]):
    """Dismissed with what to rewind, or None."""

    CSS_PATH = "../styles/screens.tcss"
    VERTICAL_BREAKPOINTS = LOW
    DEFAULT_CSS = """
    RewindDialog OptionList { height: auto; max-height: 3; margin-top: 1; }
    RewindDialog.-low OptionList { margin-top: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Cancel"),
        Binding("d", "diff", "Diff"),
        Binding("pagedown", "scroll(10)", "Files down", show=False, priority=True),
        Binding("pageup", "scroll(-10)", "Files up", show=False, priority=True),
    ]

    def __init__(self, going: Going, files: Checkpoints | None) -> None:
        super().__init__(classes="picker")
        self._going = going
        self._files = files if going.to else None
        self._changes: Sequence[FileChange] | None = None if self._files else ()
        self._trouble = ""

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(paintable(self._going.title, newlines=False), classes="title", markup=False)
            yield Static(self._going.lead, classes="lead", markup=False)
            with VerticalScroll(can_focus=False):
                yield Static(classes="rows", markup=False)
            yield OptionList(compact=True, markup=False)
            yield Static(KEYS, classes="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self.run_worker(self._look, group="rewind", exclusive=True, exit_on_error=False)

    async def _look(self) -> None:
        if self._files:
            try:
                self._changes = await asyncio.to_thread(self._files.undoing, self._going.to, self._going.since)
            except BaError as error:
                self._changes, self._trouble = (), error.with_hint
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(self._options())
        options.highlighted = 0
        self._draw()

    def _options(self) -> list[Option]:
        """The first is what Enter does, so none that undoes what the person did themselves stands there."""
        scopes: list[RewindScope] = ["conversation"] if self._going.talks else []
        if all(item.stays for item in self._changes or ()):
            return [Option(SCOPES[scope], scope) for scope in scopes]
        if not self._hand:
            scopes = ["both", *scopes] if scopes else scopes
            return [Option(SCOPES[scope], scope) for scope in (*scopes, "files")]
        safe = [Option(SCOPES[scope], scope) for scope in scopes] or [Option("Cancel", LEAVE)]
        also = f", including {count(self._hand, 'file')} that you edited"
        rest: list[RewindScope] = ["both", "files"] if scopes else ["files"]
        return [*safe, *(Option(f"{SCOPES[scope].partition(';')[0]}{also}", scope) for scope in rest)]

    @property
    def _hand(self) -> int:
        """Files that changed outside of the turns since."""
        return sum(item.by_hand and not item.stays for item in self._changes or ())

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        width = max(20, self.query_one(VerticalScroll).size.width - 2)
        self.query_one(".rows", Static).update(self._rows(width))

    def _rows(self, width: int) -> Content:
        if self._trouble:
            return Content.styled(paintable(self._trouble), "$text-error")
        if self._changes is None:
            return Content.styled("Looking at the files …", "$text-muted")
        if not self._changes:
            return Content.styled("No file changes.", "$text-muted")
        hand = self._hand
        stay = sum(item.stays for item in self._changes)
        head = f"{count(len(self._changes) - stay, 'file')} would change."
        head += f" {count(stay, 'file')} of other programs would stay." if stay else ""
        warning = f" ! {hand} edited by you since; your edits will be lost." if hand else ""
        rows = [ReportRow((counts(item), _does(item), item.path), _kind(item)) for item in self._changes]
        return Content("\n").join([Content.assemble(head, (warning, "$text-warning")), table(rows, width)])

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_scroll(self, by: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(None if event.option_id == LEAVE else cast("RewindScope", event.option_id))

    def action_diff(self) -> None:
        if self._changes and self._files:
            self.run_worker(partial(self._diff, self._files), group="diff", exclusive=True, exit_on_error=False)

    async def _diff(self, files: Checkpoints) -> None:
        try:
            shown = await asyncio.to_thread(files.diffs, "", self._going.to)
        except BaError as error:
            self._trouble = error.with_hint
            self._draw()
            return
        more = self._changes is not None and len(self._changes) > len(shown.items)
        note = f"the first {len(shown.items)} files" if more else ""
        value = Inspected("File changes of this rewind", {}, shown, note=note)
        app_of(self).push_screen(InspectorScreen(value))


def _does(item: FileChange) -> str:
    if item.stays:
        return "keep: other program"
    return DOES[item.kind] + (" ! by hand" if item.by_hand else "")


def _kind(item: FileChange) -> str:
    if item.stays:
        return ""
    return "ask" if item.by_hand else "deny" if item.kind == "gone" else ""
