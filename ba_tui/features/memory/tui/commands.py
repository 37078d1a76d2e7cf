"""Commands of memory, the line with proposed facts, and undo."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import Event, MemoryChanged, MemoryProposed, Notice, TurnEnded, TurnStarted
from ba_tui.core.ports.memory import Draft, Entry, Memory, Proposal, RecalledEntry, Scope, StoreResult
from ba_tui.faces.tui.acts.editor import edit_file
from ba_tui.faces.tui.acts.port import Actions, inventory_of, needed
from ba_tui.faces.tui.transcript.records import MemoryNote, Record, ToolRow
from ba_tui.features.memory.tui.proposal import said

if TYPE_CHECKING:
    from ba_tui.features.memory.tui.proposal import ProposalLine

FILES = "files"
UNDO = "undo"
GLOBAL = "global"
NOTHING = ("There is nothing to undo.", "/memory lists what is remembered; Ctrl+D forgets an entry there.")


async def memory(chat: Actions, words: str) -> None:
    """Open the browser; ``files``: the instruction files, ``undo``: undo the newest change, else search for the
    words.
    """
    if words.strip() == UNDO:
        await _undo(chat)
    elif words.strip() == FILES or inventory_of(chat).feature(Memory) is None:
        show_files(chat)
    else:
        _browse(chat, words=words.strip())


def show_files(chat: Actions) -> None:
    """Show the instruction files."""
    from ba_tui.faces.tui.screens.config import ContextFileList  # noqa: PLC0415 - most runs never show it

    found = inventory_of(chat).context_files
    files = needed(found, "This session has no list of instruction files.", "/context shows what the model reads.")
    chat.ba.push_screen(ContextFileList(files, partial(edit_file, chat)))


def _browse(chat: Actions, *, used: tuple[RecalledEntry, ...] = (), words: str = "") -> None:
    from ba_tui.features.memory.tui.browser import MemoryBrowser  # noqa: PLC0415 - most runs never show it

    chat.ba.push_screen(
        MemoryBrowser(_memory(chat), partial(chat.call_command, "memory", FILES), used=used, words=words)
    )


def open_record(chat: Actions, record: Record | None) -> bool:
    """Open the entries of a row in the conversation. Return whether the record has any."""
    note = record if isinstance(record, MemoryNote) else record.changed if isinstance(record, ToolRow) else None
    if note is None or not note.memories:
        return False
    _browse(chat, used=tuple(RecalledEntry(Entry(line.id, line.text), 1.0, line.why) for line in note.memories))
    return True


def _memory(chat: Actions) -> Memory:
    """Return the session's memory. Raises UsageError without one."""
    return needed(inventory_of(chat).feature(Memory), "This session has no memory.", "See /config memory.")


async def remember(chat: Actions, words: str) -> None:
    """Store ``words`` for this project; after ``global`` for all projects."""
    text, scope = drafted(words)
    if not text:
        raise UsageError("There is nothing to remember.", "Write a text behind it: /remember We use tabs.")
    try:
        stored = await _memory(chat).remember(Draft(text, scope=scope))
    except BaError:
        chat.composer.put_back(words if words.startswith("#") else f"/remember {words}")
        raise
    _done(chat, stored)


def drafted(words: str) -> tuple[str, Scope]:
    """Return the text to remember and its scope: ``# TEXT``, ``global TEXT``, or the text alone."""
    text = words.strip()
    if text.startswith("#"):
        return text.lstrip("#").strip(), "project"
    first, _, rest = text.partition(" ")
    return (rest.strip(), "global") if first == GLOBAL else (text, "project")


def forget(chat: Actions, words: str) -> None:
    """Search for entries to forget: the browser shows them first."""
    _browse(chat, words=words.strip())


async def save(chat: Actions, _: str) -> None:
    """Accept the proposal above the input."""
    if proposal := _shown(chat):
        # A second key press accepts nothing.
        _line(chat).show(None)
        try:
            _done(chat, await _memory(chat).accept(proposal.id))
        finally:
            _propose(chat)


def drop(chat: Actions, _: str) -> None:
    """Dismiss the proposal above the input."""
    if proposal := _shown(chat):
        _memory(chat).dismiss(proposal.id)
        _propose(chat)


async def _undo(chat: Actions) -> None:
    memory, changes = _memory(chat), chat.session.remembered
    if not changes:
        raise UsageError(*NOTHING)
    try:
        await memory.undo(changes[-1])
    except UsageError:
        # The change was undone in the browser: the next undo concerns the one before.
        changes.pop()
        raise
    changes.pop()
    chat.tell(Notice("The newest change of memory is taken back."))


def _done(chat: Actions, stored: StoreResult) -> None:
    """Report the result for a text, and keep its undo."""
    known = stored.outcome == "known"
    if not known:
        chat.session.remembered.append((stored.entry.id,))
    chat.tell(Notice(said(stored), hint="" if known else "/memory undo takes it back."))


def _line(chat: Actions) -> ProposalLine:
    """Return the line, which is mounted above the input with the first proposal."""
    from ba_tui.features.memory.tui.proposal import ProposalLine  # noqa: PLC0415 - many sessions never propose anything

    if made := chat.composer.query(ProposalLine):
        return made.first()
    line = ProposalLine()
    chat.composer.mount(line, before=0)
    return line


def _shown(chat: Actions) -> Proposal | None:
    lines = chat.composer.query("#proposal")
    return _line(chat).proposal if lines else None


def _propose(chat: Actions) -> None:
    """Show the first proposal that was not passed over."""
    conversation = chat.session.conversation
    memory = conversation.inventory.feature(Memory) if conversation else None
    waiting = memory.proposals() if memory else ()
    if waiting or chat.composer.query("#proposal"):
        line = _line(chat)
        left = [each for each in waiting if each.id not in line.passed]
        line.show(left[0] if left else None, len(left) - 1)


class MemoryPane:
    """Shows proposals while no turn runs, and keeps changes for undo. Proposals that the next prompt passes over stay
    in the browser.
    """

    def __init__(self, chat: Actions) -> None:
        self._chat = chat

    def reset(self) -> None:
        """Start over for another session."""
        self._chat.session.remembered.clear()
        _propose(self._chat)

    def apply(self, event: Event) -> None:
        match event:
            case TurnStarted(agent="main"):
                if proposal := _shown(self._chat):
                    line = _line(self._chat)
                    line.passed.add(proposal.id)
                    line.show(None)
            case TurnEnded(agent="main"):
                _propose(self._chat)
            case MemoryProposed() if not self._chat.turns.busy:
                _propose(self._chat)
            case MemoryChanged(stored=stored, forgotten=forgotten) if stored or forgotten:
                self._chat.session.remembered.append((*(line.id for line in stored), *forgotten))
            case _:
                pass
