"""Commands on the session: start, fork, rename, export, copy, mode, compact, quit; and the opening of a session."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Sequence
from pathlib import Path

from ba_tui.core.conversation import compact as start_compacting
from ba_tui.core.conversation import undo_compact
from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import Mode, Notice
from ba_tui.core.ports.permissions import ToolWrite
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.acts import prompts
from ba_tui.faces.tui.acts.port import Actions, refuse_while_busy
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.session import MEANING
from ba_tui.resources import project_root, save_whole

FORMATS = ("md", "html", "json", "jsonl")


async def clear(chat: Actions, _: str) -> None:
    refuse_while_busy(chat)
    await change_session(chat, None)


async def fork(chat: Actions, _: str) -> None:
    """Continue in a copy of the session; the text in the input is kept."""
    refuse_while_busy(chat)
    services, conversation = chat.session.live
    if not chat.session.started:
        raise UsageError("This session is still empty.", "It can be copied after the first turn.")
    info = await asyncio.to_thread(services.library.fork, conversation.id)
    text = chat.composer.text
    await change_session(chat, info.id)
    if text and not chat.composer.text:
        chat.composer.put_back(text)
    chat.activity.hint(f"Copied. This is “{info.title}” now.")


def rename(chat: Actions, title: str) -> None:
    _, conversation = chat.session.live
    if not title:
        raise UsageError("The title is missing.", "Type it after the command: /rename Sales report")
    if not chat.session.started:
        raise UsageError("This session is still empty.", "Set its title after the first prompt.")
    conversation.rename(title)
    chat.show_facts()
    chat.activity.hint(f"Renamed to “{conversation.title}”.")


async def export(chat: Actions, argument: str) -> None:
    """Write the session to a file: ``[md|html|json|jsonl] [file]``. An existing file is not overwritten."""
    services, conversation = chat.session.live
    if not chat.session.started:
        raise UsageError("This session is still empty.", "Export it after the first turn.")
    words = argument.split(maxsplit=1)
    named = words[0] in FORMATS if words else False
    rest = words[1] if named and len(words) > 1 else "" if named else argument
    suffix = Path(rest).suffix.lstrip(".")
    format = words[0] if named else suffix if suffix in FORMATS else "md"
    path = conversation.cwd / (Path(rest).expanduser() if rest else Path(f"ba-{conversation.id}.{format}"))
    if path.exists():
        raise UsageError(f"{path} already exists.", f"Name another file: /export {format} <file>")
    pieces = await asyncio.to_thread(services.library.export, conversation.id, format)
    await asyncio.to_thread(save_whole, path, pieces)
    chat.tell(Notice(f"Exported to {path}."))


def copy(chat: Actions, argument: str) -> None:
    """Copy the n-th answer from the end."""
    _, conversation = chat.session.live
    if argument and not (argument.isdecimal() and int(argument) > 0):
        raise UsageError(f"{argument!r} is not a number.", "/copy 2 copies the second answer from the end.")
    place = int(argument or 1)
    messages = conversation.transcript.messages
    answers = [message.text for message in messages if message.role == "assistant" and message.text.strip()]
    if place > len(answers):
        there = f"This session has {count(len(answers), 'answer')}." if answers else "There is no answer to copy yet."
        raise UsageError(there)
    chat.post_message(CopyToClipboard(answers[-place]))


async def leave(chat: Actions, _: str) -> None:
    await chat.ba.action_leave()


LATE = ("inspector.model", "inspector.pane", "widgets.ask")
"""Modules that the first paint does without."""


async def begin(chat: Actions) -> bool:
    """Open the session that the flags name and send waiting prompts; return False if that fails or the user quits."""
    try:
        notices = await asyncio.to_thread(_assemble, chat)
    except BaError as error:
        chat.tell(Notice(str(error), "error", f"{error.hint} Press Enter to try again.".strip()))
        return False
    if (told := await settle(chat, notices)) is None:
        return False
    start = chat.session.start
    left = await prompts.begin(chat)
    await chat.show_session()
    for notice in (*told, *chat.session.untold):
        chat.tell(notice)
    if chat.turns.questioned:
        while text := chat.turns.take_back():
            prompts.return_early(chat, text)
    if start.prompt:
        chat.turns.waiting.appendleft(start.prompt)
    prompts.bring_back(chat, *left)
    chat.turns.opened.set()
    await chat.check_setup()
    if start.resume == "pick":
        chat.call_command("resume")
    chat.turns.send_next()
    return True


def _assemble(chat: Actions) -> Sequence[Notice]:
    """Assemble the services and import what the first turn needs. Blocks."""
    notices = chat.session.assemble()
    for late in LATE:
        importlib.import_module(f"ba_tui.faces.tui.{late}")
    return notices


UNDO = "undo"


async def compact(chat: Actions, argument: str) -> None:
    """Compress the conversation with a focus, or undo the last compression: ``[focus|undo]``."""
    _, conversation = chat.session.live
    if not chat.session.started:
        raise UsageError("Nothing to compress yet.")
    if argument == UNDO:
        chat.turns.watch(undo_compact(conversation))
    else:
        chat.turns.watch(start_compacting(conversation, argument))
    chat.activity.doing("Undoing the compression" if argument == UNDO else "Compressing the conversation")


async def change_session(chat: Actions, id: str | None) -> None:
    await chat.session.change(id)
    notices = await settle(chat)
    if notices is None:
        return
    await chat.show_session()
    for notice in notices:
        chat.tell(notice)
    await chat.check_setup()


async def settle(chat: Actions, notices: Sequence[Notice] = ()) -> Sequence[Notice] | None:
    """Ask whether to trust the session's folder, unless it is trusted or was refused before in this run of ba.

    Returns the notices for the user, or None when the user chose to quit.
    """
    services, conversation = chat.session.live
    root = project_root(conversation.cwd)
    chat.session.reads_only = root in chat.session.refused
    if services.trust is None or chat.session.reads_only:
        return notices
    seen = await asyncio.to_thread(services.trust.look, root)
    if seen.state == "trusted":
        return [*notices, *map(_unread, seen.written)]
    from ba_tui.faces.tui.screens.trust import ask_trust, grant_trust  # noqa: PLC0415 - most runs never show it

    chat.turns.questioned = not chat.turns.ready
    verdict = await ask_trust(chat, seen, starting=True)
    if verdict == "quit":
        await chat.ba.action_quit()
        return None
    if verdict != "trust":
        chat.session.refused.add(root)
        chat.session.reads_only = True
        return notices
    return await grant_trust(chat, services.trust, seen, notices)


def _unread(write: ToolWrite) -> Notice:
    """Return the notice about an instruction file that a tool wrote and the user has not accepted."""
    return Notice(f"{write.line}. Models do not read it.", "warning", "/trust shows the difference and accepts it.")


def cycle_mode(chat: Actions, _: str) -> None:
    modes, here = chat.session.live[1].permissions.modes(), chat.session.mode
    mode(chat, modes[(modes.index(here) + 1) % len(modes)] if here in modes else modes[0])


def mode(chat: Actions, name: str) -> None:
    if not name:
        cycle_mode(chat, "")
        return
    names: dict[str, Mode] = {str(each): each for each in MEANING}
    known = names.get(name)
    if known is None:
        raise UsageError(
            f"There is no mode {name!r}.", f"Modes: {', '.join(chat.session.live[1].permissions.modes())}."
        )
    chat.session.set_mode(known)
    chat.show_facts()
    chat.activity.hint(f"{name}: {MEANING[known]}")
