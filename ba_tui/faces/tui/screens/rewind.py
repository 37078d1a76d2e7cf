"""The turns that one can go back to, newest first: prompt, age, and what each did to files.

What a rewind would do is shown by rewinding.py; it is done by the conversation.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.widgets import OptionList, Static

from ba_tui.core.errors import BaError
from ba_tui.core.rewinding import FileChange, Past, RewindStop, TurnHistory
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.meters import age
from ba_tui.faces.tui.screens.picker import Picker, PickerChoice

UNDO = "undo"
KEYS = "Enter shows what would change · Esc closes"
LOOKED = 100
"""Turns, from the newest on, whose files are looked up."""
NAMED = 12


class RewindList(Picker):
    """Dismissed with the number of the turn to go back before, or ``undo``."""

    FILTERED: ClassVar[bool] = False
    DEFAULT_CSS = """
    RewindList .detail { height: 2; color: $text-muted; margin-top: 1; }
    RewindList.-low .detail { height: 1; margin-top: 0; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, past: Past) -> None:
        super().__init__("Rewind to before a prompt", (), keys=KEYS)
        self.empty = "Reading the turns …"
        self._past = past
        self._files: dict[int, Sequence[FileChange]] = {}

    def on_mount(self) -> None:
        self.query_one(".sheet").mount(Static(classes="detail", markup=False), before=self.query_one(".keys"))
        self.run_worker(self._load, group="turns", exclusive=True, exit_on_error=False)

    async def _load(self) -> None:
        history = await self._past.history()
        self.empty = "Nothing to rewind yet."
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
        rows = [self._choice(stop) for stop in reversed(history.stops)]
        if history.newest:
            taken = age(time.time() - history.newest.event.at)
            rows.insert(0, PickerChoice(UNDO, ("Undo the newest rewind", "", taken)))
        self.choices = rows
        self.refill()
        self._describe()

    def _choice(self, stop: RewindStop) -> PickerChoice:
        words = " ".join(stop.prompt.said.split()) or "(no words)"
        return PickerChoice(
            str(stop.number), (words, figures(self._files.get(stop.number, ())), age(time.time() - stop.at))
        )

    @on(OptionList.OptionHighlighted)
    def _moved(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self._describe()

    def _describe(self) -> None:
        id = self.highlighted
        files = self._files.get(int(id), ()) if id and id.isdecimal() else ()
        words = "  ".join(f"{item.path} {counts(item)}" for item in files[:NAMED])
        more = f"  and {len(files) - NAMED} more" if len(files) > NAMED else ""
        self.query_one(".detail", Static).update(paintable(words + more, newlines=False))


def figures(files: Sequence[FileChange]) -> str:
    """``2 files +3 -1``; empty for none."""
    if not files:
        return ""
    added, removed = sum(item.added or 0 for item in files), sum(item.removed or 0 for item in files)
    return f"{count(len(files), 'file')} +{added} -{removed}"


def counts(item: FileChange) -> str:
    """``+3 -1``, or that it is binary."""
    return "binary" if item.added is None else f"+{item.added} -{item.removed or 0}"
