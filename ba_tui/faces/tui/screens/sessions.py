"""The session picker: this folder's sessions or all, sorted, searched by typing; rename, fork, delete pressed twice.

Titles are searched at once, the words of whole sessions in a thread; the rows show where they were found. Sessions that
only ``ba -p`` wrote are left out until the person asks for them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input, Static

from ba_tui.core.errors import BaError
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.meters import age, money
from ba_tui.faces.tui.screens.picker import Picker, PickerChoice
from ba_tui.faces.tui.session import OpenSession

KEYS = (
    "Enter open · Ctrl+A all folders · Ctrl+O order · Ctrl+R ba -p runs\n"
    "Ctrl+E rename · Ctrl+F fork · Ctrl+D delete · Esc close"
)
SHOWN = 200
PAUSE = 0.15
"""Seconds after a key before the words of whole sessions are searched."""
NONE_YET = "No sessions yet. Ctrl+A lists all folders."
ONLY_PRINTED = "Only sessions of ba -p. Ctrl+R lists them, Ctrl+A all folders."
ORDERS: dict[str, Callable[[SessionInfo], tuple[object, ...]]] = {
    "newest first": lambda info: (-info.updated,),
    "by title": lambda info: (info.title.casefold(), -info.updated),
    "most turns first": lambda info: (-info.turns, -info.updated),
    "dearest first": lambda info: (-(info.cost or 0.0), -info.updated),
}


class SessionPicker(Picker):
    """Dismissed with the id of the session to open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+a", "everywhere", "All folders", priority=True),
        Binding("ctrl+o", "order", "Order", priority=True),
        Binding("ctrl+r", "printed", "Sessions of ba -p", priority=True),
        Binding("ctrl+e", "rename", "Rename", priority=True),
        Binding("ctrl+f", "fork", "Fork", priority=True),
        Binding("ctrl+d,delete", "delete", "Delete", priority=True),
    ]

    def __init__(self, session: OpenSession) -> None:
        super().__init__("Sessions of this folder", (), keys=KEYS)
        self._session = session
        self._library = session.live[0].library
        self._everywhere = False
        self._printed = session.start.all
        """Whether sessions are listed that only ``ba -p`` wrote."""
        self._order = 0
        self._infos: dict[str, SessionInfo] = {}
        self._wanted = ""
        self._looked = ""
        """The words for which ``_places`` were found."""
        self._places: dict[str, str] = {}
        self._looking = False
        self._renaming: str | None = None
        self._deleting: str | None = None
        self.empty = NONE_YET

    def on_mount(self) -> None:
        self._reload()

    def _reload(self) -> None:
        self.run_worker(self._load, group="sessions", exclusive=True, exit_on_error=False)

    async def _load(self) -> None:
        def look() -> Sequence[SessionInfo]:
            return self._library.sessions(everywhere=self._everywhere)

        try:
            infos = await asyncio.to_thread(look)
        except BaError as error:
            self.say(error.with_hint)
            return
        wanted = [info for info in infos if self._printed or not info.unattended]
        self.empty = ONLY_PRINTED if infos and not wanted else NONE_YET
        self._infos = {info.id: info for info in wanted}
        self._looked = ""
        self._arrange()

    def _arrange(self) -> None:
        """Put the sessions in order, and show them."""
        key = list(ORDERS.values())[self._order]
        infos = sorted(self._infos.values(), key=key)
        now = time.time()
        self.choices = [_choice(info, now, self._where(info), everywhere=self._everywhere) for info in infos]
        self.refill()

    def _where(self, info: SessionInfo) -> str:
        """Where it is open now, or that it was not closed."""
        here = self._session.conversation
        if here is not None and info.id == here.id:
            return "open here"
        if info.locked_by:
            return f"open in {info.locked_by}: opens read-only"
        return "ended unexpectedly" if info.left_open else ""

    def matching(self) -> Sequence[PickerChoice]:
        """What the titles say at once, and what was found in all the rest; as many as can be looked through."""
        places = self._places if self._looked and self._looked == self._wanted else {}
        said = {choice.id for choice in super().matching()}
        found = [
            replace(choice, below=places.get(choice.id) or choice.below)
            for choice in self.choices
            if choice.id in said or choice.id in places
        ]
        self._entitle(len(found))
        return found[:SHOWN]

    def _entitle(self, count: int) -> None:
        where = "Sessions of all folders" if self._everywhere else "Sessions of this folder"
        where += ", with those of ba -p" if self._printed else ""
        order = f" · {list(ORDERS)[self._order]}" if self._order else ""
        more = f" · {SHOWN} of {count:,}, type to find others" if count > SHOWN else ""
        self.query_one(".title", Static).update(where + order + more)

    def _search(self) -> None:
        """Look for the words in all that was said, once they stop changing."""
        self._wanted = self.words.strip()
        if len(self._wanted) > 1 and not self._looking:
            self._looking = True
            self.run_worker(self._look, group="search", exit_on_error=False)

    async def _look(self) -> None:
        try:
            await asyncio.sleep(PAUSE)
            while len(words := self._wanted) > 1 and words != self._looked:
                everywhere = self._everywhere
                work = partial(self._library.search, words, everywhere=everywhere)
                found = await asyncio.to_thread(work)
                if everywhere == self._everywhere:
                    self._looked, self._places = words, {info.id: info.found for info in found}
        except BaError as error:
            self.say(error.with_hint)
        finally:
            self._looking = False
        if self._renaming is None and self._deleting is None:
            super().refill()

    def refill(self) -> None:
        if self._renaming is None:
            self._deleting = None
            self.say(self.keys)
            self._search()
            super().refill()

    def choose(self, id: str) -> None:
        if self._renaming is None:
            self.dismiss(id)
            return
        title, target = self.words.strip(), self._renaming
        self._end_renaming()
        if title:
            self._change(lambda: self._library.rename(target, title))

    def action_cancel(self) -> None:
        if self._renaming is not None:
            self._end_renaming()
            self.refill()
        else:
            super().action_cancel()

    def _end_renaming(self) -> None:
        self._renaming = None
        self.query_one(Input).value = ""

    def action_everywhere(self) -> None:
        self._everywhere = not self._everywhere
        self._reload()

    def action_printed(self) -> None:
        self._printed = not self._printed
        self._reload()

    def action_order(self) -> None:
        if self._renaming is None:
            self._order = (self._order + 1) % len(ORDERS)
            self._arrange()

    def action_rename(self) -> None:
        if (id := self.highlighted) and self._renaming is None:
            self._renaming = id
            field = self.query_one(Input)
            field.value = self._infos[id].title
            field.action_end()
            self.say("Type the title · Enter save · Esc cancel")

    def action_fork(self) -> None:
        if id := self.highlighted:
            self._change(lambda: self._library.fork(id))

    def action_delete(self) -> None:
        id = self.highlighted
        conversation = self._session.conversation
        if id is None or self._renaming is not None:
            return
        if conversation is not None and id == conversation.id:
            self.say("This session is open here. Open another one before you delete it.")
        elif self._deleting != id:
            self._deleting = id
            self.say(f"Press again to delete “{self._infos[id].title}” permanently")
        else:
            self._deleting = None
            self._change(lambda: self._library.delete(id))

    def _change(self, work: Callable[[], object]) -> None:
        async def run() -> None:
            try:
                await asyncio.to_thread(work)
            except BaError as error:
                self.say(error.with_hint)
                return
            await self._load()

        self.run_worker(run, group="sessions", exit_on_error=False)


def _choice(info: SessionInfo, now: float, where: str, *, everywhere: bool) -> PickerChoice:
    title = info.title or "Untitled"
    title += " (ba -p)" if info.unattended else ""
    cells = [title, age(now - info.updated), count(info.turns, "turn"), money(info.cost)]
    if everywhere:
        cells.append(info.cwd.name or str(info.cwd))
    below = f"{where} · {info.preview}" if where else info.preview
    return PickerChoice(info.id, tuple(cells), below)
