"""The session picker: sessions of this folder or all; sort, search, rename, fork, delete.

Titles are searched immediately, the text of sessions in a thread. Sessions of ``ba -p`` are listed only on request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input

from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.acts.port import Actions, refuse_while_busy
from ba_tui.faces.tui.acts.sessions import change_session
from ba_tui.faces.tui.meters import age, money
from ba_tui.faces.tui.screens.list_screen import ListContent, ListRow, ListScreen
from ba_tui.faces.tui.session import OpenSession

RENAMING = "Type the title · Enter save · Esc cancel"
SHOWN = 200
NONE_YET = "No sessions yet. Ctrl+A lists all folders."
ONLY_PRINTED = "Only sessions of ba -p. Ctrl+R lists them, Ctrl+A all folders."
ORDERS: dict[str, Callable[[SessionInfo], tuple[object, ...]]] = {
    "newest first": lambda info: (-info.updated,),
    "by title": lambda info: (info.title.casefold(), -info.updated),
    "most turns first": lambda info: (-info.turns, -info.updated),
    "dearest first": lambda info: (-(info.cost or 0.0), -info.updated),
}


class SessionPicker(ListScreen[SessionInfo]):
    """Dismissed with the id of the session to open."""

    ENTER: ClassVar[str] = "open"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+a", "everywhere", "all folders", priority=True),
        Binding("ctrl+o", "order", "order", priority=True),
        Binding("ctrl+r", "printed", "ba -p runs", priority=True),
        Binding("ctrl+e", "rename", "rename", priority=True),
        Binding("ctrl+f", "fork", "fork", priority=True),
        Binding("ctrl+d,delete", "delete", "delete", priority=True),
    ]

    def __init__(self, session: OpenSession) -> None:
        super().__init__("Sessions of this folder")
        self._session = session
        self._library = session.live[0].library
        self._everywhere = False
        self._printed = session.start.all
        """Whether sessions are listed that only ``ba -p`` wrote."""
        self._order = 0
        self._searched = ""
        """The words for which ``_places`` were found."""
        self._places: dict[str, str] = {}
        self._renaming: str | None = None

    def read(self) -> ListContent[SessionInfo]:
        everywhere = self._everywhere
        infos = self._library.sessions(everywhere=everywhere)
        wanted = [info for info in infos if self._printed or not info.unattended]
        now = time.time()
        rows = [_session_row(info, now, self._where(info), everywhere=everywhere) for info in wanted]
        return ListContent(rows, empty=ONLY_PRINTED if infos and not wanted else NONE_YET)

    def show(self, listing: ListContent[SessionInfo]) -> None:
        self._searched = ""
        super().show(listing)

    def _where(self, info: SessionInfo) -> str:
        """Return where it is open now, or that it was not closed."""
        here = self._session.conversation
        if here is not None and info.id == here.id:
            return "open here"
        if info.locked_by:
            return f"open in {info.locked_by}: opens read-only"
        return "ended unexpectedly" if info.left_open else ""

    def matching(self) -> Sequence[ListRow[SessionInfo]]:
        """Return the sessions whose rows or texts have the words, in the chosen order."""
        places = self._places if self._searched and self._searched == self.words.strip() else {}
        said = {row.id for row in super().matching()}
        found = [
            replace(row, below=places.get(row.id) or row.below)
            for row in self.rows
            if row.id in said or row.id in places
        ]
        order = list(ORDERS.values())[self._order]
        found.sort(key=lambda row: order(row.value) if row.value else ())
        self._entitle(len(found))
        return found[:SHOWN]

    def _entitle(self, count: int) -> None:
        where = "Sessions of all folders" if self._everywhere else "Sessions of this folder"
        where += ", with those of ba -p" if self._printed else ""
        order = f" · {list(ORDERS)[self._order]}" if self._order else ""
        more = f" · {SHOWN} of {count:,}, type to find others" if count > SHOWN else ""
        self.entitle(where + order + more)

    async def search(self) -> None:
        words, everywhere = self.words.strip(), self._everywhere
        if self._renaming is None and len(words) > 1 and words != self._searched:
            found = await asyncio.to_thread(partial(self._library.search, words, everywhere=everywhere))
            if everywhere == self._everywhere:
                self._searched, self._places = words, {info.id: info.found for info in found}
                super().refill()

    def refill(self) -> None:
        if self._renaming is None:
            if len(self.words.strip()) > 1:
                self.search_soon()
            super().refill()

    def choose(self, row: ListRow[SessionInfo]) -> None:
        if self._renaming is None:
            self.dismiss(row.id)
            return
        title, target = self.words.strip(), self._renaming
        self._end_renaming()
        if title:
            self._change(self._library.rename, target, title)

    def action_close(self) -> None:
        if self._renaming is None:
            super().action_close()
        else:
            self._end_renaming()
            self.refill()

    def _end_renaming(self) -> None:
        self._renaming = None
        self.query_one(Input).value = ""

    def footer(self) -> list[str]:
        return super().footer() if self._renaming is None else [RENAMING]

    def action_everywhere(self) -> None:
        self._everywhere = not self._everywhere
        self.action_reload()

    def action_printed(self) -> None:
        self._printed = not self._printed
        self.action_reload()

    def action_order(self) -> None:
        if self._renaming is None:
            self._order = (self._order + 1) % len(ORDERS)
            self.refill()

    def action_rename(self) -> None:
        if (info := self.item) and self._renaming is None:
            self._renaming = info.id
            field = self.query_one(Input)
            field.value = info.title
            field.action_end()
            self.say("")

    def action_fork(self) -> None:
        if info := self.item:
            self._change(self._library.fork, info.id)

    def action_delete(self) -> None:
        info, conversation = self.item, self._session.conversation
        if info is None or self._renaming is not None:
            return
        if conversation is not None and info.id == conversation.id:
            self.say("This session is open here. Open another one before you delete it.")
        elif self.confirmed(info.id, f"Press again to delete “{info.title}” permanently"):
            self._change(self._library.delete, info.id)

    def _change(self, work: Callable[..., object], *args: str) -> None:
        async def run() -> None:
            await asyncio.to_thread(work, *args)

        self.perform(run)


def _session_row(info: SessionInfo, now: float, where: str, *, everywhere: bool) -> ListRow[SessionInfo]:
    title = info.title or "Untitled"
    title += " (ba -p)" if info.unattended else ""
    cells = [title, age(now - info.updated), count(info.turns, "turn"), money(info.cost)]
    if everywhere:
        cells.append(info.cwd.name or str(info.cwd))
    below = f"{where} · {info.preview}" if where else info.preview
    return ListRow(info.id, tuple(cells), below, value=info)


async def resume(chat: Actions, words: str) -> None:
    """Open the session that ``words`` find, or the picker without words."""
    refuse_while_busy(chat)
    services, _ = chat.session.live
    if words:
        find = partial(services.library.find, words, unattended=chat.session.start.all)
        info = await asyncio.to_thread(find)
        await change_session(chat, info.id)
        return
    if chosen := await chat.ba.push_screen_wait(SessionPicker(chat.session)):
        await change_session(chat, chosen)
