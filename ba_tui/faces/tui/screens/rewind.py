"""/rewind, /redo and /diff: choose a turn, then what to rewind; the dialog lists the files that would change."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import Notice
from ba_tui.core.ports.sessions import FileChange
from ba_tui.core.rewinding import Checkpoints, Past, RewindResult, RewindScope, RewindStop, TurnHistory
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.faces.tui.acts.port import Actions
from ba_tui.faces.tui.inspector.model import InspectorValue
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.meters import age
from ba_tui.faces.tui.screens.list_screen import ListContent, ListRow, ListScreen
from ba_tui.faces.tui.screens.sheet import ReportRow, Sheet, app_of, table

UNDO = "undo"
LEFT_NAMED = 5
"""The most unchanged files that the notice after a rewind names."""
LOOKED = 100
"""Turns, from the newest on, whose files are looked up."""
NAMED = 12


class RewindList(ListScreen[RewindStop]):
    """Dismissed with the number of the turn to go back before, or ``undo``."""

    FILTERED: ClassVar[bool] = False
    DETAIL: ClassVar[bool] = True
    ENTER: ClassVar[str] = "show what would change"
    EMPTY: ClassVar[str] = "Nothing to rewind yet."
    READING: ClassVar[str] = "Reading the turns …"

    def __init__(self, past: Past) -> None:
        super().__init__("Rewind to before a prompt")
        self._past = past
        self._files: dict[int, Sequence[FileChange]] = {}

    async def load(self) -> None:
        history = await self._past.history()
        self._show(history)
        if self._past.files is None:
            return
        for stop in reversed(history.stops[-LOOKED:]):
            if stop.checkpoint:
                try:
                    self._files[stop.number] = await asyncio.to_thread(self._past.files.did, stop.checkpoint)
                except BaError as error:
                    self.say(error.with_hint)
                    break
        self._show(history)

    def _show(self, history: TurnHistory) -> None:
        rows = [self._stop_row(stop) for stop in reversed(history.stops)]
        if history.newest:
            taken = age(time.time() - history.newest.event.at)
            rows.insert(0, ListRow(UNDO, ("Undo the newest rewind", "", taken)))
        self.show(ListContent(rows))

    def _stop_row(self, stop: RewindStop) -> ListRow[RewindStop]:
        words = " ".join(stop.prompt.said.split()) or "(no words)"
        cells = (words, figures(self._files.get(stop.number, ())), age(time.time() - stop.at))
        return ListRow(str(stop.number), cells, value=stop)

    def detail(self, row: ListRow[RewindStop]) -> str:
        """Return the files that the turn changed."""
        files = self._files.get(row.value.number, ()) if row.value else ()
        words = "  ".join(f"{item.path} {counts(item)}" for item in files[:NAMED])
        more = f"  and {len(files) - NAMED} more" if len(files) > NAMED else ""
        return words + more


def figures(files: Sequence[FileChange]) -> str:
    """Return ``2 files +3 -1``; empty for none."""
    if not files:
        return ""
    added, removed = sum(item.added or 0 for item in files), sum(item.removed or 0 for item in files)
    return f"{count(len(files), 'file')} +{added} -{removed}"


def counts(item: FileChange) -> str:
    """Return ``+3 -1``, or that it is binary."""
    return "binary" if item.added is None else f"+{item.added} -{item.removed or 0}"


SCOPES: dict[RewindScope, str] = {
    "both": "Conversation and files",
    "conversation": "Conversation only; files unchanged",
    "files": "Files only; conversation unchanged",
}
LEAVE = "leave"
DOES = {"new": "restore", "changed": "change", "gone": "delete"}
DIALOG_KEYS = "Enter rewind · PgUp PgDn files · d diff · Esc cancel"


@frozen
class RewindProposal:
    """A rewind that the user may confirm: its ``title`` and ``lead``, the checkpoint ``to`` for files (empty for none),
    the turns ``since``, and whether the conversation changes.
    """

    title: str
    lead: str
    to: str = ""
    since: tuple[tuple[int, str], ...] = ()
    talks: bool = True


def going_back(history: TurnHistory, number: int) -> RewindProposal:
    """Return the rewind to before turn ``number``. Raises UsageError if there is no such turn."""
    stop = history.find(number)
    taken = sum(other.number >= number for other in history.stops)
    turns = "This prompt is" if taken == 1 else f"This prompt and {taken - 1} after it are"
    words = " ".join(stop.prompt.said.split())
    lead = f"{turns} removed; its text returns to the input. You can undo this."
    return RewindProposal(
        f"Rewind to before “{words}”", lead, history.files_before(number), tuple(history.since(number))
    )


def going_forth(history: TurnHistory) -> RewindProposal | None:
    """Return a proposal to undo the newest rewind; None if nothing was rewound."""
    if history.newest is None:
        return None
    event = history.newest.event
    after = [stop for stop in history.stops if stop.index > history.newest.index]
    are = "1 turn since then is" if len(after) == 1 else f"{len(after)} turns since then are"
    lost = f" {are} removed." if after else ""
    since = tuple((stop.number, stop.checkpoint) for stop in after if stop.checkpoint)
    lead = f"Restores what the newest rewind removed.{lost} You can undo this."
    return RewindProposal("Undo the newest rewind", lead, event.undo, since, event.turns is not None)


class RewindDialog(Sheet[RewindScope]):
    """Dismissed with what to rewind, or None."""

    DEFAULT_CSS = """
    RewindDialog OptionList { height: auto; max-height: 3; margin-top: 1; }
    RewindDialog.-low OptionList { margin-top: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "close", "Cancel", show=False),
        Binding("d", "diff", "Diff"),
        Binding("pagedown", "scroll(10)", "Files down", show=False, priority=True),
        Binding("pageup", "scroll(-10)", "Files up", show=False, priority=True),
    ]

    def __init__(self, going: RewindProposal, files: Checkpoints | None) -> None:
        super().__init__(going.title, keys=DIALOG_KEYS)
        self._going = going
        self._files = files if going.to else None
        self._changes: Sequence[FileChange] | None = None if self._files else ()
        self._trouble = ""

    def body(self) -> ComposeResult:
        yield Static(self._going.lead, classes="lead", markup=False)
        with VerticalScroll(can_focus=False):
            yield Static(classes="rows", markup=False)
        yield OptionList(compact=True, markup=False)

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
        """Return the choices. Enter takes the first one, so it must not undo the user's own edits."""
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
        """The number of files that the user changed since."""
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
        value = InspectorValue("File changes of this rewind", {}, shown, note=note)
        app_of(self).push_screen(InspectorScreen(value))


def _does(item: FileChange) -> str:
    if item.stays:
        return "keep: other program"
    return DOES[item.kind] + (" ! by hand" if item.by_hand else "")


def _kind(item: FileChange) -> str:
    if item.stays:
        return ""
    return "ask" if item.by_hand else "deny" if item.kind == "gone" else ""


async def rewind(chat: Actions, argument: str) -> None:
    """Rewind to a turn, or undo the last rewind: ``[turn|undo]``. Without an argument, show the list of turns."""
    _, conversation = chat.session.live
    past = conversation.past
    if conversation.busy:
        raise UsageError("A turn is running.", "Press Esc to interrupt it first.")
    if not chat.session.started:
        raise UsageError("Nothing to rewind yet.")
    chosen = argument or await chat.ba.push_screen_wait(RewindList(past))
    if not chosen:
        return
    if chosen != UNDO and not chosen.isdecimal():
        raise UsageError(f"{chosen!r} is not a turn.", "Give a turn number, or: /rewind undo")
    history = await past.history()
    going = going_forth(history) if chosen == UNDO else going_back(history, int(chosen))
    if going is None:
        raise UsageError("Nothing was rewound in this session.")
    scope = await chat.ba.push_screen_wait(RewindDialog(going, past.files))
    if scope is None:
        return
    outcome = await past.rewind(None if chosen == UNDO else int(chosen), scope)
    await chat.show_session()
    _tell(chat, outcome)


async def redo(chat: Actions, _: str) -> None:
    """Take the last rewind back."""
    await rewind(chat, UNDO)


def _tell(chat: Actions, outcome: RewindResult) -> None:
    if outcome.prompt and outcome.prompt.said:
        chat.composer.put_back(outcome.prompt.said)
    left = outcome.restored.left
    if left:
        named = "; ".join(f"{path}: {why}" for path, why in left[:LEFT_NAMED])
        more = f"; and {len(left) - LEFT_NAMED} more" if len(left) > LEFT_NAMED else ""
        files = "1 file was" if len(left) == 1 else f"{len(left)} files were"
        text = paintable(f"{files} left unchanged. {named}{more}.", newlines=False)
        chat.tell(Notice(text, "warning", "/diff shows all changes of this session."))
    done = len(outcome.restored.done)
    if done:
        chat.activity.hint(f"{count(done, 'file')} changed.")


async def diff(chat: Actions, __: str) -> None:
    """Show the differences between the session's first checkpoint and the files now."""
    _, conversation = chat.session.live
    past = conversation.past
    first = (await past.history()).first if chat.session.started else ""
    if not first or past.files is None:
        chat.tell(Notice("This session changed no files."))
        return
    shown = await asyncio.to_thread(past.files.diffs, first)
    if not shown.items:
        chat.tell(Notice("No file differs from the beginning of this session."))
        return
    total = len(await asyncio.to_thread(past.files.changes, first))
    note = f"the first {len(shown.items)} of {total} files" if total > len(shown.items) else ""
    chat.ba.push_screen(InspectorScreen(InspectorValue("What changed since this session began", {}, shown, note=note)))
