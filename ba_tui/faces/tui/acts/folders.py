"""The command that adds a folder to the workspace until ba ends."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import Notice
from ba_tui.core.ports.permissions import RuleVerdict
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.acts.port import Actions, refuse_while_busy
from ba_tui.faces.tui.screens.list_screen import ChoiceList, ListRow
from ba_tui.faces.tui.session import OpenSession
from ba_tui.resources import project_root

ADD = "add"
VERDICTS: Mapping[str, RuleVerdict] = {"allow": "allow", "ask": "ask", "deny": "deny"}


async def add_dir(chat: Actions, text: str) -> None:
    """Add a folder to the workspace, after asking the user."""
    _, conversation = chat.session.live
    if not text:
        raise UsageError("The folder is missing.", "Type it after the command: /add-dir ../library")
    refuse_while_busy(chat)
    folder = await asyncio.to_thread(_folder, text, conversation.cwd)
    roots = (await asyncio.to_thread(project_root, conversation.cwd), *chat.session.folders)
    shown = paintable(str(folder), newlines=False)
    if any(folder.is_relative_to(root.resolve()) for root in roots):
        chat.activity.hint(f"{shown} is part of the workspace already.")
        return
    jobs = conversation.inventory.jobs
    running = jobs is not None and any(job.state == "running" for job in jobs.list())
    lead = "The folder is outside this project. Until ba ends, ba may read it, and change it as the mode allows."
    lead += " Background commands end." if running else ""
    choices = (ListRow[str](ADD, ("Add this folder",)), ListRow[str]("cancel", ("Cancel",)))
    dialog = ChoiceList(f"Work in {shown} too?", choices, lead=lead)
    if await chat.ba.push_screen_wait(dialog) != ADD:
        return
    news = await _widen(chat.session, folder)
    await chat.show_session()
    for notice in news:
        chat.tell(notice)
    chat.activity.hint(f"{shown} is part of the workspace until ba ends.")


async def _widen(session: OpenSession, folder: Path) -> Sequence[Notice]:
    """Reopen the session with ``folder`` and return new notices. Rules for this session are kept."""
    services, old = session.live
    if services.with_folders is None:
        raise UsageError("A folder can't be added here.", "Start ba with --add-dir DIR.")
    rules = [rule for rule in await asyncio.to_thread(old.permissions.rules) if rule.layer == "session"]
    session.folders.append(folder)
    try:
        notices = await session.reopen()
    except BaError:
        session.folders.remove(folder)
        raise
    add = session.live[1].permissions.add
    for rule in rules:
        with suppress(BaError):
            await asyncio.to_thread(add, rule.rule, VERDICTS[rule.verdict], "session")
    return [notice for notice in notices if notice not in services.notices]


def _folder(text: str, cwd: Path) -> Path:
    """Return the folder that ``text`` names, literally or quoted as in a shell. Raises UsageError if there is none."""
    words = [text]
    with suppress(ValueError):
        words += [split[0] for split in (shlex.split(text),) if len(split) == 1]
    for word in words:
        with suppress(OSError, RuntimeError, ValueError):
            path = (cwd / Path(word).expanduser()).resolve()
            if path.is_dir():
                return path
    raise UsageError(f"There is no folder {paintable(text, newlines=False)}.", "Check the path; Tab completes it.")
