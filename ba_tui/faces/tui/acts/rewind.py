"""Commands about what was done: back to before a prompt, forth again, and what the session changed."""

from __future__ import annotations

import asyncio

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice
from ba_tui.core.rewinding import RewindResult
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.acts.port import Actions, Room
from ba_tui.faces.tui.commands import SlashCommand

NAMED = 5


async def rewind(chat: Actions, argument: str) -> None:
    """``[turn|undo]``: without, the list of turns."""
    from ba_tui.faces.tui.screens.rewind import UNDO, RewindList  # noqa: PLC0415 - most runs never show it
    from ba_tui.faces.tui.screens.rewind_dialog import RewindDialog, going_back, going_forth  # noqa: PLC0415 - see above

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


def _tell(chat: Actions, outcome: RewindResult) -> None:
    if outcome.prompt and outcome.prompt.said:
        chat.composer.put_back(outcome.prompt.said)
    left = outcome.restored.left
    if left:
        named = "; ".join(f"{path}: {why}" for path, why in left[:NAMED])
        more = f"; and {len(left) - NAMED} more" if len(left) > NAMED else ""
        files = "1 file was" if len(left) == 1 else f"{len(left)} files were"
        text = paintable(f"{files} left unchanged. {named}{more}.", newlines=False)
        chat.tell(Notice(text, "warning", "/diff shows all changes of this session."))
    done = len(outcome.restored.done)
    if done:
        chat.activity.hint(f"{count(done, 'file')} changed.")


async def redo(chat: Actions, _: str) -> None:
    """Take the last rewind back."""
    await rewind(chat, "undo")


async def diff(chat: Actions, __: str) -> None:
    """What the session changed: its first checkpoint beside the files as they are."""
    from ba_tui.faces.tui.inspector.model import Inspected  # noqa: PLC0415 - most runs never show it
    from ba_tui.faces.tui.inspector.pane import InspectorScreen  # noqa: PLC0415 - see above

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
    count = len(await asyncio.to_thread(past.files.changes, first))
    note = f"the first {len(shown.items)} of {count} files" if count > len(shown.items) else ""
    chat.ba.push_screen(InspectorScreen(Inspected("What changed since this session began", {}, shown, note=note)))


REWINDING = Room(
    {
        SlashCommand(
            "rewind", "Rewind conversation, files or both to an earlier prompt", "[turn|undo]", ("undo", "checkpoint")
        ): rewind,
        SlashCommand("redo", "Take the last rewind back"): redo,
        SlashCommand("diff", "Show file changes since this session began"): diff,
    }
)
