"""The memory browser: what ba remembers, searched by typing; edit, forget with undo, pin, make global.

What an entry is and what becomes of it is the business of ``core.ports.memory.Memory``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input, Static

from ba_tui.core.errors import BaError
from ba_tui.core.ports.memory import Entry, Memory, MemoryState, Proposal, Recalled, Scope
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.remembered import named, said
from ba_tui.faces.tui.screens.memory.entry_page import EntryEditor, EntryPage
from ba_tui.faces.tui.screens.memory.entry_rows import (
    condition,
    entry_page,
    entry_row,
    heading,
    proposal_row,
)
from ba_tui.faces.tui.screens.picker import Picker, PickerChoice, app_of

KEYS = (
    "Enter open · Ctrl+E edit · Ctrl+D forget · Ctrl+Z undo · Ctrl+T pin\n"
    "Ctrl+G make global · Ctrl+O scope · Ctrl+F instruction files · Esc close"
)
NONE_YET = "Nothing is remembered yet. Type “# TEXT” in the input, or /remember TEXT."
NO_MATCH = "Nothing matches. Ctrl+O changes the scope."
USED_GONE = "None of these memories exists any more."
PAUSE = 0.15
"""Seconds after a key before the store is searched."""
AGAIN = 1.0
"""Seconds after which a memory that does not work in full is looked at again."""
LISTED = 200
FOUND = 50
SCOPES: dict[Scope | None, str] = {None: "", "project": "this project", "global": "global"}
Undo = Callable[[], Awaitable[object]]


class MemoryBrowser(Picker):
    """``used``: the entries to begin with, those of one prompt; typing or Ctrl+O goes on to all. ``files`` opens the
    list of instruction files."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+e", "edit", "Edit", priority=True),
        Binding("ctrl+d,delete", "forget", "Forget", priority=True),
        Binding("ctrl+z", "undo", "Undo", priority=True),
        Binding("ctrl+t", "pin", "Pin or unpin", priority=True),
        Binding("ctrl+g", "promote", "Make global", priority=True),
        Binding("ctrl+s", "accept", "Save a proposal", priority=True),
        Binding("ctrl+o", "scope", "Scope", priority=True),
        Binding("ctrl+f", "files", "Instruction files", priority=True),
    ]

    def __init__(
        self, memory: Memory, files: Callable[[], None], *, used: Sequence[Recalled] = (), words: str = ""
    ) -> None:
        super().__init__("Memory", (), keys=KEYS)
        self.empty = "Looking …"
        self._memory = memory
        self._files = files
        self._used = {each.entry.id: each for each in used}
        self._only_used = bool(used)
        self._scope: Scope | None = None
        self._entries: dict[str, Entry] = {}
        self._proposals: dict[str, Proposal] = {}
        self._undo: list[tuple[str, Undo]] = []
        self._began_with = words
        self._looked = ""
        """The words that the rows were found with."""
        self._stale = self._looking = False
        self._promoting = ""
        """The entry that Ctrl+G was pressed on once."""

    def on_mount(self) -> None:
        lead = Static("", classes="lead", markup=False)
        lead.display = False
        self.query_one(".sheet").mount(lead, after=self.query_one(".title"))
        if not self._used:
            self._used = {each.entry.id: each for each in self._memory.used()}
        self.query_one(Input).value = self._looked = self._began_with
        self._watch = self.set_interval(AGAIN, partial(self._do, self._state_again), pause=True)
        self._do(self._load)

    # What is shown

    def matching(self) -> Sequence[PickerChoice]:
        return self.choices

    def refill(self) -> None:
        self._promoting = ""
        if self.words.strip() != self._looked:
            self._only_used = False
            self.say(KEYS)
            self._look_again()
        super().refill()

    def _look_again(self) -> None:
        self._stale = True
        if not self._looking:
            self._looking = True
            self.run_worker(self._look, group="search", exit_on_error=False)

    async def _look(self) -> None:
        try:
            while self._stale:
                await asyncio.sleep(PAUSE)
                self._stale = False
                await self._load()
        except BaError as error:
            self.say(error.with_hint)
        finally:
            self._looking = False

    async def _load(self) -> None:
        words, now = self.words.strip(), time.time()
        found = await self._found(words)
        entries = [entry for entry, _ in found]
        newer = await self._newer(entries)
        # Last: it says how this search went.
        state = await self._memory.state()
        if words != self.words.strip():
            self._look_again()
            return
        proposals = () if words or self._only_used else self._memory.proposals()
        self._entries = {entry.id: entry for entry in entries}
        self._proposals = {each.id: each for each in proposals}
        self._looked = words
        rows = [entry_row(entry, now=now, why=why, newer=newer.get(entry.superseded_by)) for entry, why in found]
        self.choices = [*map(proposal_row, proposals), *rows]
        self.empty = NO_MATCH if words else USED_GONE if self._only_used else NONE_YET
        self._entitle(state)
        super().refill()

    async def _found(self, words: str) -> list[tuple[Entry, str]]:
        """Entries with what spoke for each."""
        whys = {id: each.why and f"used now: {each.why}" for id, each in self._used.items()}
        if words:
            found = await self._memory.find(words, limit=FOUND, scope=self._scope)
            return [(each.entry, each.why) for each in found.found]
        if self._only_used:
            kept = [await self._memory.history(id) for id in self._used]
            return [(each[0], whys.get(each[0].id, "")) for each in kept if each]
        listed = await self._memory.listed(scope=self._scope, limit=LISTED)
        return [(entry, whys.get(entry.id, "")) for entry in listed]

    async def _newer(self, entries: Iterable[Entry]) -> dict[str, Entry]:
        """By their ids, the entries that superseded some of ``entries``."""
        known = {entry.id: entry for entry in entries}
        found: dict[str, Entry] = {}
        for id in {entry.superseded_by for entry in known.values() if entry.superseded_by}:
            history = () if id in known else await self._memory.history(id)
            if newer := known.get(id) or next(iter(history), None):
                found[id] = newer
        return found

    def _entitle(self, state: MemoryState) -> None:
        title = heading(state, SCOPES[self._scope])
        if len(self._entries) == LISTED:
            title += f" · {LISTED} shown, type to find others"
        if self._only_used:
            title = f"Memory · {count(len(self._entries), 'entry')} used with this prompt"
        self.query_one(".title", Static).update(title)
        lead, told = self.query_one(".lead", Static), condition(state)
        lead.display = bool(told)
        lead.update(paintable(told, newlines=False))
        (self._watch.resume if told else self._watch.pause)()

    async def _state_again(self) -> None:
        """What holds memory up may be over: the search by meaning starts, entries are indexed."""
        self._entitle(await self._memory.state())

    # What is done

    @property
    def _here(self) -> Entry | None:
        return self._entries.get(self.highlighted or "")

    def choose(self, id: str) -> None:
        if id in self._proposals:
            self.action_accept()
        elif entry := self._entries.get(id):
            self._do(partial(self._open, entry))

    async def _open(self, entry: Entry) -> None:
        page = entry_page(entry, await self._memory.history(entry.id), self._used.get(entry.id))
        app_of(self).push_screen(EntryPage(page, entry.text))

    def action_edit(self) -> None:
        if entry := self._here:
            app_of(self).push_screen(
                EntryEditor(entry.text, partial(self._memory.edit, entry.id)), partial(self._edited, entry)
            )

    def _edited(self, entry: Entry, saved: bool | None) -> None:
        if saved:
            self._undo.append(
                (f"{named(entry)} has its old text again.", partial(self._memory.edit, entry.id, entry.text))
            )
            self._do(self._load, "Saved. Ctrl+Z takes the change back.")

    def action_forget(self) -> None:
        if proposal := self._proposals.get(self.highlighted or ""):
            self._memory.dismiss(proposal.id)
            self._do(self._load, "Dropped. The same text is not proposed again in this session.")
        elif entry := self._here:
            undo = (f"{named(entry)} is back.", partial(self._memory.restore, [entry]))
            self._change(
                partial(self._memory.forget, [entry.id]), f"Forgot {named(entry)}. Ctrl+Z brings it back.", undo
            )

    def action_pin(self) -> None:
        if entry := self._here:
            pin = partial(self._memory.pin, entry.id)
            told = (
                f"Unpinned {named(entry)}."
                if entry.pinned
                else f"Pinned {named(entry)}: it is never expired or evicted."
            )
            undo = (f"{named(entry)} is as it was.", partial(pin, pinned=entry.pinned))
            self._change(partial(pin, pinned=not entry.pinned), told, undo)

    def action_promote(self) -> None:
        entry = self._here
        if entry is None:
            return
        if not entry.project:
            self.say("It is global already: it counts in all your projects.")
        elif self._promoting != entry.id:
            self._promoting = entry.id
            self.say("It will count in all your projects. Press Ctrl+G again to make it global.")
        else:
            self._promoting = ""
            self._do(partial(self._promote, entry), f"{named(entry)} is global now. Ctrl+Z takes it back.")

    async def _promote(self, entry: Entry) -> None:
        new = await self._memory.promote(entry.id)

        async def back() -> None:
            await self._memory.forget([new.id])
            await self._memory.restore([entry])

        self._undo.append((f"{named(entry)} belongs to its project again.", back))
        await self._load()

    def action_accept(self) -> None:
        if proposal := self._proposals.get(self.highlighted or ""):
            self._do(partial(self._accept, proposal))

    async def _accept(self, proposal: Proposal) -> None:
        stored = await self._memory.accept(proposal.id)
        if stored.outcome != "known":
            self._undo.append(("It is forgotten again.", partial(self._memory.undo, [stored.entry.id])))
        await self._load()
        self.say(said(stored))

    def action_undo(self) -> None:
        if self._undo:
            told, work = self._undo.pop()
            self._change(work, told)
        else:
            self.say("Nothing to undo: nothing was changed here.")

    def action_scope(self) -> None:
        order = list(SCOPES)
        self._scope = None if self._only_used else order[(order.index(self._scope) + 1) % len(order)]
        self._only_used = False
        self._do(self._load)

    def action_files(self) -> None:
        self.dismiss(None)
        self._files()

    def _change(self, work: Undo, told: str, undo: tuple[str, Undo] | None = None) -> None:
        async def run() -> None:
            await work()
            if undo:
                self._undo.append(undo)
            await self._load()

        self._do(run, told)

    def _do(self, work: Callable[[], Awaitable[None]], told: str = "") -> None:
        self.run_worker(partial(self._done, work, told), group="change", exit_on_error=False)

    async def _done(self, work: Callable[[], Awaitable[None]], told: str) -> None:
        try:
            await work()
        except BaError as error:
            told = error.with_hint
            if not self.choices:
                self.empty = "Nothing can be shown."
                super().refill()
        if told:
            self.say(told)
