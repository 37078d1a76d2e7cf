"""Commands about sessions: new, earlier, title, export, copy, leaving."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.acts.port import Actions, Room, SessionActions
from ba_tui.faces.tui.acts.trust import settle
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.commands import SlashCommand
from ba_tui.faces.tui.panes import MeterFold
from ba_tui.resources import save_whole

FORMATS = ("md", "html", "json", "jsonl")


async def clear(chat: Actions, _: str) -> None:
    _refuse_while_busy(chat)
    await _change(chat, None)


async def resume(chat: Actions, words: str) -> None:
    """With ``words`` the session that they find; without, the picker."""
    _refuse_while_busy(chat)
    services, _ = chat.session.live
    if words:
        find = partial(services.library.find, words, unattended=chat.session.start.all)
        info = await asyncio.to_thread(find)
        await _change(chat, info.id)
        return
    from ba_tui.faces.tui.screens.sessions import SessionPicker  # noqa: PLC0415 - most runs never show it

    if chosen := await chat.ba.push_screen_wait(SessionPicker(chat.session)):
        await _change(chat, chosen)


async def fork(chat: Actions, _: str) -> None:
    """Continue in a copy; what stands in the input comes along."""
    _refuse_while_busy(chat)
    services, conversation = chat.session.live
    if not chat.session.started:
        raise UsageError("This session is still empty.", "It can be copied after the first turn.")
    info = await asyncio.to_thread(services.library.fork, conversation.id)
    text = chat.composer.text
    await _change(chat, info.id)
    if text and not chat.composer.text:
        chat.composer.put_back(text)
    chat.activity.hint(f"Copied. This is “{info.title}” now.")


async def _change(chat: Actions, id: str | None) -> None:
    await chat.session.change(id)
    notices = await settle(chat)
    if notices is None:
        return
    await chat.show_session()
    for notice in notices:
        chat.tell(notice)
    await chat.check_setup()


def _refuse_while_busy(chat: SessionActions) -> None:
    if chat.turns.busy:
        raise UsageError("A turn is running.", "Press Esc to interrupt it first.")


def rename(chat: SessionActions, title: str) -> None:
    _, conversation = chat.session.live
    if not title:
        raise UsageError("The title is missing.", "Type it after the command: /rename Sales report")
    if not chat.session.started:
        raise UsageError("This session is still empty.", "Set its title after the first prompt.")
    conversation.rename(title)
    chat.show_facts()
    chat.activity.hint(f"Renamed to “{conversation.title}”.")


async def export(chat: SessionActions, argument: str) -> None:
    """``[md|html|json|jsonl] [file]``; a file that exists is not overwritten."""
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
    """The n-th answer from the end."""
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


SESSIONS = Room(
    {
        SlashCommand("clear", "Start a new session", aliases=("new", "reset")): clear,
        SlashCommand("resume", "Resume an earlier session", "[words]", ("sessions", "continue")): resume,
        SlashCommand("fork", "Continue in a copy of this session", aliases=("branch",)): fork,
    },
    panes=(MeterFold,),
)
RECORD = Room(
    {
        SlashCommand("rename", "Rename this session", "<title>"): rename,
        SlashCommand("export", "Write this session to a file", "[md|html|json|jsonl] [file]"): export,
        SlashCommand("copy", "Copy the newest answer, or the n-th from the end", "[n]", keys="ctrl+y"): copy,
    }
)
LEAVING = Room({SlashCommand("exit", "Quit (session is saved)", aliases=("quit", "q")): leave})
