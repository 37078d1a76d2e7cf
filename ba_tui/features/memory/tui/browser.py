"""The memory browser: entries, searched by typing; edit, forget with undo, pin, make global."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from ba_tui.core.errors import BaError
from ba_tui.core.ports.memory import Entry, Memory, MemoryState, Origin, Proposal, RecalledEntry, Scope
from ba_tui.core.text.wording import byte_size, count, one_line
from ba_tui.faces.tui.meters import age
from ba_tui.faces.tui.screens.list_screen import ListContent, ListRow, ListScreen
from ba_tui.faces.tui.screens.sheet import MarkdownSheet, Sheet, app_of, fact_lines, plain
from ba_tui.faces.tui.widgets.text_fields import ClusterArea
from ba_tui.features.memory.tui.proposal import named, said

Save = Callable[[str], Awaitable[object]]
"""Stores a text. Raises BaError."""


class EntryText(ClusterArea):
    """A text area that leaves Esc and Ctrl+S to the screen."""

    DEFAULT_CSS = """
    EntryText { height: 1fr; border: none; padding: 0; background: $panel; }
    EntryText:focus { border: none; }
    """

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.prevent_default()  # else TextArea moves the focus on
        else:
            await super()._on_key(event)


class EntryEditor(Sheet[bool]):
    """Dismissed with True once the text is stored. A refused text stays here with the reason."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "Save", priority=True),
        Binding("escape", "dismiss(False)", "Cancel", priority=True),
    ]

    def __init__(self, text: str, save: Save) -> None:
        super().__init__("Edit memory", keys="Ctrl+S save · Esc cancel")
        self._before = text
        self._save = save

    def body(self) -> ComposeResult:
        yield EntryText(self._before, soft_wrap=True, compact=True, highlight_cursor_line=False)

    def on_mount(self) -> None:
        field = self.query_one(EntryText)
        field.focus()
        field.move_cursor(field.document.end)

    def action_save(self) -> None:
        text = self.query_one(EntryText).text.strip()
        if not text:
            self.say("A memory needs a text. To remove it: Esc, then Ctrl+D.")
        elif text == self._before.strip():
            self.dismiss(False)
        else:
            self.run_worker(partial(self._store, text), group="save", exclusive=True, exit_on_error=False)

    async def _store(self, text: str) -> None:
        try:
            await self._save(text)
        except BaError as error:
            self.say(error.with_hint)
            return
        self.dismiss(True)


LONGEST = 300
"""Maximum characters of a text in a row; the row is cut to the screen."""
FROM: dict[Origin, str] = {
    "person": "you",
    "assistant": "the model",
    "tool": "a tool",
    "import": "an import",
}


def entry_row(entry: Entry, *, now: float, why: str = "", newer: Entry | None = None) -> ListRow[Entry | Proposal]:
    """Return the row of an entry; ``why``: why a search found it, ``newer``: the entry that superseded it."""
    state = "replaced" if entry.superseded_by else "pinned" if entry.pinned else ""
    below = [
        f"replaced by: {one_line(newer.text, LONGEST)}" if newer else "",
        why,
        "" if entry.kind == "fact" else entry.kind,
        f"from {_from(entry)}" if entry.server or entry.origin != "person" else "",
        usage(entry, now),
    ]
    cells = (one_line(entry.text, LONGEST), state, scope_of(entry), _ago(entry.at, now))
    return ListRow(entry.id, cells, " · ".join(filter(None, below)), value=entry)


def proposal_row(proposal: Proposal) -> ListRow[Entry | Proposal]:
    older = f"replaces: {one_line(proposal.older.text, LONGEST)} · " if proposal.older else ""
    cells = (one_line(proposal.draft.text, LONGEST), "proposed", proposal.draft.scope, "")
    return ListRow(proposal.id, cells, f"{older}Ctrl+S saves it, Ctrl+D drops it", value=proposal)


def scope_of(entry: Entry) -> str:
    return "project" if entry.project else "global"


def usage(entry: Entry, now: float) -> str:
    """Return how often and when the entry was sent with a prompt; empty for never."""
    if not entry.used:
        return ""
    ago = _ago(entry.last_used, now)
    last = f", last {'just now' if ago == 'now' else f'{ago} ago'}" if ago else ""
    return f"used {count(entry.used, 'time')}{last}"


def heading(state: MemoryState, scope: str) -> str:
    """Return the heading, such as ``Memory · this project · 12 entries · 24.1 KB``."""
    size = byte_size(state.size) if state.size else ""
    return " · ".join(filter(None, ("Memory", scope, count(state.entries, "entry"), size)))


def condition(state: MemoryState) -> str:
    """Return the problems of an impaired memory; empty if there are none."""
    parts = [
        state.off,
        state.why,
        f"{state.indexed[0]:,} of {state.indexed[1]:,} indexed" if state.indexed else "",
        f"{count(state.skipped, 'unreadable line')} kept aside" if state.skipped else "",
        state.newer,
    ]
    return " · ".join(part.rstrip(".") for part in parts if part)


def entry_page(entry: Entry, history: Sequence[Entry], used: RecalledEntry | None) -> str:
    """Return the page of one entry as Markdown, its text first."""
    now = time.time()
    facts = [
        ("Kind", f"{entry.kind}{', pinned' if entry.pinned else ''}"),
        ("Scope", "this project" if entry.project else "all projects (global)"),
        ("About", " · ".join(filter(None, (entry.subject, entry.attribute)))),
        ("From", _source(entry)),
        ("Stored", _date(entry.at)),
        ("Used", usage(entry, now).removeprefix("used ") or "never"),
        ("Why now", used.why if used else ""),
        ("Replaced", f"by {entry.superseded_by}" if entry.superseded_by else ""),
        ("Vector", entry.model),
        ("Id", entry.id),
    ]
    older = [each for each in history if each.id != entry.id]
    parts = ["\n".join(f"> {plain(line)}" for line in entry.text.splitlines()), fact_lines(facts, 11)]
    if older:
        parts.append(
            "**Earlier versions**\n\n" + "\n".join(f"- {_date(each.at)}  {plain(each.text)}" for each in older)
        )
    return "\n\n".join(parts)


def _source(entry: Entry) -> str:
    session = f", in session {entry.session}" if entry.session else ""
    said = entry.speaker if entry.speaker and not entry.server else _from(entry)
    by = f", by {entry.speaker}" if entry.speaker and entry.server else ""
    return f"{said}{by}{session}"


def _from(entry: Entry) -> str:
    return f"team server {one_line(entry.server, LONGEST)}" if entry.server else FROM[entry.origin]


def _ago(at: float, now: float) -> str:
    return age(max(0.0, now - at)) if at else ""


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if at > 0 else "unknown"


PAGE_KEYS = "↑ ↓ scroll · / search · Ctrl+Y copy · Esc close"
NONE_YET = "Nothing is remembered yet. Type “# TEXT” in the input, or /remember TEXT."
NO_MATCH = "Nothing matches. Ctrl+O changes the scope."
USED_GONE = "None of these memories exists any more."
AGAIN = 1.0
"""Seconds after which an impaired memory is checked again."""
LISTED = 200
FOUND = 50
SCOPES: dict[Scope | None, str] = {None: "", "project": "this project", "global": "global"}
Undo = Callable[[], Awaitable[object]]


class MemoryBrowser(ListScreen[Entry | Proposal]):
    """``used``: initially shown entries, those of one prompt; typing or Ctrl+O shows all. ``files`` opens the list of
    instruction files.
    """

    ENTER: ClassVar[str] = "open"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+e", "edit", "edit", priority=True),
        Binding("ctrl+d,delete", "forget", "forget", priority=True),
        Binding("ctrl+z", "undo", "undo", priority=True),
        Binding("ctrl+t", "pin", "pin", priority=True),
        Binding("ctrl+g", "promote", "make global", priority=True),
        Binding("ctrl+s", "accept", "Save a proposal", show=False, priority=True),
        Binding("ctrl+o", "scope", "scope", priority=True),
        Binding("ctrl+f", "files", "instruction files", priority=True),
    ]

    def __init__(
        self, memory: Memory, files: Callable[[], None], *, used: Sequence[RecalledEntry] = (), words: str = ""
    ) -> None:
        super().__init__("Memory")
        self._memory = memory
        self._files = files
        self._used = {each.entry.id: each for each in used}
        self._only_used = bool(used)
        self._scope: Scope | None = None
        self._undo: list[tuple[str, Undo]] = []
        self._first_words = words
        self._found_with = words
        """The words that were searched for the current rows."""

    def on_mount(self) -> None:
        if not self._used:
            self._used = {each.entry.id: each for each in self._memory.used()}
        self.query_one(Input).value = self._first_words
        self._watch = self.set_interval(AGAIN, self._check_state, pause=True)

    # Display

    def matching(self) -> Sequence[ListRow[Entry | Proposal]]:
        return self.rows

    def refill(self) -> None:
        if self.words.strip() != self._found_with:
            self._only_used = False
            self.search_soon()
        super().refill()

    async def search(self) -> None:
        await self.load()

    async def load(self) -> None:
        words, now = self.words.strip(), time.time()
        try:
            found = await self._found(words)
            newer = await self._newer([entry for entry, _ in found])
            # Last, because it reports how this search was done.
            state = await self._memory.state()
        except BaError:
            if not self.rows:
                self.show(ListContent((), empty="Nothing can be shown."))
            raise
        if words != self.words.strip():
            self.search_soon()
            return
        proposals = () if words or self._only_used else self._memory.proposals()
        self._found_with = words
        rows = [entry_row(entry, now=now, why=why, newer=newer.get(entry.superseded_by)) for entry, why in found]
        empty = NO_MATCH if words else USED_GONE if self._only_used else NONE_YET
        self.show(ListContent([*map(proposal_row, proposals), *rows], empty=empty))
        self._entitle(state, len(found))

    async def _found(self, words: str) -> list[tuple[Entry, str]]:
        """Return entries with the reasons why they were found."""
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
        """Return the superseding entries of ``entries``, by id."""
        known = {entry.id: entry for entry in entries}
        found: dict[str, Entry] = {}
        for id in {entry.superseded_by for entry in known.values() if entry.superseded_by}:
            history = () if id in known else await self._memory.history(id)
            if newer := known.get(id) or next(iter(history), None):
                found[id] = newer
        return found

    def _entitle(self, state: MemoryState, entries: int) -> None:
        title = heading(state, SCOPES[self._scope])
        if entries == LISTED:
            title += f" · {LISTED} shown, type to find others"
        if self._only_used:
            title = f"Memory · {count(entries, 'entry')} used with this prompt"
        self.entitle(title)
        trouble = condition(state)
        self.lead(trouble)
        (self._watch.resume if trouble else self._watch.pause)()

    def _check_state(self) -> None:
        """Look whether the impairment is over: the search by meaning starts, entries are being indexed."""
        self.run_worker(partial(self._attempt, self._state_again), group="state", exit_on_error=False)

    async def _state_again(self) -> None:
        entries = sum(isinstance(row.value, Entry) for row in self.rows)
        self._entitle(await self._memory.state(), entries)

    # Actions

    @property
    def _entry(self) -> Entry | None:
        """Return the entry at the cursor."""
        return self.item if isinstance(self.item, Entry) else None

    @property
    def _proposal(self) -> Proposal | None:
        """Return the proposal at the cursor."""
        return self.item if isinstance(self.item, Proposal) else None

    def choose(self, row: ListRow[Entry | Proposal]) -> None:
        if isinstance(row.value, Proposal):
            self.action_accept()
        elif row.value:
            self.run_worker(partial(self._attempt, partial(self._open, row.value)), group="open", exit_on_error=False)

    async def _open(self, entry: Entry) -> None:
        page = entry_page(entry, await self._memory.history(entry.id), self._used.get(entry.id))
        app_of(self).push_screen(MarkdownSheet("One memory", page, entry.text, keys=PAGE_KEYS))

    def action_edit(self) -> None:
        if entry := self._entry:
            app_of(self).push_screen(
                EntryEditor(entry.text, partial(self._memory.edit, entry.id)), partial(self._edited, entry)
            )

    def _edited(self, entry: Entry, saved: bool | None) -> None:
        if saved:
            undo = (f"{named(entry)} has its old text again.", partial(self._memory.edit, entry.id, entry.text))
            self._change(_nothing, "Saved. Ctrl+Z takes the change back.", undo)

    def action_forget(self) -> None:
        if proposal := self._proposal:
            self._memory.dismiss(proposal.id)
            self._change(_nothing, "Dropped. The same text is not proposed again in this session.")
        elif entry := self._entry:
            undo = (f"{named(entry)} is back.", partial(self._memory.restore, [entry]))
            self._change(
                partial(self._memory.forget, [entry.id]), f"Forgot {named(entry)}. Ctrl+Z brings it back.", undo
            )

    def action_pin(self) -> None:
        if entry := self._entry:
            pin = partial(self._memory.pin, entry.id)
            told = (
                f"Unpinned {named(entry)}."
                if entry.pinned
                else f"Pinned {named(entry)}: it is never expired or evicted."
            )
            undo = (f"{named(entry)} is as it was.", partial(pin, pinned=entry.pinned))
            self._change(partial(pin, pinned=not entry.pinned), told, undo)

    def action_promote(self) -> None:
        entry = self._entry
        if entry is None:
            return
        if not entry.project:
            self.say("It is global already: it counts in all your projects.")
        elif self.confirmed(entry.id, "It will count in all your projects. Press Ctrl+G again to make it global."):
            self.perform(partial(self._promote, entry), f"{named(entry)} is global now. Ctrl+Z takes it back.")

    async def _promote(self, entry: Entry) -> None:
        new = await self._memory.promote(entry.id)

        async def back() -> None:
            await self._memory.forget([new.id])
            await self._memory.restore([entry])

        self._undo.append((f"{named(entry)} belongs to its project again.", back))

    def action_accept(self) -> None:
        if proposal := self._proposal:
            self.perform(partial(self._accept, proposal))

    async def _accept(self, proposal: Proposal) -> str:
        stored = await self._memory.accept(proposal.id)
        if stored.outcome != "known":
            self._undo.append(("It is forgotten again.", partial(self._memory.undo, [stored.entry.id])))
        return said(stored)

    def action_undo(self) -> None:
        if self._undo:
            done, work = self._undo.pop()
            self._change(work, done)
        else:
            self.say("Nothing to undo: nothing was changed here.")

    def action_scope(self) -> None:
        order = list(SCOPES)
        self._scope = None if self._only_used else order[(order.index(self._scope) + 1) % len(order)]
        self._only_used = False
        self.action_reload()

    def action_files(self) -> None:
        self.dismiss(None)
        self._files()

    def _change(self, work: Undo, done: str, undo: tuple[str, Undo] | None = None) -> None:
        async def run() -> None:
            await work()
            if undo:
                self._undo.append(undo)

        self.perform(run, done)


async def _nothing() -> None:
    """Change nothing: the change was made already."""
