"""Asks the person about protected files that appeared or changed while a command ran; nothing runs unasked until then.

What is noticed stands in permissions/protected_watch.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ba_tui.core.errors import StorageError
from ba_tui.core.events import PERSON, Notice
from ba_tui.core.questions import Option, Question
from ba_tui.core.results import Diff, Diffs
from ba_tui.core.text.wording import one_line
from ba_tui.core.tool import Call
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import is_secret
from ba_tui.permissions.sandbox.protected_watch import ProtectedChange, ProtectedWatch

MOST_SHOWN = 20
MOST_NAMED = 4
COMMAND_CHARS = 60
NO_TEXT = "(a link, or too large to be shown)\n"
HIDDEN = "(not shown: it may hold secrets)\n"
WHY = "Git, shells, editors and other programs run code from such files, or models follow them."


@frozen
class ProtectedReview:
    """``watch``: None where nothing is watched. ``asks``: whether the person is asked at all, or only told.
    ``accepted`` hears which files the user has seen and wants; blocks."""

    watch: ProtectedWatch | None = None
    asks: Callable[[], bool] = lambda: True
    accepted: Callable[[Iterable[Path]], None] = lambda paths: None

    async def settle(self, call: Call) -> str:
        """Ask about what commands did to protected files by now. Why nothing may run unasked; empty when all is
        decided."""
        watch = self.watch
        if watch is None or call.branch.name == PERSON:
            return ""
        if watch.active:
            await asyncio.to_thread(watch.check)
        notes = await self.notes(call)
        if not notes or not await asyncio.to_thread(lambda: watch.pending):
            return ""
        return f"{notes[0]}. Nothing runs unasked until the user has decided about that."

    async def notes(self, call: Call) -> list[str]:
        """What is left undecided after the person was asked, in words for the model."""
        # What a command of the person's own changed is asked about before the model's next command.
        watch = self.watch if call.branch.name != PERSON else None
        changes = await asyncio.to_thread(lambda: watch.pending) if watch else ()
        if watch is None or not changes:
            return []
        what = f"`{one_line(changes[0].by, COMMAND_CHARS)}` {_did(watch, changes)}"
        if not self.asks():
            await asyncio.to_thread(watch.keep, changes)
            call.branch.emit(Notice(f"{what}.", "warning", WHY))
            return []
        reply = await call.ask(_question(f"{what}. {WHY}", watch, changes, call))
        match reply.text.split("\n")[0] if reply.choice == "text" else "":
            case "Keep them":
                await asyncio.to_thread(watch.keep, changes)
                if len(changes) <= MOST_SHOWN:
                    await self._accept(changes, call)
                return []
            case "Set them aside":
                return await self._set_aside(watch, changes, call)
            case _:
                hint = "ba asks before every command until you keep or remove them."
                call.branch.emit(Notice(f"{what}. {WHY}", "warning", hint))
                return [f"{what}, which decide what other programs run, and the user has not agreed to that"]

    async def _accept(self, changes: Sequence[ProtectedChange], call: Call) -> None:
        """Let models read the instruction files among ``changes``: the user has seen the difference."""
        try:
            await asyncio.to_thread(self.accepted, [change.path for change in changes if change.after is not None])
        except StorageError as error:
            call.branch.emit(Notice(str(error), "warning", error.hint))

    @staticmethod
    async def _set_aside(watch: ProtectedWatch, changes: Sequence[ProtectedChange], call: Call) -> list[str]:
        names = ", ".join(watch.shown(change.path) for change in changes)
        try:
            folder = await asyncio.to_thread(watch.set_aside, changes)
        except OSError as error:
            reason = error.strerror or error
            call.branch.emit(Notice(f"{names} could not be set aside: {reason}.", "warning", "Remove them yourself."))
            return [f"{names} could not be set aside"]
        call.branch.emit(Notice(f"{names}: set aside in {folder}."))
        return [f"the user had {names} taken back"]


def _question(text: str, watch: ProtectedWatch, changes: Sequence[ProtectedChange], call: Call) -> Question:
    return Question(
        "choice",
        text,
        call_id=call.id,
        preview=Diffs(tuple(_diff(watch, change) for change in changes[:MOST_SHOWN])),
        options=(
            Option("Keep them", "They are fine, or you made them yourself."),
            Option("Set them aside", "New files move to a folder of ba; changed files get their old content back."),
        ),
    )


def _did(watch: ProtectedWatch, changes: Sequence[ProtectedChange]) -> str:
    """``created .envrc and changed .npmrc``."""
    said: list[str] = []
    for word, chosen in (
        ("created", [change for change in changes if change.new]),
        ("changed", [change for change in changes if not change.new and change.after is not None]),
        ("removed", [change for change in changes if not change.new and change.after is None]),
    ):
        names = list(dict.fromkeys(watch.shown(change.outermost or change.path) for change in chosen))
        if names:
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            said.append(f"{word} {', '.join(names[:MOST_NAMED])}{more}")
    return " and ".join(said)


def _diff(watch: ProtectedWatch, change: ProtectedChange) -> Diff:
    if is_secret(change.path):
        # What is shown is kept with the session.
        return Diff(watch.shown(change.path), None, HIDDEN)
    before = None if change.before is None else change.before.decode("utf-8", "replace")
    after = NO_TEXT if change.after is None and change.new else (change.after or b"").decode("utf-8", "replace")
    return Diff(watch.shown(change.path), before, after)
